#include "engine/net/timer_heap.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay::internal {

Loop::TimerId TimerHeap::add(Instant when, Loop::Task task) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].task = std::move(task);
  const std::uint32_t generation = slots_[slot].generation;
  heap_.push_back({when, order_++, slot, generation});
  std::ranges::push_heap(heap_, later);
  return (static_cast<std::uint64_t>(generation) << 32) | slot;
}

void TimerHeap::cancel(Loop::TimerId id) {
  const auto slot = static_cast<std::uint32_t>(id);
  const auto generation = static_cast<std::uint32_t>(id >> 32);
  if (slot >= slots_.size() || generation == 0 || slots_[slot].generation != generation) return;
  release(slot);
  ++dead_;
  if (dead_ > 64 && dead_ * 2 > heap_.size()) compact();
}

std::optional<Instant> TimerHeap::next() {
  drop_dead_top();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().when;
}

Loop::Task TimerHeap::take_due(Instant now) {
  drop_dead_top();
  if (heap_.empty() || heap_.front().when > now) return nullptr;
  std::ranges::pop_heap(heap_, later);
  const std::uint32_t slot = heap_.back().slot;
  heap_.pop_back();
  Loop::Task task = std::move(slots_[slot].task);
  release(slot);
  return task;
}

void TimerHeap::release(std::uint32_t slot) {
  slots_[slot].task = nullptr;
  // Generation 0 stays unused: it marks "never a timer".
  if (++slots_[slot].generation == 0) slots_[slot].generation = 1;
  free_.push_back(slot);
}

void TimerHeap::drop_dead_top() {
  while (!heap_.empty() && !live(heap_.front())) {
    std::ranges::pop_heap(heap_, later);
    heap_.pop_back();
    --dead_;
  }
}

void TimerHeap::compact() {
  std::erase_if(heap_, [this](const Entry& e) { return !live(e); });
  std::ranges::make_heap(heap_, later);
  dead_ = 0;
}

}  // namespace assay::internal
