#include "study/measure/checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/host.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "study/measure/beyond_audit.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {
namespace {

constexpr double kLeastAchieved = 0.98;
constexpr double kLagFloorUs = 1000;      // 1 ms
constexpr double kLagShare = 0.01;        // of the median latency that it would blur
constexpr double kMostUserStamps = 0.01;  // beyond it the receive lag is enforced
constexpr double kMostBusy = 0.80;
constexpr double kMostLittle = 0.10;
constexpr double kLittleStays = 20;  // in a shorter window its edges alone weigh as much
constexpr double kMostPromptError = 0.10;
constexpr double kMostShort = 0.01;
constexpr double kMostOfALimit = 0.80;  // of the machine's descriptors or ports
constexpr const char* kNoHost = "the machine's limits were not written down";

Check make(std::string_view name, CheckKind kind, std::string_view unit) {
  Check check;
  check.name = name;
  check.kind = kind;
  check.unit = unit;
  return check;
}

Check skipped(Check check, std::string why) {
  check.status = CheckStatus::kSkipped;
  check.advice = std::move(why);
  return check;
}

enum class Bound : std::uint8_t { kAtMost, kAtLeast };
Check judged(Check check, double value, Bound bound, double limit, std::string advice) {
  check.value = value;
  check.limit = limit;
  const bool good = bound == Bound::kAtMost ? value <= limit : value >= limit;
  check.status = good ? CheckStatus::kPass : CheckStatus::kFail;
  if (!good) check.advice = std::move(advice);
  return check;
}

/// Median of a distribution in us; of few values, where no percentile is shown, their mean.
MaybeNumber typical_us(const Distribution& d) {
  const MaybeNumber& ms = d.percentiles[kP50].value ? d.percentiles[kP50].value : d.mean;
  if (!ms) return std::nullopt;
  return *ms * 1e3;
}

double lag_limit_us(const Distribution& blurred) {
  return std::max(kLagFloorUs, kLagShare * typical_us(blurred).value_or(0));
}

/// Could the instrument have sent it? Not when the target took no connection, or the user's own
/// bounds kept it waiting to the end.
bool sendable(const RequestRecord& r) {
  if (r.send_start) return true;
  switch (r.outcome) {
    case Outcome::kConnect:
    case Outcome::kTls:
    case Outcome::kRefusedByClient:
      return false;
    case Outcome::kTimeout:
    case Outcome::kCancelled:
      return r.admitted.has_value();
    default:
      return true;
  }
}

constexpr const char* kSlowClient =
    "the client did not keep its schedule: lower --rate, or give it more cores";

Check achieved_rate(const Ledger& ledger, const Population& population, const Measurement& m) {
  Check check = make("achieved_rate", CheckKind::kMust, "share");
  if (!m.spec.load.rate) return skipped(std::move(check), "a closed loop has no offered rate");
  if (population.cohort.empty()) return skipped(std::move(check), "nothing was scheduled");
  const RunTime grace = population.window() / 100;
  std::int64_t due = 0;
  std::int64_t sent = 0;
  for (const std::size_t i : population.cohort) {
    const RequestRecord& r = ledger.requests[i];
    if (!sendable(r) || r.admitted.value_or(r.scheduled) > population.end) continue;
    ++due;
    if (r.send_start && *r.send_start <= population.end + std::max<RunTime>(grace, 1ms)) ++sent;
  }
  if (due == 0) return skipped(std::move(check), "no request was due in the window");
  double share = static_cast<double>(sent) / static_cast<double>(due);
  if (m.run.state != "complete") {
    // What was in flight when the run broke off was never recorded, and was no failure of ours.
    return judged(std::move(check), share, Bound::kAtLeast, kLeastAchieved, kSlowClient);
  }
  // Requests that were never even recorded: the drawn schedule holds rate · window of them, give or
  // take three standard deviations of a Poisson count.
  const double planned = *m.spec.load.rate * to_seconds(population.window());
  const double chance = m.spec.load.arrival == Arrival::kPoisson ? 3 * std::sqrt(planned) : 1;
  if (planned > chance) {
    const double recorded = static_cast<double>(population.cohort.size());
    share = std::min(share, recorded / (planned - chance));
  }
  return judged(std::move(check), share, Bound::kAtLeast, kLeastAchieved, kSlowClient);
}

Check send_lag_check(const Measurement& m) {
  Check check = make("send_lag", CheckKind::kMust, "us");
  if (!m.client.send_lag_us.p99) return skipped(std::move(check), "nothing was sent");
  return judged(std::move(check), *m.client.send_lag_us.p99, Bound::kAtMost,
                lag_limit_us(m.latency.ttft_ms),
                "requests left late (p99): give the client more cores, lower the load, or try "
                "--precise");
}

Check receive_lag_check(const Measurement& m) {
  Check check = make("receive_lag", CheckKind::kMust, "us");
  const MaybeNumber share = m.client.kernel_stamp_share;
  if (!share) return skipped(std::move(check), "nothing was received");
  const double limit = lag_limit_us(m.latency.icl_ms);
  if (1 - *share <= kMostUserStamps) {
    check.value = m.client.receive_lag_us.p99;
    check.limit = limit;
    check.status = CheckStatus::kPass;
    check.advice = "at least 99 % of reads carry a kernel stamp, which no lag of ours can move";
    return check;
  }
  // A read without a kernel stamp has no lag of its own: the loop that read it is judged instead.
  const bool some = *share > 0 && m.client.receive_lag_us.p99.has_value();
  const MaybeNumber lag = some ? m.client.receive_lag_us.p99 : m.client.send_lag_us.p99;
  if (!lag) return skipped(std::move(check), "no lag of the event loop is known");
  return judged(std::move(check), *lag, Bound::kAtMost, limit,
                some ? "reads without a kernel stamp are as late as the loop that read them (p99 "
                       "of its stamped reads): give the client more cores"
                     : "no read carried a kernel stamp, so the loop's lag is taken from its sends "
                       "(p99): give the client more cores");
}

bool disordered(const RequestRecord& r) {
  RunTime previous = r.send_start.value_or(r.scheduled);
  for (const MaybeTime& t : {r.first_event, r.first_token, r.last_token}) {
    if (!t) continue;
    if (*t < previous) return true;
    previous = *t;
  }
  return false;
}

Check clock_steps(const Ledger& ledger) {
  Check check = make("clock_steps", CheckKind::kMust, "requests");
  const std::string steps = ledger.meta_or(meta::kClockSteps, "0");
  const auto wrong = std::ranges::count_if(ledger.requests, disordered);
  check = judged(std::move(check), static_cast<double>(wrong), Bound::kAtMost, 0,
                 "requests whose instants run backwards: the clock stepped and a stamp slipped "
                 "through; repeat the run");
  if (check.status == CheckStatus::kPass && steps != "0" && !steps.empty() && steps != "[]") {
    check.advice =
        "the wall clock stepped during the run; no latency was touched, since stamps "
        "are mapped by age";
  }
  return check;
}

Check records_lost(const Ledger& ledger) {
  Check check = make("records_lost", CheckKind::kMust, "records");
  if (ledger.workers.empty()) {
    return skipped(std::move(check), "the run ended before its workers could tell");
  }
  std::int64_t lost = 0;
  for (const WorkerRow& w : ledger.workers) lost += w.lost;
  return judged(std::move(check), static_cast<double>(lost), Bound::kAtMost, 0,
                "records could not be written: is the ledger's disk slow or full?");
}

Check worker_busy(const Measurement& m) {
  Check check = make("worker_busy", CheckKind::kAdvisory, "share");
  if (!m.client.busy_share) return skipped(std::move(check), "the workers did not tell");
  return judged(std::move(check), *m.client.busy_share, Bound::kAtMost, kMostBusy,
                "the busiest worker is near its limit: add --workers or cores");
}

/// Little's law, L = λ·W, over the window: how far the mean number in flight lies from arrivals ×
/// mean stay. It holds in a steady state only, so a large residual says that the window isn't one.
MaybeNumber little_residual(const Ledger& ledger, const Population& population) {
  const double window = to_seconds(population.window());
  if (window <= 0 || population.cohort.empty()) return std::nullopt;
  double in_flight = 0;
  for (const RequestRecord& r : ledger.requests) {
    if (!r.done) continue;
    const RunTime from = std::max(r.scheduled, population.start);
    const RunTime to = std::min(*r.done, population.end);
    if (to > from) in_flight += to_seconds(to - from);
  }
  double stay = 0;
  for (const std::size_t i : population.cohort) {
    const RequestRecord& r = ledger.requests[i];
    if (r.done) stay += to_seconds(*r.done - r.scheduled);
  }
  const double mean_stay = stay / static_cast<double>(population.cohort.size());
  if (in_flight <= 0 || window < kLittleStays * mean_stay) return std::nullopt;
  return std::abs(in_flight - stay) / in_flight;
}

Check littles_law(const Ledger& ledger, const Population& population) {
  Check check = make("littles_law", CheckKind::kAdvisory, "share");
  const MaybeNumber residual = little_residual(ledger, population);
  if (!residual) {
    return skipped(std::move(check), "the window is shorter than twenty mean stays");
  }
  return judged(std::move(check), *residual, Bound::kAtMost, kMostLittle,
                "requests in flight and arrivals × stay disagree: the window is not steady; "
                "lengthen --warmup or --duration");
}

Check prompt_agreement(const Measurement& m) {
  Check check = make("planned_vs_server_prompt_tokens", CheckKind::kAdvisory, "share");
  const Tokens& tokens = m.tokens;
  if (tokens.prompt_planned_counted.value_or(0) <= 0) {
    return skipped(std::move(check), "the server told no prompt tokens");
  }
  const auto planned = static_cast<double>(*tokens.prompt_planned_counted);
  const std::int64_t each = tokens.template_per_request.value_or(0);
  const auto templates = static_cast<double>(each * tokens.prompts_counted);
  const double off = (static_cast<double>(*tokens.prompt_server_planned) - templates) / planned - 1;
  check = judged(std::move(check), std::abs(off), Bound::kAtMost, kMostPromptError,
                 "the server counts other prompt lengths than planned: without a tokenizer "
                 "lengths are estimates; compare runs by the server's count");
  if (check.status == CheckStatus::kPass && each > 0) {
    check.advice = fmt::format("without the {} tokens of chat template in each request", each);
  }
  return check;
}

Check short_replies(const Ledger& ledger, const Population& population) {
  Check check = make("short_replies", CheckKind::kAdvisory, "share");
  std::int64_t told = 0;
  std::int64_t short_of = 0;
  for (const std::size_t i : population.measured) {
    const RequestRecord& r = ledger.requests[i];
    if (r.outcome != Outcome::kOk || !r.tokens_asked_output || !r.tokens_server_output) continue;
    ++told;
    if (*r.tokens_server_output < *r.tokens_asked_output) ++short_of;
  }
  if (told == 0) return skipped(std::move(check), "the server told no output tokens");
  return judged(std::move(check), static_cast<double>(short_of) / static_cast<double>(told),
                Bound::kAtMost, kMostShort,
                "replies are shorter than asked: does the engine take ignore_eos or min_tokens?");
}

Check kernel_stamps(const Measurement& m) {
  Check check = make("kernel_stamp_share", CheckKind::kAdvisory, "share");
  if (!m.client.kernel_stamp_share) return skipped(std::move(check), "nothing was received");
  return judged(std::move(check), *m.client.kernel_stamp_share, Bound::kAtLeast,
                1 - kMostUserStamps,
                "reads were stamped in user space: does the socket or the kernel refuse "
                "SO_TIMESTAMPNS?");
}

Check builder_stalls(const Measurement& m) {
  Check check = make("builder_stalls", CheckKind::kAdvisory, "requests");
  if (!m.client.builder_stalls) return skipped(std::move(check), "the workers did not tell");
  return judged(std::move(check), static_cast<double>(*m.client.builder_stalls), Bound::kAtMost, 0,
                "request bytes were not ready at their instant: give the client more cores");
}

/// Most requests that were on the wire at once: from the first send() to the end.
std::int64_t most_in_flight(const Ledger& ledger) {
  std::vector<std::pair<RunTime, int>> steps;
  for (const RequestRecord& r : ledger.requests) {
    if (!r.send_start || !r.done) continue;
    steps.emplace_back(*r.send_start, 1);
    steps.emplace_back(*r.done, -1);  // sorts before a start at the same instant
  }
  std::ranges::sort(steps);
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [at, step] : steps) most = std::max(most, now += step);
  return most;
}

