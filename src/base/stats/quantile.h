// Quantiles by nearest rank and their distribution-free intervals. The p-quantile of n values is
// the ⌈p·n⌉-th smallest. Its 95 % interval is a pair of order statistics (l, u): the number of
// values below the true quantile is Binomial(n, p), whatever the distribution (David & Nagaraja,
// Order Statistics, 3rd ed., §7.1). Small n has no such pair: quantile_needs says how many values
// would. Values in time order that hang together carry less than n values' worth of news:
// effective_count estimates how much from the batch means of the indicator x ≤ q (Steiger et al.,
// Simulation output analysis; Law, Simulation Modeling and Analysis, 5th ed., §9.5), and the ranks
// widen accordingly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace assay {

/// ⌈p·n⌉, at least 1, with p·n taken exactly where p has few decimals. 0 < p < 1, n ≥ 1.
std::size_t nearest_rank(double p, std::size_t n);

/// The least n at which the 95 % interval of the p-quantile exists: 368 for p = 0.99.
std::size_t quantile_needs(double p);

struct RankInterval {
  std::size_t low = 0;  // ranks, 1 = smallest
  std::size_t high = 0;
};

/// Ranks of the 95 % interval of the p-quantile of n independent values; null when there is none.
std::optional<RankInterval> quantile_ranks(double p, std::size_t n);

/// The same for n values worth `effective` independent ones (effective ≤ n).
std::optional<RankInterval> quantile_ranks(double p, std::size_t n, double effective);

/// How many independent values n values in time order are worth for their p-quantile, whose value
/// is `quantile`. n itself unless the correlation is significant (chi-squared test at 5 %), so that
/// independent values aren't punished for chance.
double effective_count(std::span<const std::int64_t> in_time_order, double p,
                       std::int64_t quantile);

}  // namespace assay
