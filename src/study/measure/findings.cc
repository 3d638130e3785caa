#include "study/measure/findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "base/stats/trend.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {
namespace {

constexpr double kMaterialDrift = 0.20;
constexpr double kCoalesced = 1.5;  // chunks per read
constexpr double kNagle = 2.2;      // up to here it looks like pairs
constexpr double kStallMs = 1000;   // a gap that a person notices
constexpr double kStallTimesTypical = 10;
constexpr double kCachedShare = 0.10;         // below it nobody needs to be told
constexpr double kSuspectCachedShare = 0.20;  // beyond it, and with more tokens a request than
constexpr double kMostOfTemplate = 64;        // a chat template shares, the salt is in doubt

using Maybe = std::optional<Finding>;

Maybe nothing_measured(const Measurement& m) {
  if (m.requests.scheduled > 0) return std::nullopt;
  return Finding{"nothing_measured",
                 "no request was scheduled after warm-up: the run is too short"};
}

bool refuses_exact(const FailureClass& failure) {
  return failure.outcome == Outcome::kHttpError &&
         (failure.example.find("ignore_eos") != std::string::npos ||
          failure.example.find("min_tokens") != std::string::npos);
}

Maybe errors(const Measurement& m) {
  if (m.requests.failed == 0) return std::nullopt;
  std::string classes;
  for (const FailureClass& failure : m.requests.failures) {
    if (failure.outcome == Outcome::kRefusedByClient) continue;
    if (!classes.empty()) classes += ", ";
    classes += fmt::format("{} × {}{}", failure.count, outcome_name(failure.outcome),
                           failure.code.empty() ? "" : " " + failure.code);
  }
  return Finding{"errors", fmt::format("{} of {} requests failed: {}", m.requests.failed,
                                       m.requests.scheduled, classes)};
}

Maybe exact_output_refused(const Measurement& m) {
  if (!m.spec.workload.exact_output || !std::ranges::any_of(m.requests.failures, refuses_exact)) {
    return std::nullopt;
  }
  return Finding{"exact_output_refused",
                 "the server does not take ignore_eos or min_tokens: --set "
                 "workload.exact_output=false leaves them out"};
}

Maybe refused(const Measurement& m) {
  if (m.requests.refused == 0) return std::nullopt;
  return Finding{"refused", fmt::format("{} of {} requests met a full queue and were not sent",
                                        m.requests.refused, m.requests.scheduled)};
}

Maybe not_steady(const Measurement& m, const std::optional<Trend>& drift) {
  if (!drift) return std::nullopt;
  const double percent = 100 * std::abs(drift->change);
  const char* const metric = m.spec.target.stream ? "TTFT" : "E2E";
  if (drift->change > 0) {
    return Finding{"not_steady",
                   fmt::format("NOT STEADY: {} grew by {:.0f} % of its mean over the window; the "
                               "target can't keep up with this load. Steady rates are withheld",
                               metric, percent)};
  }
  return Finding{"not_steady",
                 fmt::format("NOT STEADY: {} fell by {:.0f} % of its mean over the window; it was "
                             "still warming up. Steady rates are withheld; lengthen --warmup",
                             metric, percent)};
}

Maybe short_replies(const Measurement& m) {
  const Check* check = m.validity.find("short_replies");
  if (check == nullptr || !check->value || *check->value <= 0) return std::nullopt;
  return Finding{"short_replies",
                 fmt::format("{:.1f} % of the replies have fewer tokens than were asked for",
                             100 * *check->value)};
}

Maybe malformed(const Measurement& m) {
  if (m.client.malformed.value_or(0) == 0) return std::nullopt;
  return Finding{"malformed_events",
                 fmt::format("{} of {} events could not be understood and were skipped",
                             *m.client.malformed, m.client.events)};
}

Maybe damaged(const Measurement& m) {
  if (m.damaged_chunks == 0) return std::nullopt;
  return Finding{"damaged_chunks",
                 fmt::format("the chunks of {} requests are damaged in the ledger: what is drawn "
                             "from them (ICL, ITL, rates) is too low or missing",
                             m.damaged_chunks)};
}

Maybe coalesced(const Measurement& m) {
  if (!m.latency.chunks_per_read) return std::nullopt;
  const double per_read = *m.latency.chunks_per_read;
  if (per_read < kCoalesced) return std::nullopt;
  return Finding{
      "coalesced_events",
      fmt::format("chunks arrive in groups of {:.1f}: {}", per_read,
                  per_read <= kNagle
                      ? "does the server leave Nagle's algorithm on (no TCP_NODELAY)?"
                      : "the server or a proxy gathers them, so ICL shows bursts, not tokens")};
}

Maybe stall(const Measurement& m) {
  if (!m.spec.load.concurrency) return std::nullopt;
  const MaybeNumber& worst =
      m.latency.worst_gap_ms.max ? m.latency.worst_gap_ms.max : m.latency.worst_gap_ms.max_at_least;
  const MaybeNumber& typical = m.latency.icl_ms.percentiles[kP50].value;
  if (!worst || !typical) return std::nullopt;
  if (*worst < std::max(kStallMs, kStallTimesTypical * *typical)) return std::nullopt;
  return Finding{"latency_under_back_pressure",
                 fmt::format("a stream stood still for {:.0f} ms; in a closed loop such a stall "
                             "delays the next requests, so its whole cost is not in the figures "
                             "(an open loop, --rate, would show it)",
                             *worst)};
}

Maybe cache_hits(const Measurement& m) {
  if (!m.tokens.cached || m.tokens.prompt_server.value_or(0) <= 0) return std::nullopt;
  const double share =
      static_cast<double>(*m.tokens.cached) / static_cast<double>(*m.tokens.prompt_server);
  if (share < kCachedShare || !m.spec.workload.prompt.empty()) return std::nullopt;
  const double each = m.tokens.cached_per_request.value_or(0);
  std::string text = fmt::format(
      "the server took {:.0f} tokens a request ({:.0f} % of the prompt tokens) from its prefix "
      "cache",
      each, 100 * share);
  if (each <= kMostOfTemplate) {
    text += ": the start of a chat template, which all requests share, explains so many";
  } else if (share > kSuspectCachedShare) {
    text += ", although each run has its own salt: was this salt used before?";
  }
  return Finding{"prefix_cache_hits", std::move(text)};
}

Maybe same_prompt(const Measurement& m) {
  if (m.spec.workload.prompt.empty() || m.requests.scheduled <= 1) return std::nullopt;
  return Finding{"same_prompt",
                 "every request carries the same prompt (--prompt): a prefix cache makes all but "
                 "the first look fast"};
}

}  // namespace

