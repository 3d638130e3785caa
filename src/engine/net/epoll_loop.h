// The Loop over real time and real sockets: one epoll instance, one timerfd, one thread. With
// Pacing::kPrecise it spins through the last 60 us before each timer, which brings its lateness
// from tens of microseconds to none, for a core of CPU. It owns the read buffer that every socket
// of the loop reads into. docs/decisions/0004-own-event-loop.md says why this is not a library.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/timer_heap.h"

struct epoll_event;

namespace assay {

/// Something that waits for a descriptor. Counted, so that one that stops waiting while its loop
/// hands out a batch of events outlives the batch; one thread, so the count needs no atomic.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// `events` as epoll tells them.
  virtual void on_ready(std::uint32_t events) = 0;

 private:
  friend void intrusive_ptr_add_ref(Watcher* watcher);
  friend void intrusive_ptr_release(Watcher* watcher);
  int references_ = 0;
};
using WatcherPtr = boost::intrusive_ptr<Watcher>;

class EpollLoop final : public Loop {
 public:
  enum class Pacing : std::uint8_t { kTimer, kPrecise };
  /// Readable bytes behind every read, so that a vectorised parser may run over its end.
  static constexpr std::size_t kReadPadding = 64;
  static constexpr std::size_t kReadSize = 64 * 1024;

  explicit EpollLoop(Clocks clocks = {}, Pacing pacing = Pacing::kTimer);
  ~EpollLoop() override;
  EpollLoop(const EpollLoop&) = delete;
  EpollLoop& operator=(const EpollLoop&) = delete;

  [[nodiscard]] Instant now() const override { return clocks_.now(); }
  void post(Task task) override;  // thread-safe
  TimerId at(Instant when, Task task) override;
  void cancel(TimerId id) override { timers_.cancel(id); }

  /// Runs until stop(), or until no work is left: a timer or a watched descriptor is work.
  void run();
  /// Runs until stop(), also while there is nothing to do: for a loop that other threads post to.
  void run_until_stopped();
  void stop();  // thread-safe

  /// Level-triggered. The descriptor stays the caller's.
  void watch(int descriptor, std::uint32_t events, const WatcherPtr& watcher);
  void change(int descriptor, std::uint32_t events, const WatcherPtr& watcher);
  /// Before the descriptor is closed.
  void unwatch(int descriptor, const WatcherPtr& watcher);

  [[nodiscard]] const Clocks& clocks() const { return clocks_; }
  /// kReadSize bytes and kReadPadding more; free for use until the next turn of the loop.
  [[nodiscard]] char* read_buffer() { return read_buffer_.get(); }

 private:
  enum class Until : std::uint8_t { kIdle, kStopped };
  void turn_until(Until until);
  void wait_and_dispatch();
  void run_posted();
  void run_timers();
  void spin_to_next();
  void arm();
  [[nodiscard]] bool idle();

  Clocks clocks_;
  Pacing pacing_;
  std::unique_ptr<char[]> read_buffer_;
  int epoll_ = -1, timer_ = -1, wake_ = -1;
  std::unique_ptr<epoll_event[]> events_;  // the batch being handed out
  internal::TimerHeap timers_;
  std::optional<Instant> armed_;        // what timer_ waits for
  std::optional<Instant> running_due_;  // the instant up to which timers are being run
  std::size_t watched_ = 0;
  std::vector<WatcherPtr> retired_;  // unwatched in the batch being handed out

  std::mutex mutex_;  // guards the two below
  std::vector<Task> posted_;
  bool stop_ = false;
};

}  // namespace assay
