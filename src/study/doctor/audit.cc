#include "study/doctor/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "study/doctor/stamps.h"

namespace assay {
namespace {

using Nanos = std::vector<std::int64_t>;

Result<std::int64_t> clock_origin(const Ledger& ledger) {
  const std::optional<std::int64_t> origin = parse_int(ledger.meta_or(meta::kStartMonotonicNs));
  if (origin) return *origin;
  return usage_error(fmt::format("has no {}, so its instants can't be joined with another's",
                                 meta::kStartMonotonicNs),
                     ledger.path, "was the run stopped before its start?");
}

std::optional<std::int64_t> percentile(const Nanos& values, double p) {
  if (values.empty()) return std::nullopt;
  const std::size_t rank = nearest_rank(p, values.size());
  return select_ranks(values, std::span(&rank, 1)).front();
}

std::optional<double> scaled(std::optional<std::int64_t> ns, double unit_ns) {
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / unit_ns;
}

ErrorSummary summary_of(const Nanos& errors) {
  constexpr double kMs = 1e6;
  ErrorSummary out;
  out.n = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return out;
  double sum = 0;
  Nanos sizes;
  sizes.reserve(errors.size());
  for (const std::int64_t e : errors) {
    sum += static_cast<double>(e);
    sizes.push_back(std::abs(e));
  }
  out.bias_ms = sum / static_cast<double>(errors.size()) / kMs;
  out.p50_ms = scaled(percentile(sizes, 0.50), kMs);
  out.p99_ms = scaled(percentile(sizes, 0.99), kMs);
  out.max_ms = scaled(std::ranges::max(sizes), kMs);
  return out;
}

Nanos chunk_instants(const RequestRecord& record, std::int64_t origin) {
  Nanos instants;
  ChunkReader reader(record.chunks, record.scheduled);
  while (const std::optional<Chunk> chunk = reader.next()) {
    instants.push_back(origin + chunk->at.count());
  }
  return instants;
}

/// Two ledgers of the same requests, compared.
class Join {
 public:
  Join(const RungAsked& asked, std::int64_t client_origin, std::int64_t truth_origin)
      : client_origin_(client_origin), truth_origin_(truth_origin) {
    rung_.asked = asked;
  }

  Rung run(const Ledger& client, const Ledger& truth) {
    std::unordered_map<std::string_view, const RequestRecord*> by_id;
    for (const RequestRecord& r : truth.requests) by_id[r.request_id] = &r;
    if (rung_.asked.late_after) rung_.late = rung_.late_untold = 0;
    for (const RequestRecord& r : client.requests) {
      ++rung_.requests;
      if (r.outcome != Outcome::kOk) ++rung_.failed;
      if (r.send_start) send_lags_.push_back((*r.send_start - lag_from(r)).count());
      const auto found = by_id.find(r.request_id);
      if (found == by_id.end()) {
        ++rung_.unmatched;
        continue;
      }
      compare(r, *found->second);
      by_id.erase(found);
    }
    rung_.unmatched += static_cast<std::int64_t>(by_id.size());
    summarise();
    return std::move(rung_);
  }

 private:
  /// With few connections a request may have to wait for one, and that is no lag of the sender.
  [[nodiscard]] RunTime lag_from(const RequestRecord& r) const {
    if (rung_.asked.kind != RungKind::kStall) return r.scheduled;
    return std::max(r.scheduled, r.admitted.value_or(r.scheduled));
  }

  void compare(const RequestRecord& client, const RequestRecord& truth) {
    const Nanos told = chunk_instants(client, client_origin_);
    const Nanos sent = chunk_instants(truth, truth_origin_);
    const std::size_t both = std::min(told.size(), sent.size());
    rung_.chunks += static_cast<std::int64_t>(both);
    rung_.chunks_lost += static_cast<std::int64_t>(std::max(told.size(), sent.size()) - both);
    for (const std::int64_t at : sent) ++sends_by_ms_[at / 1'000'000];
    if (both == 0) return;
    for (std::size_t i = 0; i < both; ++i) {
      stamps_.push_back(std::abs(told[i] - sent[i]));
      if (i == 0) continue;
      const std::int64_t gap_told = told[i] - told[i - 1];
      const std::int64_t gap_true = sent[i] - sent[i - 1];
      gaps_told_.push_back(gap_told);
      gaps_true_.push_back(gap_true);
      gap_errors_.push_back(gap_told - gap_true);
    }
    first_errors_.push_back(told.front() - sent.front());
    last_errors_.push_back(told[both - 1] - sent[both - 1]);
    note_late(client_origin_ + client.scheduled.count(), told.front(), sent.front());
  }

