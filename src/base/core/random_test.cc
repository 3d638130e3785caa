#include "base/core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace assay {
namespace {

TEST(Random, PinnedDraws) {
  Draws draws = RandomStream(1, "arrivals").at(0);
  EXPECT_EQ(draws.next_u64(), 7064632423074945866U);
  EXPECT_EQ(draws.next_u64(), 10982947886729562552U);
  EXPECT_EQ(draws.uniform(), 0x1.ad6a13cf83288p-1);
  EXPECT_EQ(draws.below(1000), 214U);
  EXPECT_EQ(draws.exponential(), 0x1.f3b47a8080d5cp-5);
  EXPECT_EQ(draws.normal(), 0x1.742de1e3959c1p-3);
  EXPECT_EQ(RandomStream(1, "arrivals").at(1'000'000).next_u64(), 9495006090551616806U);
}

TEST(Random, Fnv1aKnownAnswers) {
  EXPECT_EQ(hash64(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash64("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(hash64("foobar"), 0x85944171f73967e8U);
}

TEST(Random, ItemsDoNotDependOnWhatWasDrawnBefore) {
  const RandomStream stream(7, "lengths");
  Draws first = stream.at(3);
  Draws other = stream.at(2);
  for (int i = 0; i < 5; ++i) other.next_u64();
  Draws again = stream.at(3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first.next_u64(), again.next_u64());
}

TEST(Random, UniformIsUniform) {
  // Chi-square with 99 degrees of freedom: above 160 has a chance of about 1e-4, fixed by the seed.
  std::array<int, 100> cells{};
  Draws draws = RandomStream(1, "uniform").at(0);
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = draws.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++cells.at(static_cast<std::size_t>(u * 100));
  }
  double chi_square = 0;
  for (const int seen : cells) chi_square += (seen - 1000.0) * (seen - 1000.0) / 1000;
  EXPECT_LT(chi_square, 160);
  EXPECT_GT(chi_square, 50) << "too even to be random";
}

TEST(Random, FirstDrawsOfNeighbouringItemsAreUniformToo) {
  std::array<int, 100> cells{};
  const RandomStream stream(1, "items");
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    ++cells.at(static_cast<std::size_t>(stream.at(i).uniform() * 100));
  }
  double chi_square = 0;
  for (const int seen : cells) chi_square += (seen - 1000.0) * (seen - 1000.0) / 1000;
  EXPECT_LT(chi_square, 160);
  EXPECT_GT(chi_square, 50);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Draws draws = RandomStream(1, "below").at(0);
  EXPECT_EQ(draws.below(1), 0U);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen.at(draws.below(7));
  for (const int n : seen) EXPECT_NEAR(n, 10'000, 400);  // four sigma
  // Just above 2^63 nearly half of the raw draws must be rejected; half of the range each.
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 63) + 1;
  int upper = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t v = draws.below(kLarge);
    ASSERT_LT(v, kLarge);
    if (v >= kLarge / 2) ++upper;
  }
  EXPECT_NEAR(upper, 5'000, 200);
}

/// Correlation of two streams' uniforms; 1/sqrt(n) is its standard deviation when independent.
double correlation(const RandomStream& a, const RandomStream& b) {
  constexpr int kItems = 40'000;
  double sum = 0;
  for (std::uint64_t i = 0; i < kItems; ++i) {
    sum += (a.at(i).uniform() - 0.5) * (b.at(i).uniform() - 0.5);
  }
  return sum / kItems * 12;
}

TEST(Random, StreamsOfOtherNamesAndSeedsAreIndependent) {
  const RandomStream base(1, "arrivals");
  EXPECT_NEAR(correlation(base, base), 1, 0.02);
  EXPECT_NEAR(correlation(base, RandomStream(1, "lengths")), 0, 0.02);
  EXPECT_NEAR(correlation(base, RandomStream(2, "arrivals")), 0, 0.02);
  EXPECT_NEAR(correlation(base, RandomStream(1, "arrivalt")), 0, 0.02);
  EXPECT_NEAR(correlation(RandomStream(0, ""), RandomStream(1, "")), 0, 0.02);
}

struct Moments {
  double mean = 0, variance = 0;
};

template <typename Draw>
Moments moments(Draw draw) {
  constexpr int kDraws = 400'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double v = draw();
    sum += v;
    squares += v * v;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

TEST(Random, ExponentialHasMeanAndVarianceOne) {
  // Standard errors at 400,000 draws: mean 0.0016, variance 0.0045; four of each.
  Draws draws = RandomStream(1, "exponential").at(0);
  const auto [mean, variance] = moments([&] { return draws.exponential(); });
  EXPECT_NEAR(mean, 1, 0.0064);
  EXPECT_NEAR(variance, 1, 0.018);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  // Standard errors: mean 0.0016, variance 0.0022; four of each.
  Draws draws = RandomStream(1, "normal").at(0);
  const auto [mean, variance] = moments([&] { return draws.normal(); });
  EXPECT_NEAR(mean, 0, 0.0064);
  EXPECT_NEAR(variance, 1, 0.009);
}

}  // namespace
}  // namespace assay
