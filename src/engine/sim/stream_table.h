// The streams of a simulated engine: one record per request from its arrival to its last emission,
// in slots that are used again. What schedulers share: they say when tokens are made, the table
// says what of them goes out and when a stream is over.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/sim/emission.h"
#include "engine/sim/event_heap.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {

enum class StreamState : std::uint8_t { kFree, kArriving, kWaiting, kServed, kRefused };

struct Stream {
  Draws gaps{0};
  std::uint64_t index = 0;  // of the request, in the order of arrival
  std::uint32_t generation = 1;
  std::uint32_t server = 0;
  StreamState state = StreamState::kFree;
  bool head_sent = false;
  bool length_known = false;  // new_length is paid
  std::uint8_t wire = 0;
  Duration pause{0};
  Duration arrived{0};  // wall time
  Duration started{0};  // wall time
  Duration begin{0};    // engine time at which service began
  Duration service{0};  // whole, where the spec tells it
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;            // of the reply
  std::int64_t made = 0;              // so far, by the scheduler
  std::int64_t sent = 0;              // in events
  const FaultRule* fault = nullptr;   // ends the stream after fault->after tokens
  const FaultRule* broken = nullptr;  // a malformed event
};

class StreamTable {
 public:
  explicit StreamTable(const SimSpec& spec) : spec_(spec) {}

  StreamId add();
  [[nodiscard]] Stream* find(StreamId id);
  Stream& at(StreamId id) { return streams_[static_cast<std::uint32_t>(id)]; }
  void remove(StreamId id);

  /// Tokens that the next event of `stream` will hold; 0 when a fault stands in their place.
  [[nodiscard]] std::int64_t next_chunk(const Stream& stream) const;
  /// Sends what the next event holds; `stream.made` covers it. True when the stream is over: the
  /// caller frees its place and removes it.
  bool send_chunk(StreamId id, Duration wall, std::vector<Emission>& out);
  void send_head(StreamId id, Duration wall, std::vector<Emission>& out);
  void send_refusal(StreamId id, Duration wall, std::vector<Emission>& out);

 private:
  [[nodiscard]] Emission emission(StreamId id, const Stream& stream, Duration wall) const;

  const SimSpec& spec_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> free_;
};

/// Requests that wait for service, first come first served. One may leave from the middle.
class WaitingLine {
 public:
  void push(StreamId id) {
    line_.push_back(id);
    ++waiting_;
  }
  /// The next that is still there; 0 when nobody waits.
  StreamId pop(StreamTable& streams);
  void leave() { --waiting_; }
  [[nodiscard]] std::int64_t waiting() const { return waiting_; }

 private:
  std::deque<StreamId> line_;
  std::int64_t waiting_ = 0;
};

}  // namespace assay::internal
