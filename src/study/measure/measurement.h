// What a run says: every figure of the report, as plain values with their units in the names. A
// Measurement is made by measure() from a ledger alone and holds nothing that is only for the eye.
// A value that is unknown is an empty optional, and where a reader would ask why, the reason is
// beside it. Definitions: docs/formats/report.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stats/interval.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"

namespace assay {

using MaybeInterval = std::optional<Interval>;
using MaybeNumber = std::optional<double>;

/// The percentiles that every distribution shows.
inline constexpr std::array<double, 4> kPercentiles{0.50, 0.90, 0.99, 0.999};
inline constexpr std::array<std::string_view, 4> kPercentileNames{"p50", "p90", "p99", "p99_9"};
enum PercentileIndex : std::uint8_t { kP50, kP90, kP99, kP999 };

/// One percentile. `value` is null when its 95 % interval does not exist at this n (`needs` says
/// how many there should be), or when it lies beyond what was seen of cut-off requests (then
/// `at_least` holds the bound).
struct Percentile {
  MaybeNumber value;
  MaybeInterval interval;
  MaybeNumber at_least;
  std::int64_t needs = 0;
};

/// A distribution of a figure; its unit is in the name of the member that holds it.
struct Distribution {
  std::int64_t n = 0;         // values, cut-off ones included
  std::int64_t censored = 0;  // of them, only known to be at least so much
  MaybeNumber mean;           // with cut-off values: the Kaplan-Meier mean up to the longest seen
  MaybeInterval mean_interval;
  MaybeNumber min, max;
  MaybeNumber max_at_least;  // where the longest was cut off, `max` is null and this is its bound
  std::array<Percentile, kPercentiles.size()> percentiles;
  double effective_n = 0;  // for p99; below n where neighbours hang together
  std::string why_null;    // a sentence, where n = 0
};

struct RunFacts {
  std::string file, state, model, server, api, started;
  std::vector<std::string> urls;
  double duration_s = 0;  // from the first scheduled request after warm-up to the last end
  MaybeNumber window_s;   // steady window; null when it has no length
  MaybeNumber offered_rps;
  std::uint64_t seed = 0;
  std::string salt;
  bool simulated = false;  // by `assay sim run`
};

enum class CheckStatus : std::uint8_t { kPass, kFail, kSkipped };
enum class CheckKind : std::uint8_t { kMust, kAdvisory };

/// One question to the instrument. `value` and `limit` have the unit that `unit` names.
struct Check {
  std::string name;
  CheckKind kind = CheckKind::kAdvisory;
  CheckStatus status = CheckStatus::kSkipped;
  MaybeNumber value, limit;
  std::string unit;
  std::string advice;
};

struct Validity {
  bool valid = true;  // no must check failed
  std::vector<Check> checks;
  [[nodiscard]] const Check* find(std::string_view name) const;
};

/// Something about the target or the traffic, never about the instrument.
struct Finding {
  std::string name;
  std::string text;
};

struct FailureClass {
  Outcome outcome = Outcome::kOk;
  std::string code;  // HTTP status or the target's own error code
  std::int64_t count = 0;
  std::string example;  // the message of the first
};

struct Requests {
  std::int64_t scheduled = 0, sent = 0, ok = 0, failed = 0, refused = 0;
  std::array<std::int64_t, kOutcomeCount> outcomes{};
  std::vector<FailureClass> failures;  // most frequent first
};

struct Latency {
  Distribution ttft_ms, ttfo_ms, tpot_ms, itl_ms, icl_ms, worst_gap_ms, e2e_ms, tail_ms,
      service_ttft_ms, service_e2e_ms;
  std::int64_t itl_requests = 0;        // whose gaps are in itl_ms
  std::int64_t itl_left_out = 0;        // complete ones whose tokens per chunk are not known
  std::int64_t itl_spread = 0;          // gaps that are k-th parts of the gap of a k-token chunk
  std::int64_t tpot_first_assumed = 0;  // whose first event was taken to carry one token
  MaybeNumber chunks_per_read;          // beyond 1: events arrived together
  MaybeNumber tokens_per_chunk;         // N ÷ chunks, over those with both
};

/// A rate with its interval.
struct Rate {
  MaybeNumber value;
  MaybeInterval interval;
};

struct Throughput {
  Rate output_tokens_per_s, input_tokens_per_s, effective_tokens_per_s, requests_per_s,
      per_user_tokens_per_s, per_gpu_tokens_per_s;
};

struct SloResult {
  SloMetric metric = SloMetric::kTtft;
  double limit_ms = 0;
  double target = 0;
  std::int64_t met_by = 0;  // attempts, null ones included
  std::int64_t null_passed = 0;
  MaybeNumber share;
  MaybeInterval share_interval;
  bool met = false;  // share ≥ target
};

struct Goodput {
  std::int64_t cohort = 0, good = 0;
  Rate good_rps;
  MaybeNumber good_share;
  MaybeInterval good_share_interval;
  std::vector<SloResult> slo;
};

struct Tokens {
  std::string source = "none";  // usage | ids | tokenizer | none: of most replies
  std::map<std::string, std::int64_t> replies_by_source;
  MaybeCount output, prompt_planned, prompt_server, cached, reasoning;
  // Of the requests that were both planned and counted by the server:
  MaybeCount prompt_planned_counted, prompt_server_planned;
  std::int64_t prompts_counted = 0;
  MaybeCount template_per_request;  // of a chat: what the server counts beyond every plan, ≤ 64
  MaybeNumber cached_per_request;   // over the requests whose cache hits were told
};

/// What the instrument cost and how late it was. Lags are of this run's own requests: a census, so
/// their percentiles need no interval.
struct LagSummary {
  std::int64_t n = 0;
  MaybeNumber p50, p90, p99, p99_9, max;
};

struct Client {
  LagSummary send_lag_us, receive_lag_us;
  MaybeNumber kernel_stamp_share;
  std::int64_t events = 0;
  MaybeNumber events_per_read;
  MaybeNumber busy_share;  // of the busiest worker
  // Null where a kill left no word of the workers:
  MaybeCount workers, malformed, builder_stalls, connects, sent_again;
};

/// Where the mean TTFT goes, in ms, over the same requests. What lies between the send and the
/// first token on the server's side can't be taken apart without its help.
struct TtftSplit {
  std::int64_t n = 0;
  MaybeNumber client_wait_ms, connect_ms, send_lag_ms, to_first_token_ms;
};

struct Measurement {
  RunFacts run;
  Spec spec;
  Validity validity;
  bool steady = true;               // false: latency drifts, steady rates are withheld
  std::int64_t damaged_chunks = 0;  // requests whose chunks the ledger no longer holds whole
  std::vector<Finding> findings;
  Requests requests;
  Latency latency;
  Throughput throughput, whole_run;
  Goodput goodput;
  Tokens tokens;
  Client client;
  TtftSplit ttft_split;
};

}  // namespace assay