  void note_late(std::int64_t scheduled, std::int64_t told, std::int64_t sent) {
    if (!rung_.asked.late_after) return;
    const std::int64_t limit = rung_.asked.late_after->count();
    if (sent - scheduled <= limit) return;
    ++*rung_.late;
    if (told - scheduled <= limit) ++*rung_.late_untold;
  }

  void summarise() {
    rung_.ttft = summary_of(first_errors_);
    rung_.itl = summary_of(gap_errors_);
    rung_.e2e = summary_of(last_errors_);
    rung_.stamp_error_p99_us = scaled(percentile(stamps_, 0.99), 1e3);
    rung_.send_lag_p99_us = scaled(percentile(send_lags_, 0.99), 1e3);
    const std::optional<std::int64_t> gap_true = percentile(gaps_true_, 0.99);
    if (gap_true && *gap_true > 0) {
      const std::int64_t off = std::abs(*percentile(gaps_told_, 0.99) - *gap_true);
      rung_.itl_p99_share = static_cast<double>(off) / static_cast<double>(*gap_true);
    }
    rung_.events_per_s = busiest_second();
  }

  /// The most sends of any second on the clock's grid of milliseconds; of a shorter run, sends ÷
  /// length.
  [[nodiscard]] std::optional<double> busiest_second() const {
    if (sends_by_ms_.empty()) return std::nullopt;
    constexpr std::int64_t kWindow = 1000;
    std::int64_t most = 0;
    std::int64_t now = 0;
    auto oldest = sends_by_ms_.begin();
    for (const auto& [ms, count] : sends_by_ms_) {
      now += count;
      for (; oldest->first <= ms - kWindow; ++oldest) now -= oldest->second;
      most = std::max(most, now);
    }
    const std::int64_t length = sends_by_ms_.rbegin()->first - sends_by_ms_.begin()->first + 1;
    return static_cast<double>(most) * 1e3 / static_cast<double>(std::min(length, kWindow));
  }

  std::int64_t client_origin_, truth_origin_;
  Rung rung_;
  Nanos stamps_, first_errors_, last_errors_, gap_errors_, gaps_told_, gaps_true_, send_lags_;
  std::map<std::int64_t, std::int64_t> sends_by_ms_;
};

/// How far the instants of a constant schedule lie from where the first one puts them.
std::optional<double> schedule_slip_us(const Ledger& client, double requests_per_s) {
  if (client.requests.empty()) return std::nullopt;
  Nanos at;
  at.reserve(client.requests.size());
  for (const RequestRecord& r : client.requests) at.push_back(r.scheduled.count());
  std::ranges::sort(at);
  double slip = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double due = static_cast<double>(at[0]) + 1e9 * static_cast<double>(i) / requests_per_s;
    slip = std::max(slip, std::abs(static_cast<double>(at[i]) - due));
  }
  return slip / 1e3;
}

class Breaches {
 public:
  void at_most(std::string_view name, const std::optional<double>& value, double limit) {
    if (value && *value > limit) add(fmt::format("{} {:.4g} > {:g}", name, *value, limit));
  }
  void none(std::int64_t count, std::string_view what) {
    if (count > 0) add(fmt::format("{} {}", count, what));
  }
  void add(const std::string& breach) { text_ += (text_.empty() ? "" : ", ") + breach; }
  [[nodiscard]] std::optional<std::string> text() const {
    return text_.empty() ? std::nullopt : std::optional(text_);
  }

