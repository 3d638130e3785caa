// The events to come of a simulated engine: plain values in a binary heap, earliest first, equal
// instants in the order asked. No allocation per event once it has grown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/core/time.h"
#include "engine/sim/emission.h"

namespace assay::internal {

enum class EventKind : std::uint8_t {
  kArrive,  // behind the tokenizer
  kHead,    // the response's head is due
  kRefuse,  // a request ends before it is served
  kTokens,  // a server has made the next chunk of a stream
  kStep,    // the batch server's step ends
};

struct Event {
  Duration at;  // engine time
  std::uint64_t order;
  StreamId stream;  // 0 for a step
  EventKind kind;
};

class EventHeap {
 public:
  void push(Duration at, EventKind kind, StreamId stream) {
    heap_.push_back({at, order_++, stream, kind});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Event& top() const { return heap_.front(); }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace assay::internal
