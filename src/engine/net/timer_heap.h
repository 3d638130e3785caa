// The timers of one loop: a binary heap ordered by (instant, order asked). Cancelling is lazy, and
// the heap is rebuilt when more than half of it is dead, so a million cancelled request timeouts
// cost no memory for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay::internal {

class TimerHeap {
 public:
  Loop::TimerId add(Instant when, Loop::Task task);
  void cancel(Loop::TimerId id);
  /// The earliest live timer.
  [[nodiscard]] std::optional<Instant> next();
  /// Takes the earliest live timer if it is due at `now`; an empty task otherwise.
  Loop::Task take_due(Instant now);
  /// Entries held, dead ones included.
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    Instant when;
    std::uint64_t order;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Slot {
    Loop::Task task;
    std::uint32_t generation = 1;
  };

  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  [[nodiscard]] bool live(const Entry& e) const {
    return slots_[e.slot].generation == e.generation;
  }
  void release(std::uint32_t slot);
  void drop_dead_top();
  void compact();

  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t order_ = 0;
  std::size_t dead_ = 0;
};

}  // namespace assay::internal
