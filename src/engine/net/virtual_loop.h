// A Loop whose clock stands still while tasks run and jumps to the next timer when there are none:
// hours of load in milliseconds, the same for one seed on every machine.
#pragma once

#include <deque>

#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/timer_heap.h"

namespace assay {

class VirtualLoop final : public Loop {
 public:
  explicit VirtualLoop(Instant start = Instant{}) : now_(start) {}

  [[nodiscard]] Instant now() const override { return now_; }
  void post(Task task) override;
  TimerId at(Instant when, Task task) override;
  void cancel(TimerId id) override { timers_.cancel(id); }

  /// Runs until nothing is left to do, or stop().
  void run();
  void stop() { stopped_ = true; }

 private:
  Instant now_;
  std::deque<Task> ready_;
  internal::TimerHeap timers_;
  bool stopped_ = false;
};

}  // namespace assay
