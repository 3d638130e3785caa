#include "domain/workload/arrival.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace assay {
namespace {

std::int64_t arrivals_within(Arrival process, double rate, std::uint64_t seed, Duration window) {
  ArrivalWalk walk(process, rate, seed);
  std::int64_t count = 0;
  while (walk.next() < window) ++count;
  return count;
}

TEST(ArrivalWalk, ConstantRateFillsAWindowExactly) {
  EXPECT_EQ(arrivals_within(Arrival::kConstant, 20, 1, 30s), 600);
  EXPECT_EQ(arrivals_within(Arrival::kConstant, 10000, 1, 1s), 10000);
  EXPECT_EQ(arrivals_within(Arrival::kConstant, 0.1, 1, 60s), 6);
}

TEST(ArrivalWalk, ConstantRateStandsInTheMiddleOfEachPeriod) {
  ArrivalWalk walk(Arrival::kConstant, 4, 1);
  EXPECT_EQ(walk.next(), 125ms);
  EXPECT_EQ(walk.next(), 375ms);
  EXPECT_EQ(walk.next(), 625ms);
}

TEST(ArrivalWalk, ConstantRateDoesNotDrift) {
  // A third of a millisecond has no finite binary form: a running sum would drift.
  ArrivalWalk walk(Arrival::kConstant, 3000, 1);
  Duration last{0};
  for (int i = 0; i < 3'000'000; ++i) last = walk.next();
  EXPECT_NEAR(static_cast<double>(last.count()), 1e12 - 1e9 / 6000, 1);
}

TEST(ArrivalWalk, PoissonGapsHaveTheMeanAndSpreadOfAnExponential) {
  constexpr int kCount = 100'000;
  constexpr double kRate = 50;
  ArrivalWalk walk(Arrival::kPoisson, kRate, 7);
  double sum = 0, squares = 0;
  Duration previous{0};
  for (int i = 0; i < kCount; ++i) {
    const Duration at = walk.next();
    ASSERT_GE(at, previous);
    const double gap = to_seconds(at - previous) * kRate;
    sum += gap;
    squares += gap * gap;
    previous = at;
  }
  const double mean = sum / kCount;
  const double cv = std::sqrt(squares / kCount - mean * mean) / mean;
  // Standard errors: 1/sqrt(n) = 0.0032 for the mean and for the coefficient of variation.
  EXPECT_NEAR(mean, 1, 0.015);
  EXPECT_NEAR(cv, 1, 0.015);
}

TEST(ArrivalWalk, PoissonHasNoBurstAtTheStart) {
  // The first gap is drawn like the rest: over many seeds its mean is 1/rate, and the count of the
  // first second that of a Poisson process.
  constexpr int kSeeds = 4000;
  constexpr double kRate = 10;
  double first_sum = 0;
  std::int64_t count = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    first_sum += to_seconds(ArrivalWalk(Arrival::kPoisson, kRate, seed).next());
    count += arrivals_within(Arrival::kPoisson, kRate, seed, 1s);
  }
  // Five standard errors: 0.1/sqrt(4000) and sqrt(10/4000).
  EXPECT_NEAR(first_sum / kSeeds, 1 / kRate, 5 * 0.1 / std::sqrt(kSeeds));
  EXPECT_NEAR(static_cast<double>(count) / kSeeds, kRate, 5 * std::sqrt(kRate / kSeeds));
}

TEST(ArrivalWalk, OneSeedOneSchedule) {
  const auto schedule = [](std::uint64_t seed) {
    ArrivalWalk walk(Arrival::kPoisson, 20, seed);
    std::vector<Duration> out;
    for (int i = 0; i < 100; ++i) out.push_back(walk.next());
    return out;
  };
  EXPECT_EQ(schedule(1), schedule(1));
  EXPECT_NE(schedule(1), schedule(2));
}

TEST(ArrivalWalk, TinyRatesSaturateInsteadOfOverflowing) {
  ArrivalWalk walk(Arrival::kConstant, 1e-300, 1);
  const Duration first = walk.next();
  EXPECT_GT(first, Duration(0));
  EXPECT_EQ(walk.next(), first);
}

}  // namespace
}  // namespace assay