 private:
  std::string text_;
};

std::optional<std::string> limit_broken(const Rung& rung) {
  namespace limits = audit_limits;
  constexpr std::int64_t kMany = 10'000;
  const RungAsked& asked = rung.asked;
  Breaches breaches;
  if (rung.chunks == 0) breaches.add("nothing could be joined");
  breaches.none(rung.failed, "requests failed");
  breaches.none(rung.unmatched, "requests on one side only");
  breaches.none(rung.chunks_lost, "events on one side only");
  if (rung.ttft.bias_ms) {
    breaches.at_most("ttft_bias_ms", std::abs(*rung.ttft.bias_ms), limits::kTtftBiasMs);
  }
  breaches.at_most("ttft_err_p99_ms", rung.ttft.p99_ms, limits::kTtftErrorP99Ms);
  breaches.at_most("itl_p99_off_share", rung.itl_p99_share, limits::kItlP99Share);
  const bool many = asked.kind == RungKind::kStreams && asked.streams >= kMany;
  breaches.at_most("stamp_err_p99_us", rung.stamp_error_p99_us,
                   many ? limits::kManyStreamsStampErrorP99Us : limits::kStampErrorP99Us);
  if (asked.kind == RungKind::kRate) {
    breaches.at_most("send_lag_p99_us", rung.send_lag_p99_us, limits::kSendLagP99Us);
  }
  if (rung.late && *rung.late == 0) breaches.add("the stall made no request late");
  breaches.none(rung.late_untold.value_or(0), "late requests not told as late");
  breaches.at_most("schedule_slip_us", rung.schedule_slip_us, limits::kScheduleSlipUs);
  const double sent = rung.events_per_s.value_or(0);
  if (asked.kind == RungKind::kEvents &&
      sent < limits::kSentShare * asked.events_per_s.value_or(0)) {
    breaches.add(
        fmt::format("events_per_s {:.0f} < {:.0f}: client and simulated engine together "
                    "go no faster here",
                    sent, limits::kSentShare * *asked.events_per_s));
  }
  return breaches.text();
}

}  // namespace

Result<Rung> join_rung(const RungAsked& asked, const Ledger& client, const Ledger& truth,
                       const RungCost& cost) {
  const std::int64_t client_origin = TRY(clock_origin(client));
  const std::int64_t truth_origin = TRY(clock_origin(truth));
  Rung rung = Join(asked, client_origin, truth_origin).run(client, truth);
  const StampFacts stamps = stamp_facts(client);
  rung.receive_lag_p99_us = stamps.receive_lag_p99_us;
  rung.kernel_stamp_share = stamps.kernel_share;
  if (stamps.events > 0) {
    rung.cpu_s_per_m_events = cost.client_cpu_s * 1e6 / static_cast<double>(stamps.events);
  }
  if (asked.kind == RungKind::kStall && asked.requests_per_s) {
    rung.schedule_slip_us = schedule_slip_us(client, *asked.requests_per_s);
  }
  rung.limit_broken = limit_broken(rung);
  return rung;
}

Audit judge_ladder(std::vector<Rung> rungs) {
  Audit audit;
  audit.rungs = std::move(rungs);
  audit.pass = !audit.rungs.empty();
  bool streams_hold = true;
  std::optional<double> by_streams;  // events/s of the streams that held
  bool steps_hold = true;
  std::optional<double> by_steps;
  const auto raise = [](std::optional<double>& most, const Rung& rung) {
    most = std::max(most.value_or(0), std::floor(rung.events_per_s.value_or(0)));
  };
  for (const Rung& rung : audit.rungs) {
    const bool holds = !rung.limit_broken;
    if (!holds && rung.asked.standing == Standing::kMust) audit.pass = false;
    if (rung.asked.kind == RungKind::kStreams) {
      streams_hold = streams_hold && holds;
      if (!streams_hold) continue;
      audit.trust.streams = std::max(audit.trust.streams, rung.asked.streams);
      raise(by_streams, rung);
    } else if (rung.asked.kind == RungKind::kEvents) {
      steps_hold = steps_hold && holds;
      if (!by_steps) by_steps = 0;
      if (steps_hold) raise(by_steps, rung);
    }
  }
  audit.trust.events_per_s = by_steps ? *by_steps : by_streams.value_or(0);
  return audit;
}

}  // namespace assay
