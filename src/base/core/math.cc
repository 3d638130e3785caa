#include "base/core/math.h"

#include <cmath>
#include <limits>

namespace assay {
namespace {
// ln 2 in two parts: the high one has 32 trailing zero bits, so k·kLn2High is exact for |k| < 2^11.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
}  // namespace

double exact_log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact; m in [0.5, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2): keep m near 1
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh(s), s = (m−1)/(m+1), |s| < 0.1716; the series to s^21 is below half an ulp.
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * s2;
  const double k = exponent;
  return k * kLn2High + (2 * s + (2 * s * sum + k * kLn2Low));
}

double exact_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double k = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| ≤ 0.3466
  double sum = 0;
  for (int n = 14; n >= 1; --n) sum = (sum + 1) * r / n;
  return std::ldexp(1 + sum, static_cast<int>(k));
}

}  // namespace assay
