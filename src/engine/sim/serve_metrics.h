// What the simulated engine tells at /metrics, under vLLM's names and with vLLM's buckets. Each
// serving thread counts on its own, without locks; any thread may read. What the model does not
// have (cache hits, preemptions) is left out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/core/time.h"

namespace assay {

/// Counted by one thread, read by any.
class ServeCount {
 public:
  void add(std::int64_t by) { set(value() + by); }
  void set(std::int64_t to) { value_.store(to, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// Bounds are upper and inclusive, in the unit of what is added: nanoseconds or tokens.
class ServeHistogram {
 public:
  static constexpr std::size_t kBoundsMax = 24;
  explicit ServeHistogram(std::span<const std::int64_t> bounds) : bounds_(bounds) {}
  void add(std::int64_t value, std::int64_t times = 1);

  [[nodiscard]] std::span<const std::int64_t> bounds() const { return bounds_; }
  /// Of values in bucket i alone; the last one is above all bounds.
  [[nodiscard]] std::int64_t count(std::size_t i) const { return counts_[i].value(); }
  [[nodiscard]] std::int64_t sum() const { return sum_.value(); }

 private:
  std::span<const std::int64_t> bounds_;
  std::array<ServeCount, kBoundsMax + 1> counts_;
  ServeCount sum_;
};

struct ServeMetrics {
  ServeMetrics();

  ServeCount running, waiting;
  ServeCount prompt_tokens, generation_tokens;
  ServeCount ended_length, ended_stop, ended_abort, ended_error;
  ServeHistogram ttft, itl, tpot, e2e, queue, inference, prefill, decode;
  ServeHistogram request_prompt_tokens, request_generation_tokens, request_max_tokens;
};

/// Prometheus' text format, all threads added up.
std::string metrics_text(std::span<const ServeMetrics* const> threads, std::string_view model);

}  // namespace assay
