#include "base/stats/distribution.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cstdint>

#include "base/core/check.h"

namespace assay {

double student_t_quantile(double p, double degrees_of_freedom) {
  CHECK(p > 0 && p < 1 && degrees_of_freedom > 0, "p {} dof {}", p, degrees_of_freedom);
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), p);
}

double chi_squared_quantile(double p, double degrees_of_freedom) {
  CHECK(p > 0 && p < 1 && degrees_of_freedom > 0, "p {} dof {}", p, degrees_of_freedom);
  return boost::math::quantile(boost::math::chi_squared(degrees_of_freedom), p);
}

double binomial_cdf(std::int64_t k, std::int64_t n, double p) {
  CHECK(n >= 0 && p >= 0 && p <= 1, "n {} p {}", n, p);
  if (k < 0) return 0;
  if (k >= n) return 1;
  return boost::math::cdf(boost::math::binomial(static_cast<double>(n), p), static_cast<double>(k));
}

double beta_quantile(double p, double a, double b) {
  CHECK(p > 0 && p < 1 && a > 0 && b > 0, "p {} a {} b {}", p, a, b);
  return boost::math::quantile(boost::math::beta_distribution(a, b), p);
}

}  // namespace assay
