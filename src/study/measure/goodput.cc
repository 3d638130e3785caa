#include "study/measure/goodput.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/core/check.h"
#include "base/core/time.h"
#include "base/stats/interval.h"
#include "base/stats/share.h"
#include "domain/spec/spec.h"
#include "study/measure/attempt.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

std::optional<Duration> time_of(const MaybeSpan& span) {
  if (!span) return std::nullopt;
  return span->time;
}

std::optional<Duration> metric_of(const Attempt& attempt, SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return time_of(attempt.ttft);
    case SloMetric::kTtfo:
      return time_of(attempt.ttfo);
    case SloMetric::kTpot:
      return attempt.tpot;
    case SloMetric::kItl:
      return attempt.itl_mean;
    case SloMetric::kIcl:
      return attempt.icl_mean;
    case SloMetric::kWorstGap:
      return time_of(attempt.worst_gap);
    case SloMetric::kE2e:
      return time_of(attempt.e2e);
    case SloMetric::kServiceTtft:
      return time_of(attempt.service_ttft);
    case SloMetric::kServiceE2e:
      return time_of(attempt.service_e2e);
  }
  CHECK(false, "unknown SLO metric {}", static_cast<int>(metric));
}

bool meets(const Attempt& attempt, const SloItem& item) {
  if (!attempt.complete) return false;
  const auto value = metric_of(attempt, item.metric);
  return !value || *value <= item.limit;
}

SloResult result_of(std::span<const Attempt> cohort, const SloItem& item) {
  SloResult out;
  out.metric = item.metric;
  out.limit_ms = to_ms(item.limit);
  out.target = item.attainment;
  for (const Attempt& attempt : cohort) {
    if (meets(attempt, item)) ++out.met_by;
    if (attempt.complete && !metric_of(attempt, item.metric)) ++out.null_passed;
  }
  const auto n = static_cast<std::int64_t>(cohort.size());
  if (n == 0) return out;
  out.share = static_cast<double>(out.met_by) / static_cast<double>(n);
  out.share_interval = share_interval(out.met_by, n);
  out.met = *out.share >= item.attainment;
  return out;
}

}  // namespace

Goodput goodput_of(std::span<const Attempt> cohort, const Spec& spec, MaybeNumber window_s) {
  Goodput out;
  if (spec.slo.empty()) return out;
  for (const SloItem& item : spec.slo) out.slo.push_back(result_of(cohort, item));
  out.cohort = static_cast<std::int64_t>(cohort.size());
  out.good = std::ranges::count_if(cohort, [&spec](const Attempt& attempt) {
    return std::ranges::all_of(spec.slo,
                               [&attempt](const SloItem& item) { return meets(attempt, item); });
  });
  if (out.cohort == 0) return out;
  out.good_share = static_cast<double>(out.good) / static_cast<double>(out.cohort);
  out.good_share_interval = share_interval(out.good, out.cohort);
  if (!window_s) return out;
  out.good_rps.value = static_cast<double>(out.good) / *window_s;
  out.good_rps.interval =
      Interval{out.good_share_interval->low * static_cast<double>(out.cohort) / *window_s,
               out.good_share_interval->high * static_cast<double>(out.cohort) / *window_s};
  return out;
}

}  // namespace assay