std::optional<Trend> latency_drift(const Ledger& ledger, const Population& population,
                                   const Spec& spec) {
  std::vector<std::int64_t> series;
  for (const std::size_t i : population.cohort) {
    const RequestRecord& r = ledger.requests[i];
    const bool cut = r.outcome == Outcome::kTimeout || r.outcome == Outcome::kCancelled;
    if (r.outcome != Outcome::kOk && !cut) continue;
    const MaybeTime end = spec.target.stream && r.first_token ? r.first_token : r.done;
    if (end) series.push_back((*end - r.scheduled).count());
  }
  const std::optional<Trend> trend = trend_of(series);
  if (!trend || !trend->significant() || std::abs(trend->change) < kMaterialDrift) {
    return std::nullopt;
  }
  return trend;
}

std::vector<Finding> findings_of(const Ledger& ledger, const Measurement& m,
                                 const std::optional<Trend>& drift) {
  std::vector<Finding> out;
  for (Maybe& finding :
       std::vector<Maybe>{nothing_measured(m), not_steady(m, drift), errors(m),
                          exact_output_refused(m), damaged(m), refused(m), short_replies(m),
                          malformed(m), coalesced(m), stall(m), cache_hits(m), same_prompt(m)}) {
    if (finding) out.push_back(std::move(*finding));
  }
  for (const EventRow& event : ledger.events) {
    if (event.kind == "warning") out.push_back({"warning", event.detail});
  }
  return out;
}

}  // namespace assay
