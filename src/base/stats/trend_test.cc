#include "base/stats/trend.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/core/random.h"

namespace assay {
namespace {

TEST(Trend, OfARampIsItsRiseOverItsMean) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1000 + i);
  const auto trend = trend_of(values);
  ASSERT_TRUE(trend);
  EXPECT_TRUE(trend->significant());
  EXPECT_NEAR(trend->change, 1000 / 1499.5, 1e-3);
}

TEST(Trend, OfAFallIsNegative) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < 1000; ++i) values.push_back(2000 - i);
  EXPECT_LT(trend_of(values)->change, -0.5);
  EXPECT_TRUE(trend_of(values)->significant());
}

TEST(Trend, OfAConstantIsNone) {
  const auto trend = trend_of(std::vector<std::int64_t>(500, 42));
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->change, 0);
  EXPECT_FALSE(trend->significant());
}

TEST(Trend, NeedsFortyValues) {
  EXPECT_FALSE(trend_of(std::vector<std::int64_t>(39, 1)));
  EXPECT_TRUE(trend_of(std::vector<std::int64_t>(40, 1)));
}

TEST(Trend, RaisesFewFalseAlarmsOnNoiseWhoseValuesHangTogether) {
  const RandomStream stream(11, "trend");
  int alarms = 0;
  constexpr int kSets = 1000;
  for (std::uint64_t set = 0; set < kSets; ++set) {
    Draws draws = stream.at(set);
    std::vector<std::int64_t> values;
    double x = 0;
    for (int i = 0; i < 400; ++i) {
      x = 0.7 * x + draws.normal();
      values.push_back(static_cast<std::int64_t>(1e6 + 1e5 * x));
    }
    if (trend_of(values)->significant()) ++alarms;
  }
  // 1 % is the promise; three standard errors and the little that batches still share are granted.
  EXPECT_LT(alarms, 30);
}

}  // namespace
}  // namespace assay
