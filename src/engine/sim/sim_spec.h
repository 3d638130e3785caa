// What a simulated engine is: who serves and how fast, how long it lets requests queue, how tokens
// come, what goes wrong. A plain value; resolve_sim_spec reads it from flags and the `sim:` map of
// a YAML file (docs/formats/sim.md) and reports every problem at once. Who serves is a variant: a
// pool of servers (M/M/c and its kin) or a batch server (continuous batching, cost per step); a
// scheduler over KV blocks is a further alternative beside them.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/sim/distribution.h"

namespace assay {

/// c servers, each with one request at a time. With `service`, a reply takes that long in all and
/// its tokens come at an even pace, the last at the end; without, it takes `ttft` and a `gap` for
/// each further token.
struct ServersSpec {
  std::int64_t servers = 1;
  std::optional<SimDistribution> service = std::nullopt;
  SimDistribution ttft = SimDistribution::fixed(50ms);
  SimDistribution gap = SimDistribution::fixed(10ms);
  std::int64_t slow_servers = 0;  // so many of them are slow replicas …
  double slow_factor = 1;         // … that take so many times as long
};

/// Continuous batching: a step of b streams takes base + per_stream · b, and the prompt tokens of
/// those that join in it; each stream gets one token per step. Requests join between steps.
struct BatchSpec {
  std::int64_t batch_max = 32;
  Duration step_base{8'000'000};
  Duration step_per_stream{250'000};
  Duration prefill_per_token{0};
};

/// How many tokens a reply has.
struct OutputSpec {
  enum class Kind : std::uint8_t { kAsked, kFixed, kGeometric };
  Kind kind = Kind::kAsked;  // exactly what the request asks for
  double tokens = 0;         // fixed: how many; geometric: mean, at least 1
};

struct TokenSpec {
  /// When the response's head leaves: once the request is taken in, once it is served, or with the
  /// first token.
  enum class Head : std::uint8_t { kAccepted, kServed, kFirst };
  enum class Usage : std::uint8_t { kNone, kEnd, kEach };
  std::int64_t per_chunk = 1;  // tokens of one event; the first event holds one alone
  bool role = true;            // an event with the role and no content, together with the head
  std::int64_t reasoning = 0;  // so many tokens of a reply, at most, are reasoning and come first
  Head head = Head::kFirst;
  Usage usage = Usage::kEnd;
};

/// Costs of an engine that is cold.
struct ColdSpec {
  Duration first_call{0};         // added to the first reply
  Duration tokenizer{0};          // per prompt token, before the request queues
  Duration new_length{0};         // added to the first reply of each prompt length …
  std::int64_t length_step = 64;  // … rounded up to a multiple of this
};

/// The whole engine stands still: nothing is sent, nothing moves on.
struct StallSpec {
  Duration at{0};
  Duration length{0};
};
/// Stalls at random: running time between two of them, and how long each lasts.
struct RandomStalls {
  SimDistribution every, length;
};

enum class FaultKind : std::uint8_t {
  kHttpError,    // `status` instead of a stream, with retry-after
  kErrorObject,  // {"error": {…}} in the stream, which ends there
  kErrorString,  // {"error": "…"}
  kErrorEvent,   // event: error
  kReset,        // the connection breaks
  kHalfOpen,     // nothing more comes, and nothing closes
  kClose,        // the connection closes in mid-stream
  kMissingEnd,   // all tokens, but neither finish reason nor [DONE]
  kMalformed,    // one event that is no JSON; the stream goes on
  // On the wire alone: what the reply says stays the same.
  kSlowLoris,  // bytes one by one, `pause` apart
  kComments,   // comment lines between events
  kCrLf,       // lines end in CR LF
  kSplitUtf8,  // characters torn between two sends
};
inline constexpr int kFaultKindCount = 13;
std::string_view fault_name(FaultKind kind);

/// Which requests (counted from 1 as they arrive) a fault hits, and where in the stream. Exactly
/// one of the three is set.
struct FaultRule {
  FaultKind kind = FaultKind::kHttpError;
  std::optional<std::int64_t> nth, every;
  std::optional<double> share;  // drawn by index from the seed
  std::int64_t after = 0;       // in place of the token after so many
  int status = 503;
  Duration retry_after{0};  // 0: not told
  Duration pause{1'000'000};
};

struct SimSpec {
  std::string model = "sim";
  std::variant<ServersSpec, BatchSpec> engine;
  std::optional<std::int64_t> queue;  // requests that may wait; null: no limit
  FaultRule refusal;                  // of what finds the queue full
  OutputSpec output;
  TokenSpec tokens;
  ColdSpec cold;
  std::vector<StallSpec> stalls;  // in order, apart
  std::optional<RandomStalls> random_stalls;
  std::vector<FaultRule> faults;
};

/// What was typed, unread. Flags override the file.
struct SimAsked {
  std::optional<std::string> yaml;                         // a map with the one key `sim`
  std::string path;                                        // its name, for messages
  std::vector<std::pair<std::string, std::string>> flags;  // ("--servers", "4")
};

/// A flag for each key of `sim:` that takes a plain value and is wanted often: "--servers" sets
/// servers.
struct SimFlag {
  std::string_view flag, key, argument, fallback, help;
};
std::span<const SimFlag> sim_flags();

/// All problems at once, each with flag, or file and line. Tables are read by `read_file`.
std::expected<SimSpec, Errors> resolve_sim_spec(const SimAsked& asked, const ReadFile& read_file);

/// Every value, defaults filled in: one line of JSON, for the ledger. {"sim": …} around it is a
/// file that resolve_sim_spec takes.
std::string sim_spec_to_json(const SimSpec& spec);

}  // namespace assay
