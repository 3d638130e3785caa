#include "engine/net/virtual_loop.h"

#include <utility>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay {

void VirtualLoop::post(Task task) { ready_.push_back(std::move(task)); }

Loop::TimerId VirtualLoop::at(Instant when, Task task) {
  return timers_.add(when, std::move(task));
}

void VirtualLoop::run() {
  stopped_ = false;
  while (!stopped_) {
    if (!ready_.empty()) {
      const Task task = std::move(ready_.front());
      ready_.pop_front();
      task();
    } else if (const Task due = timers_.take_due(now_)) {
      due();
    } else if (const auto next = timers_.next()) {
      now_ = *next;
    } else {
      return;
    }
  }
}

}  // namespace assay
