#include "base/stats/quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/core/random.h"
#include "base/stats/select.h"

namespace assay {
namespace {

TEST(NearestRank, IsTheCeilingOfPTimesN) {
  EXPECT_EQ(nearest_rank(0.5, 1), 1U);
  EXPECT_EQ(nearest_rank(0.5, 4), 2U);
  EXPECT_EQ(nearest_rank(0.5, 5), 3U);
  EXPECT_EQ(nearest_rank(0.99, 101), 100U);
  EXPECT_EQ(nearest_rank(0.001, 10), 1U);
}

TEST(NearestRank, WholeProductsStayWholeDespiteBinaryFractions) {
  for (std::size_t n = 100; n <= 10'000'000; n *= 10) {
    EXPECT_EQ(nearest_rank(0.99, n), n / 100 * 99) << n;
    EXPECT_EQ(nearest_rank(0.9, n), n / 10 * 9) << n;
    EXPECT_EQ(nearest_rank(0.07, n), n / 100 * 7) << n;
  }
}

TEST(QuantileNeeds, IsTheLeastCountWithTwoFiniteEnds) {
  for (const auto& [p, n] : std::array<std::pair<double, std::size_t>, 4>{
           {{0.5, 6}, {0.9, 36}, {0.99, 368}, {0.999, 3688}}}) {
    EXPECT_EQ(quantile_needs(p), n);
    EXPECT_TRUE(quantile_ranks(p, n).has_value()) << p;
    EXPECT_FALSE(quantile_ranks(p, n - 1).has_value()) << p;
  }
}

TEST(QuantileRanks, MatchThePublishedRanksForP99OfAThousand) {
  const auto ranks = quantile_ranks(0.99, 1000);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->low, 983U);
  EXPECT_EQ(ranks->high, 997U);
}

TEST(QuantileRanks, OfTheMedianAreTheSignTestsTable) {
  // Conover, Practical Nonparametric Statistics: n = 10 gives (2, 9), n = 20 gives (6, 15).
  EXPECT_EQ(quantile_ranks(0.5, 10)->low, 2U);
  EXPECT_EQ(quantile_ranks(0.5, 10)->high, 9U);
  EXPECT_EQ(quantile_ranks(0.5, 20)->low, 6U);
  EXPECT_EQ(quantile_ranks(0.5, 20)->high, 15U);
}

TEST(QuantileRanks, WidenWithTheLossOfEffectiveCount) {
  const auto all = quantile_ranks(0.9, 1000, 1000);
  const auto half = quantile_ranks(0.9, 1000, 500);
  ASSERT_TRUE(all && half);
  EXPECT_LT(half->low, all->low);
  EXPECT_GT(half->high, all->high);
  EXPECT_FALSE(quantile_ranks(0.9, 1000, 35.9));
}

TEST(EffectiveCount, IsAllForFewValues) {
  const std::vector<std::int64_t> few(100, 7);
  EXPECT_EQ(effective_count(few, 0.5, 7), 100);
}

TEST(EffectiveCount, DropsToTheNumberOfRunsWhereValuesComeInRuns) {
  // 40 runs of 50 equal values, low and high at random: about 40 independent values.
  const RandomStream stream(1, "runs");
  std::vector<std::int64_t> values;
  for (std::uint64_t run = 0; run < 40; ++run) {
    values.insert(values.end(), 50, stream.at(run).uniform() < 0.5 ? 1 : 2);
  }
  const double effective = effective_count(values, 0.5, 1);
  EXPECT_GT(effective, 15);
  EXPECT_LT(effective, 120);
}

std::vector<std::int64_t> drawn(std::size_t n, std::uint64_t below) {
  Draws draws = RandomStream(7, "select").at(n);
  std::vector<std::int64_t> values(n);
  for (std::int64_t& v : values) v = static_cast<std::int64_t>(draws.below(below)) - 1000;
  return values;
}

TEST(SelectRanks, EqualSortingForAnyShape) {
  for (const std::size_t n : {1UZ, 2UZ, 4096UZ, 4097UZ, 50'000UZ}) {
    for (const std::uint64_t range : {1UL, 3UL, 100'000UL, 1UL << 50}) {
      const std::vector<std::int64_t> values = drawn(n, range);
      std::vector<std::int64_t> sorted = values;
      std::ranges::sort(sorted);
      const std::vector<std::size_t> ranks{n, 1, (n + 1) / 2, n, n - n / 100};
      const std::vector<std::int64_t> found = select_ranks(values, ranks);
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        EXPECT_EQ(found[i], sorted[ranks[i] - 1]) << n << " " << range << " " << ranks[i];
      }
    }
  }
}

TEST(SelectRanks, SurviveTheFullRangeOfIntegers) {
  std::vector<std::int64_t> values = drawn(10'000, 1000);
  values[17] = std::numeric_limits<std::int64_t>::min();
  values[18] = std::numeric_limits<std::int64_t>::max();
  const std::array<std::size_t, 3> ranks{1, 5000, 10'000};
  const auto found = select_ranks(values, ranks);
  std::ranges::sort(values);
  EXPECT_EQ(found[0], values[0]);
  EXPECT_EQ(found[1], values[4999]);
  EXPECT_EQ(found[2], values[9999]);
}

TEST(SelectRanks, OfNothingAskedAreNothing) {
  EXPECT_TRUE(select_ranks(std::vector<std::int64_t>{}, std::vector<std::size_t>{}).empty());
}

}  // namespace
}  // namespace assay
