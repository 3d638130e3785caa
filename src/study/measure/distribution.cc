#include "study/measure/distribution.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/stats/interval.h"
#include "base/stats/mean.h"
#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "base/stats/survival.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

double ms(double ns) { return ns / 1e6; }
double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

MaybeInterval mean_interval_ms(std::span<const std::int64_t> values) {
  const MaybeInterval ns = mean_interval(values);
  if (!ns) return std::nullopt;
  return Interval{ms(ns->low), ms(ns->high)};
}

void set_intervals(Distribution& d, std::span<const std::int64_t> values,
                   std::span<const std::int64_t> quantiles) {
  std::vector<std::size_t> ranks;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    if (!d.percentiles.at(i).value) continue;
    const double effective = effective_count(values, kPercentiles.at(i), quantiles[i]);
    if (i == kP99) d.effective_n = effective;
    const auto interval = quantile_ranks(kPercentiles.at(i), values.size(), effective);
    if (!interval) continue;
    owners.push_back(i);
    ranks.insert(ranks.end(), {interval->low, interval->high});
  }
  const std::vector<std::int64_t> ends = select_ranks(values, ranks);
  for (std::size_t k = 0; k < owners.size(); ++k) {
    d.percentiles.at(owners[k]).interval = Interval{ms(ends[2 * k]), ms(ends[2 * k + 1])};
  }
}

double mean_of(std::span<const std::int64_t> values) {
  double sum = 0;
  for (const std::int64_t v : values) sum += static_cast<double>(v);
  return sum / static_cast<double>(values.size());
}

Distribution empty(std::size_t n, std::string why_null) {
  Distribution d;
  d.n = static_cast<std::int64_t>(n);
  d.effective_n = static_cast<double>(n);
  if (n == 0) d.why_null = std::move(why_null);
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    d.percentiles.at(i).needs = static_cast<std::int64_t>(quantile_needs(kPercentiles.at(i)));
  }
  return d;
}

Percentile survival_percentile(const KaplanMeier& curve, double p, std::size_t n,
                               double effective) {
  Percentile out;
  out.needs = static_cast<std::int64_t>(quantile_needs(p));
  if (n < quantile_needs(p)) return out;
  const std::optional<std::int64_t> value = curve.quantile(p);
  if (!value) {
    out.at_least = ms(curve.longest());
    return out;
  }
  out.value = ms(*value);
  // The rank interval read off the survival curve: a share of ranks is a share of requests.
  const auto ranks = quantile_ranks(p, n, effective);
  if (!ranks) return out;
  const auto all = static_cast<double>(n);
  const auto low = curve.quantile(static_cast<double>(ranks->low) / all);
  const auto high = curve.quantile(static_cast<double>(ranks->high) / all);
  if (!low) return out;
  out.interval = Interval{ms(*low), high ? ms(*high) : std::numeric_limits<double>::infinity()};
  return out;
}

void set_extremes(Distribution& d, const std::vector<Lifetime>& lifetimes) {
  Lifetime longest = lifetimes.front();
  for (const Lifetime& life : lifetimes) {
    const bool cut = life.end == Lifetime::End::kCensored;
    if (!cut) d.min = std::min(d.min.value_or(ms(life.time)), ms(life.time));
    // At a tie the cut-off one is the longer.
    if (life.time > longest.time || (life.time == longest.time && cut)) longest = life;
  }
  (longest.end == Lifetime::End::kCensored ? d.max_at_least : d.max) = ms(longest.time);
}

}  // namespace

Distribution distribution_ms(std::span<const std::int64_t> in_time_order, std::string why_null) {
  const std::size_t n = in_time_order.size();
  Distribution d = empty(n, std::move(why_null));
  if (n == 0) return d;
  std::vector<std::size_t> ranks{1, n};
  for (const double p : kPercentiles) ranks.push_back(nearest_rank(p, n));
  const std::vector<std::int64_t> found = select_ranks(in_time_order, ranks);
  d.min = ms(found[0]);
  d.max = ms(found[1]);
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    Percentile& percentile = d.percentiles.at(i);
    if (d.n >= percentile.needs) percentile.value = ms(found[2 + i]);
  }
  set_intervals(d, in_time_order, std::span<const std::int64_t>(found).subspan(2));
  d.mean = ms(mean_of(in_time_order));
  d.mean_interval = mean_interval_ms(in_time_order);
  return d;
}

Distribution distribution_ms(const std::vector<Lifetime>& in_time_order, std::string why_null) {
  std::vector<std::int64_t> times;
  times.reserve(in_time_order.size());
  std::int64_t censored = 0;
  for (const Lifetime& life : in_time_order) {
    times.push_back(life.time);
    if (life.end == Lifetime::End::kCensored) ++censored;
  }
  if (censored == 0) return distribution_ms(times, std::move(why_null));

  const std::size_t n = in_time_order.size();
  Distribution d = empty(n, {});
  d.censored = censored;
  const KaplanMeier curve(in_time_order);
  d.mean = ms(curve.restricted_mean());
  set_extremes(d, in_time_order);
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    const double p = kPercentiles.at(i);
    const auto at = curve.quantile(p);
    const double effective = effective_count(times, p, at.value_or(curve.longest()));
    if (i == kP99) d.effective_n = effective;
    d.percentiles.at(i) = survival_percentile(curve, p, n, effective);
  }
  return d;
}

}  // namespace assay
