// Loop: the event loop as `load` sees it — now, at, post. Two implementations: EpollLoop over real
// time and real sockets, and VirtualLoop, whose clock jumps to the next timer, for tests and the
// simulator. One thread per loop; only post() of EpollLoop may be called from another thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/core/time.h"

namespace assay {

class Loop {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;  // 0 is never a timer

  virtual ~Loop() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  /// Runs `task` soon, after the current one.
  virtual void post(Task task) = 0;
  /// Runs `task` at `when`, or soon if that is past. Equal instants run in the order asked.
  virtual TimerId at(Instant when, Task task) = 0;
  /// Forgets a timer; one that ran already, or 0, is ignored.
  virtual void cancel(TimerId id) = 0;
};

}  // namespace assay