Check descriptors(const Ledger& ledger, const Host& host) {
  Check check = make("descriptors", CheckKind::kAdvisory, "share");
  if (host.descriptors.value_or(0) <= 0) return skipped(std::move(check), kNoHost);
  const double share =
      static_cast<double>(most_in_flight(ledger)) / static_cast<double>(*host.descriptors);
  return judged(std::move(check), share, Bound::kAtMost, kMostOfALimit,
                "the requests in flight nearly used up the file descriptors: raise the hard limit "
                "(`ulimit -Hn`)");
}

/// A port rests for a minute after its connection was closed from this side.
Check ports(const Measurement& m, const Host& host) {
  Check check = make("ports", CheckKind::kAdvisory, "share");
  if (host.local_ports.value_or(0) <= 0) return skipped(std::move(check), kNoHost);
  if (!m.client.connects) return skipped(std::move(check), "the workers did not tell");
  constexpr double kRestSeconds = 60;
  const double minutes = std::max(1.0, m.run.duration_s / kRestSeconds);
  const double share =
      static_cast<double>(*m.client.connects) / minutes / static_cast<double>(*host.local_ports);
  return judged(std::move(check), share, Bound::kAtMost, kMostOfALimit,
                "new connections a minute nearly used up the local ports: keep connections alive, "
                "or widen net.ipv4.ip_local_port_range");
}

