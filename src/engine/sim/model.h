// The simulated engine: a discrete-event model in whole nanoseconds, the same to the bit for one
// seed on every machine. SimCore is the model alone, driven from outside: hand in requests, ask
// when the next event is due, step. SimEngine is the same on a Loop, virtual or real, and calls
// each stream at its instants; the in-process target and the socket server are built on it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/sim/emission.h"
#include "engine/sim/scheduler.h"
#include "engine/sim/sim_spec.h"

namespace assay {

struct SimRequest {
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = 1;  // asked for, at least 1
};

struct SimCounts {
  std::int64_t arrived = 0;
  std::int64_t ended = 0;      // with all their tokens
  std::int64_t faulted = 0;    // by a fault of the spec
  std::int64_t refused = 0;    // the queue was full
  std::int64_t cancelled = 0;  // by the client
};

class SimCore {
 public:
  SimCore(const SimSpec& spec, std::uint64_t seed);
  SimCore(const SimCore&) = delete;
  SimCore& operator=(const SimCore&) = delete;

  /// `now`, since the engine's start, must not lie before an earlier call's; what is due before it
  /// has been stepped through. Emits nothing by itself: a refusal is an event like any other.
  StreamId submit(Duration now, const SimRequest& request);
  /// The client has gone. An id that is dead is ignored.
  void cancel(Duration now, StreamId id);
  [[nodiscard]] bool alive(StreamId id) { return parts_.streams.find(id) != nullptr; }
  /// When the next event is due; null when nothing is left to do.
  [[nodiscard]] std::optional<Duration> next();
  /// Runs the next event and appends what it sends to `out`.
  void step(std::vector<Emission>& out);

  [[nodiscard]] const SimSpec& spec() const { return parts_.spec; }
  [[nodiscard]] const SimCounts& counts() const { return counts_; }
  [[nodiscard]] std::int64_t waiting() const;
  [[nodiscard]] std::int64_t served() const;
  /// Tokens that the stream's reply will have.
  [[nodiscard]] std::int64_t reply_tokens(StreamId id) { return parts_.streams.at(id).tokens; }

 private:
  void choose_faults(internal::Stream& stream);
  [[nodiscard]] std::int64_t draw_length(std::uint64_t index, std::int64_t asked) const;
  void arrive(StreamId id, Duration now);
  void refuse(StreamId id, Duration now, const FaultRule& why);

  internal::EngineParts parts_;
  RandomStream length_draws_;
  std::vector<RandomStream> fault_draws_;
  std::variant<internal::ServerScheduler, internal::BatchScheduler> scheduler_;
  SimCounts counts_;
};

/// Hears what its request is sent, on the loop, at the instants of the model (or as soon after as
/// the loop gets to it; `emission.at` is the instant that was due). Nothing comes after a last
/// emission.
class SimStream {
 public:
  virtual ~SimStream() = default;
  virtual void on_emission(const Emission& emission) = 0;
};

class SimEngine {
 public:
  SimEngine(Loop& loop, const SimSpec& spec, std::uint64_t seed);
  ~SimEngine();
  SimEngine(const SimEngine&) = delete;
  SimEngine& operator=(const SimEngine&) = delete;

  /// `stream` must live until its last emission or cancel(); it is never called from inside
  /// submit().
  StreamId submit(const SimRequest& request, SimStream& stream);
  void cancel(StreamId id);

  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] Instant start() const { return start_; }
  [[nodiscard]] SimCore& core() { return core_; }

 private:
  struct Pending {
    Emission emission;
    SimStream* listener;  // null once cancelled
  };

  /// Steps through what is due, without a call to any stream.
  void catch_up();
  void on_timer();
  void arm();

  Loop& loop_;
  Instant start_;
  SimCore core_;
  std::vector<SimStream*> listeners_;  // by slot
  std::vector<Emission> made_;
  std::vector<Pending> pending_;  // made, not delivered yet
  Loop::TimerId timer_ = 0;
  Instant armed_for_{};
};

}  // namespace assay
