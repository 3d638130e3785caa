// Notices when the wall clock is set while a run goes on: a timerfd that the kernel cancels on a
// set, and the offset between wall and monotonic clock compared at every poll. Latencies don't feel
// a step (stamp.h); the run reports it all the same.
#pragma once

#include <cstdint>
#include <optional>

#include "base/core/time.h"

namespace assay {

class ClockWatch {
 public:
  explicit ClockWatch(Clocks clocks);
  ~ClockWatch();
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

  /// Nanoseconds that the wall clock was moved by since the last call; empty when it was not.
  /// Slewing by NTP (at most 0.05 %) is no step.
  std::optional<std::int64_t> poll();
  /// Wall clock − monotonic clock, now.
  [[nodiscard]] std::int64_t offset_ns() const;

 private:
  [[nodiscard]] bool set_by_kernel_account();
  void arm() const;

  Clocks clocks_;
  int timer_ = -1;  // −1: not available here
  std::int64_t offset_ns_;
};

}  // namespace assay
