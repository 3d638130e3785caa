// Who serves in a simulated engine, and when tokens are made: a pool of servers, or a batch server.
// Both have the same shape (arrive, on_event, leave, served), so that SimCore holds them in a
// variant; a scheduler over KV blocks would be the third. All times are engine time.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/sim/emission.h"
#include "engine/sim/event_heap.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/stall_clock.h"
#include "engine/sim/stream_table.h"

namespace assay::internal {

/// What the parts of one engine share.
struct EngineParts {
  EngineParts(const SimSpec& asked, std::uint64_t seed)
      : spec(asked),
        streams(spec),
        clock(spec, seed),
        service_draws(seed, "service"),
        gap_draws(seed, "gaps") {}
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

  /// What a cold engine adds to the service of `stream`, once each.
  Duration cold_cost(const Stream& stream);
  /// Marks the stream as served from `now` on.
  void begin_service(StreamId id, Duration now);

  SimSpec spec;
  StreamTable streams;
  EventHeap events;
  StallClock clock;
  RandomStream service_draws, gap_draws;
  bool first_call_paid = false;
  std::unordered_set<std::int64_t> lengths_seen;
};

class ServerScheduler {
 public:
  ServerScheduler(EngineParts& parts, const ServersSpec& spec);
  [[nodiscard]] bool has_room() const;
  void arrive(StreamId id, Duration now);
  /// A chunk of `id` is made. True when the stream is over.
  bool on_event(StreamId id, Duration now, std::vector<Emission>& out);
  /// The stream goes, served or waiting.
  void leave(StreamId id, Duration now);
  [[nodiscard]] std::int64_t waiting() const { return line_.waiting(); }
  [[nodiscard]] std::int64_t served() const;

 private:
  void serve(StreamId id, Duration now);
  void arm_chunk(StreamId id, Duration from);
  void free_server(std::uint32_t server, Duration now);

  EngineParts& parts_;
  ServersSpec spec_;
  WaitingLine line_;
  std::vector<std::uint32_t> free_;  // servers
};

class BatchScheduler {
 public:
  BatchScheduler(EngineParts& parts, const BatchSpec& spec) : parts_(parts), spec_(spec) {}
  [[nodiscard]] bool has_room() const;
  void arrive(StreamId id, Duration now);
  /// A step ends; `id` is 0. Streams that are over are removed here.
  bool on_event(StreamId id, Duration now, std::vector<Emission>& out);
  void leave(StreamId id, Duration now);
  [[nodiscard]] std::int64_t waiting() const { return line_.waiting(); }
  [[nodiscard]] std::int64_t served() const { return static_cast<std::int64_t>(batch_.size()); }

 private:
  struct Member {
    StreamId id;
    std::int64_t due;  // the step that completes its next chunk
  };

  void begin_step(Duration now);
  [[nodiscard]] std::int64_t next_due(StreamId id) const;

  EngineParts& parts_;
  BatchSpec spec_;
  WaitingLine line_;
  std::vector<Member> batch_;  // in the order of joining
  std::int64_t step_ = 0;      // steps that have ended
  bool stepping_ = false;
};

}  // namespace assay::internal
