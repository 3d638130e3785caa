// The few distribution functions that intervals and tests need, over Boost.Math (whose headers stay
// out of ours). Arguments outside the stated domain are bugs of the caller.
#pragma once

#include <cstdint>

namespace assay {

/// The t with P(T ≤ t) = p for Student's distribution. 0 < p < 1, degrees of freedom > 0.
double student_t_quantile(double p, double degrees_of_freedom);
/// The x with P(X ≤ x) = p for the chi-squared distribution. 0 < p < 1, degrees of freedom > 0.
double chi_squared_quantile(double p, double degrees_of_freedom);
/// P(B ≤ k) for B ~ Binomial(n, p). n ≥ 0; k may lie outside 0…n.
double binomial_cdf(std::int64_t k, std::int64_t n, double p);
/// The x with I_x(a, b) = p, the quantile of the beta distribution. a, b > 0, 0 < p < 1.
double beta_quantile(double p, double a, double b);

}  // namespace assay
