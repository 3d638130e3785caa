#include "base/stats/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/core/check.h"
#include "base/stats/distribution.h"
#include "base/stats/interval.h"

namespace assay {
namespace {

constexpr double kTail = (1 - kConfidence) / 2;
constexpr std::size_t kBatches = 20;
constexpr std::size_t kLeastPerBatch = 8;

/// The smallest k in 0…n with P(B ≤ k) ≥ level.
std::int64_t binomial_quantile(double level, std::int64_t n, double p) {
  std::int64_t low = 0;
  std::int64_t high = n;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (binomial_cdf(middle, n, p) >= level) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

std::size_t nearest_rank(double p, std::size_t n) {
  CHECK(p > 0 && p < 1 && n >= 1, "p {} n {}", p, n);
  const double product = p * static_cast<double>(n);
  // 0.99 · 100 is 99.00000000000001 or less in binary: what is an integer in decimal must stay one.
  const double nearest = std::round(product);
  const bool whole = std::abs(product - nearest) <= 1e-9 * std::max(1.0, product);
  const double rank = whole ? nearest : std::ceil(product);
  return std::clamp<std::size_t>(static_cast<std::size_t>(rank), 1, n);
}

std::size_t quantile_needs(double p) {
  CHECK(p > 0 && p < 1, "p {}", p);
  // The extremes must leave at most 2.5 % on their sides: p^n and (1 − p)^n.
  return static_cast<std::size_t>(std::ceil(std::log(kTail) / std::log(std::max(p, 1 - p))));
}

std::optional<RankInterval> quantile_ranks(double p, std::size_t n) {
  if (n < quantile_needs(p)) return std::nullopt;
  const auto count = static_cast<std::int64_t>(n);
  // low: the largest l with P(B < l) ≤ 2.5 %; high: the smallest u with P(B ≥ u) ≤ 2.5 %.
  std::int64_t low = binomial_quantile(kTail, count, p);
  if (binomial_cdf(low, count, p) <= kTail) ++low;
  const std::int64_t high = binomial_quantile(1 - kTail, count, p) + 1;
  if (low < 1 || high > count) return std::nullopt;
  return RankInterval{static_cast<std::size_t>(low), static_cast<std::size_t>(high)};
}

std::optional<RankInterval> quantile_ranks(double p, std::size_t n, double effective) {
  CHECK(effective >= 0 && effective <= static_cast<double>(n), "{} of {}", effective, n);
  const auto worth = static_cast<std::size_t>(effective);
  const std::optional<RankInterval> ranks = quantile_ranks(p, worth);
  if (!ranks || worth == n) return ranks;
  const double scale = static_cast<double>(n) / static_cast<double>(worth);
  const auto low = static_cast<std::size_t>(std::floor(static_cast<double>(ranks->low) * scale));
  const auto high = static_cast<std::size_t>(std::ceil(static_cast<double>(ranks->high) * scale));
  return RankInterval{std::max<std::size_t>(low, 1), std::min(high, n)};
}

double effective_count(std::span<const std::int64_t> in_time_order, double p,
                       std::int64_t quantile) {
  const std::size_t n = in_time_order.size();
  const auto all = static_cast<double>(n);
  const std::size_t size = n / kBatches;
  if (size < kLeastPerBatch) return all;
  double sum = 0;
  double squares = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const auto batch = in_time_order.subspan(b * size, size);
    const auto below =
        std::ranges::count_if(batch, [quantile](std::int64_t x) { return x <= quantile; });
    const double mean = static_cast<double>(below) / static_cast<double>(size);
    sum += mean;
    squares += mean * mean;
  }
  constexpr auto kCount = static_cast<double>(kBatches);
  const double variance = std::max(0.0, squares - sum * sum / kCount) / (kCount - 1);
  const double independent = p * (1 - p) / static_cast<double>(size);
  const double ratio = variance / independent;
  const double significant = chi_squared_quantile(0.95, kCount - 1) / (kCount - 1);
  return ratio <= significant ? all : all / ratio;
}

}  // namespace assay
