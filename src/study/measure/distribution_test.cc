#include "study/measure/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/core/random.h"

namespace assay {
namespace {

constexpr std::int64_t kMs = 1'000'000;

/// 1, 2, …, n ms in an order that hangs together nowhere.
std::vector<std::int64_t> shuffled(std::int64_t n) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 1; i <= n; ++i) values.push_back(i * kMs);
  Draws draws = RandomStream(9, "shuffle").at(0);
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[draws.below(i)]);
  }
  return values;
}

TEST(Distribution, OfAThousandHasThePublishedRanks) {
  const Distribution d = distribution_ms(shuffled(1000), "");
  EXPECT_EQ(d.n, 1000);
  EXPECT_EQ(d.min, 1);
  EXPECT_EQ(d.max, 1000);
  EXPECT_EQ(d.mean, 500.5);
  EXPECT_EQ(d.percentiles[kP50].value, 500);
  EXPECT_EQ(d.percentiles[kP90].value, 900);
  EXPECT_EQ(d.percentiles[kP99].value, 990);
  EXPECT_EQ(d.percentiles[kP99].interval->low, 983);
  EXPECT_EQ(d.percentiles[kP99].interval->high, 997);
  EXPECT_FALSE(d.percentiles[kP999].value);
  EXPECT_EQ(d.percentiles[kP999].needs, 3688);
  EXPECT_EQ(d.effective_n, 1000);
}

TEST(Distribution, ShowsThePercentileFromTheCountThatItNeeds) {
  EXPECT_FALSE(distribution_ms(shuffled(367), "").percentiles[kP99].value);
  EXPECT_EQ(distribution_ms(shuffled(368), "").percentiles[kP99].value, 365);
}

TEST(Distribution, OfSortedValuesIsWorthFewerAndHasAWiderInterval) {
  std::vector<std::int64_t> sorted;
  for (std::int64_t i = 1; i <= 2000; ++i) sorted.push_back(i * kMs);
  const Distribution apart = distribution_ms(shuffled(2000), "");
  const Distribution together = distribution_ms(sorted, "");
  EXPECT_EQ(together.percentiles[kP99].value, apart.percentiles[kP99].value);
  EXPECT_LT(together.effective_n, 400);
  EXPECT_FALSE(together.percentiles[kP99].interval);
}

TEST(Distribution, OfNothingSaysWhy) {
  const Distribution d = distribution_ms(std::vector<std::int64_t>{}, "because");
  EXPECT_EQ(d.why_null, "because");
  EXPECT_FALSE(d.mean);
}

TEST(Distribution, WithCutOffValuesKeepsWhatIsCertain) {
  // 90 of 100 end after 1…90 ms, ten are cut off at 95 ms.
  std::vector<Lifetime> lives;
  for (const std::int64_t v : shuffled(100)) {
    const bool cut = v > 90 * kMs;
    lives.push_back({.time = cut ? 95 * kMs : v,
                     .end = cut ? Lifetime::End::kCensored : Lifetime::End::kObserved});
  }
  const Distribution d = distribution_ms(lives, "");
  EXPECT_EQ(d.censored, 10);
  EXPECT_EQ(d.percentiles[kP50].value, 50);
  EXPECT_EQ(d.percentiles[kP90].value, 90);
  EXPECT_TRUE(std::isinf(d.percentiles[kP90].interval->high));
  EXPECT_FALSE(d.max);
  EXPECT_EQ(d.max_at_least, 95);
  EXPECT_DOUBLE_EQ(*d.mean, (90 * 91 / 2 + 10 * 95) / 100.0);
  EXPECT_FALSE(d.mean_interval);
}

}  // namespace
}  // namespace assay