/// Known questions that nothing in this ledger can answer.
void add_unanswered(std::vector<Check>& checks) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kUnanswered{{
      {"cpu_steal", "the host was not sampled"},
      {"cgroup_throttling", "the host was not sampled"},
      {"tcp_retransmits", "the host was not sampled"},
      {"client_vs_server_tokens", "the server's counters were not read"},
      {"cache_hits", "no cache hits were designed"},
  }};
  for (const auto& [name, why] : kUnanswered) {
    checks.push_back(skipped(make(name, CheckKind::kAdvisory, ""), std::string(why)));
  }
}

}  // namespace

const Check* Validity::find(std::string_view name) const {
  const auto found = std::ranges::find(checks, name, &Check::name);
  return found == checks.end() ? nullptr : &*found;
}

Validity validity_of(const Ledger& ledger, const Population& population, const Measurement& m) {
  const Host host = host_from_json(ledger.meta_or(meta::kHost));
  Validity validity;
  validity.checks = {achieved_rate(ledger, population, m),
                     send_lag_check(m),
                     receive_lag_check(m),
                     clock_steps(ledger),
                     records_lost(ledger),
                     skipped(make("prompt_tokens", CheckKind::kMust, "tokens"),
                             "no tokenizer was given to count the prompts with"),
                     worker_busy(m),
                     kernel_stamps(m),
                     builder_stalls(m),
                     littles_law(ledger, population),
                     prompt_agreement(m),
                     short_replies(ledger, population),
                     descriptors(ledger, host),
                     ports(m, host)};
  add_unanswered(validity.checks);
  validity.checks.push_back(beyond_audit(ledger));
  validity.valid = std::ranges::none_of(validity.checks, [](const Check& check) {
    return check.kind == CheckKind::kMust && check.status == CheckStatus::kFail;
  });
  return validity;
}

}  // namespace assay
