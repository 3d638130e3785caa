// The audit of the instrument: what the client's ledger says of each event, against what a server
// that knows the true instants wrote of it. join_rung compares one pair of ledgers event by event;
// judge_ladder holds the results against the stated limits and says how far runs can be trusted.
// Pure. Both ledgers must come from one machine: their instants meet on CLOCK_MONOTONIC through
// meta::kStartMonotonicNs, and their requests by request_id.
//
// TTFT and E2E of the client and of the truth begin at the same instant, the scheduled one, so
// their errors are those of their ends: the client's instant of an event − the true instant of its
// send. That holds the way through the kernel as well, which no client can know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"

namespace assay {

/// The stated limits, all in one place. A rung that is over one of those that concern it is broken.
namespace audit_limits {
// Of every rung.
inline constexpr double kTtftBiasMs = 1;
inline constexpr double kTtftErrorP99Ms = 3;
inline constexpr double kItlP99Share = 0.01;  // p99 of the gaps told, off the p99 of the true gaps
inline constexpr double kStampErrorP99Us = 100;
// Of 10,000 streams, which are half load of a small machine.
inline constexpr double kManyStreamsStampErrorP99Us = 10;
// Of open loops: send_start − scheduled.
inline constexpr double kSendLagP99Us = 100;
// Of a stall: how far instants of a constant schedule may lie from where they belong.
inline constexpr double kScheduleSlipUs = 1;
// Of the steps of events/s: what must have been sent of what was asked.
inline constexpr double kSentShare = 0.95;
}  // namespace audit_limits

enum class RungKind : std::uint8_t {
  kStreams,  // so many streams, started one after the other
  kStarts,   // so many at once
  kRate,     // open loop, a connection for each request
  kStall,    // open loop, few connections, a server that stands still for a while
  kEvents,   // a step of events/s
};

/// A rung that must hold fails the audit when it breaks; one that reaches bounds the trust.
enum class Standing : std::uint8_t { kMust, kReach };

struct RungAsked {
  std::string name{};
  RungKind kind = RungKind::kStreams;
  Standing standing = Standing::kMust;
  std::int64_t streams = 0;                // at most so many in flight
  std::optional<double> events_per_s{};    // kEvents: output events, as designed
  std::optional<double> requests_per_s{};  // kRate, kStall
  std::optional<Duration> late_after{};    // kStall: later from schedule than this is late
};

/// What is not in a ledger.
struct RungCost {
  double client_cpu_s = 0;  // of the whole client, its start included
};

/// Client − truth. The bias is the mean with its sign, the rest is of absolute values.
struct ErrorSummary {
  std::int64_t n = 0;
  std::optional<double> bias_ms, p50_ms, p99_ms, max_ms;
};

struct Rung {
  RungAsked asked;
  std::int64_t requests = 0;           // of the client
  std::int64_t failed = 0;             // of them, not ok
  std::int64_t unmatched = 0;          // of either side, without the other
  std::int64_t chunks = 0;             // joined
  std::int64_t chunks_lost = 0;        // of either side, without the other
  std::optional<double> events_per_s;  // true sends of output events, in the busiest second
  ErrorSummary ttft, itl, e2e;
  std::optional<double> itl_p99_share;  // |p99 told − p99 true| ÷ p99 true
  std::optional<double> stamp_error_p99_us, send_lag_p99_us, receive_lag_p99_us;
  std::optional<double> kernel_stamp_share, cpu_s_per_m_events;
  std::optional<std::int64_t> late, late_untold;  // kStall: by the truth; of them, not told as late
  std::optional<double> schedule_slip_us;         // kStall
  std::optional<std::string> limit_broken;
};

/// kUsage when a ledger lacks the origin of its clock; a damaged chunk counts as lost.
Result<Rung> join_rung(const RungAsked& asked, const Ledger& client, const Ledger& truth,
                       const RungCost& cost);

struct Trust {
  double events_per_s = 0;
  std::int64_t streams = 0;
};

/// A rung that was not walked.
struct LeftOut {
  std::string rung;
  std::string why;
};

/// Whose audit it is.
struct AuditHost {
  std::string name, kernel;
  std::int64_t cores = 0;
  bool operator==(const AuditHost&) const = default;
};

struct Audit {
  bool pass = false;
  std::vector<Rung> rungs;
  Trust trust;
  std::vector<LeftOut> left_out;
  AuditHost host;
  std::string at;                  // UTC, for people
  std::vector<std::string> notes;  // how it was done: core shares, a fault put in
};

/// Trust ends below the first rung of its kind that breaks. The events/s are those of the steps;
/// without any, those of the streams.
Audit judge_ladder(std::vector<Rung> rungs);

}  // namespace assay
