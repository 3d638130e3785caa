// A bounded queue between exactly one producing and one consuming thread, without locks. push() and
// pop() never block: a full or an empty ring says so.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace assay {

template <typename T>
class SpscRing {
 public:
  /// Rounded up to a power of two.
  explicit SpscRing(std::size_t capacity)
      : slots_(std::bit_ceil(capacity)), mask_(slots_.size() - 1) {}

  /// False, and `value` untouched, when full.
  bool push(T& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == slots_.size()) return false;
    slots_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// Consumer only: the oldest element, null when empty. Stays until pop().
  T* front() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr : &slots_[head & mask_];
  }

  /// Consumer only, after front() was not null.
  T pop() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    T value = std::move(slots_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return value;
  }

  [[nodiscard]] std::size_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }

 private:
  std::vector<T> slots_;
  std::size_t mask_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace assay
