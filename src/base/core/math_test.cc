#include "base/core/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/core/random.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Distance in units in the last place of `truth`.
double ulps(double value, long double truth) {
  const auto near = static_cast<double>(truth);
  const double unit = std::abs(std::nextafter(near, kInf) - near);
  return static_cast<double>(std::abs(static_cast<long double>(value) - truth)) / unit;
}

TEST(ExactLog, WithinTwoUlpsOfLongDouble) {
  Draws draws = RandomStream(1, "log").at(0);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    // Half of them over all magnitudes, half around 1, where cancellation would show.
    const double x = i % 2 == 0 ? std::ldexp(0.5 + draws.uniform() / 2,
                                             static_cast<int>(draws.below(2000)) - 1000)
                                : 0.5 + 1.5 * draws.uniform();
    worst = std::max(worst, ulps(exact_log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2.0);
}

TEST(ExactExp, WithinTwoUlpsOfLongDouble) {
  Draws draws = RandomStream(1, "exp").at(0);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? 1416 * draws.uniform() - 708 : 4 * draws.uniform() - 2;
    worst = std::max(worst, ulps(exact_exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2.0);
}

TEST(ExactLog, SpecialValues) {
  EXPECT_EQ(exact_log(1), 0);
  EXPECT_EQ(exact_log(0), -kInf);
  EXPECT_EQ(exact_log(2), 0x1.62e42fefa39efp-1);
  EXPECT_NEAR(exact_log(5e-324), -744.4400719213812, 1e-12);
  EXPECT_NEAR(exact_log(std::numeric_limits<double>::max()), 709.782712893384, 1e-12);
}

TEST(ExactExp, SpecialValues) {
  EXPECT_EQ(exact_exp(0), 1);
  EXPECT_EQ(exact_exp(-kInf), 0);
  EXPECT_EQ(exact_exp(kInf), kInf);
  EXPECT_EQ(exact_exp(1000), kInf);
  EXPECT_EQ(exact_exp(-1000), 0);
  EXPECT_EQ(exact_exp(709.782712893384), std::exp(709.782712893384));  // the last finite ones
  EXPECT_EQ(exact_exp(709.7827128933841), kInf);
  EXPECT_EQ(exact_exp(-745.1332191019411), 5e-324);
  EXPECT_EQ(exact_exp(-745.1332191019412), 0);
}

TEST(ExactMath, AnswersOutsideItsRange) {
  EXPECT_TRUE(std::isnan(exact_log(std::nan(""))));
  EXPECT_TRUE(std::isnan(exact_exp(std::nan(""))));
  EXPECT_TRUE(std::isnan(exact_log(-1)));
  EXPECT_EQ(exact_log(kInf), kInf);
}

TEST(ExactMath, TheSameBitsEverywhere) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  EXPECT_EQ(exact_log(0.1), -0x1.26bb1bbb55515p+1);
  EXPECT_EQ(exact_log(3), 0x1.193ea7aad030bp+0);
  EXPECT_EQ(exact_log(1e300), 0x1.5963447f87fb5p+9);
  EXPECT_EQ(exact_exp(1), 0x1.5bf0a8b14576ap+1);
  EXPECT_EQ(exact_exp(-0.7), 0x1.fc80db9dd5542p-2);
  EXPECT_EQ(exact_exp(100.5), 0x1.fcc37a76f9e76p+144);
  // One number for a whole sweep: a changed bit anywhere changes it.
  std::uint64_t signature = 0;
  Draws draws = RandomStream(1, "sweep").at(0);
  for (int i = 0; i < 10'000; ++i) {
    const double x = draws.uniform();
    signature = signature * 31 + bits(exact_log(x)) + bits(exact_exp(100 * x - 50));
  }
  EXPECT_EQ(signature, 13296098693547920952U);
}

}  // namespace
}  // namespace assay
