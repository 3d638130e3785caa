#include "engine/net/epoll_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay {
namespace {

constexpr Duration kSpin = 60us;
constexpr int kBatch = 512;  // events taken from the kernel at a time

void control(int epoll, int operation, int descriptor, std::uint32_t events, void* data) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = data;
  const int rc = epoll_ctl(epoll, operation, descriptor, &event);
  CHECK(rc == 0, "epoll_ctl {} of descriptor {}: {}", operation, descriptor, std::strerror(errno));
}

/// An eventfd or timerfd says "ready" until it is read.
void drain(int descriptor) {
  std::uint64_t count = 0;
  const ssize_t ignored = read(descriptor, &count, sizeof count);
  static_cast<void>(ignored);
}

}  // namespace

void intrusive_ptr_add_ref(Watcher* watcher) { ++watcher->references_; }
void intrusive_ptr_release(Watcher* watcher) {
  if (--watcher->references_ == 0) delete watcher;
}

EpollLoop::EpollLoop(Clocks clocks, Pacing pacing)
    : clocks_(clocks),
      pacing_(pacing),
      read_buffer_(new char[kReadSize + kReadPadding]()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      events_(new epoll_event[kBatch]()) {
  CHECK(epoll_ >= 0 && timer_ >= 0 && wake_ >= 0, "no descriptors for an event loop: {}",
        std::strerror(errno));
  control(epoll_, EPOLL_CTL_ADD, timer_, EPOLLIN, &timer_);
  control(epoll_, EPOLL_CTL_ADD, wake_, EPOLLIN, &wake_);
}

EpollLoop::~EpollLoop() {
  for (const int descriptor : {epoll_, timer_, wake_}) close(descriptor);
}

void EpollLoop::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) return;  // woken already
  }
  const std::uint64_t one = 1;
  const ssize_t ignored = write(wake_, &one, sizeof one);
  static_cast<void>(
      ignored);  // fails only when the counter is full, and then the loop wakes anyway
}

void EpollLoop::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  post([] {});  // wakes the loop
}

Loop::TimerId EpollLoop::at(Instant when, Task task) {
  // What a timer's task asks for the past waits for the next turn, or it would starve the sockets.
  if (running_due_) when = std::max(when, *running_due_ + 1ns);
  return timers_.add(when, std::move(task));
}

void EpollLoop::run() { turn_until(Until::kIdle); }

void EpollLoop::run_until_stopped() { turn_until(Until::kStopped); }

bool EpollLoop::idle() {
  const std::scoped_lock lock(mutex_);
  return watched_ == 0 && posted_.empty() && !timers_.next();
}

void EpollLoop::turn_until(Until until) {
  for (;;) {
    run_posted();
    if (pacing_ == Pacing::kPrecise) spin_to_next();
    run_timers();
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(stop_, false)) return;
    }
    if (until == Until::kIdle && idle()) return;
    wait_and_dispatch();
  }
}

void EpollLoop::run_posted() {
  std::vector<Task> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) task();
}

void EpollLoop::spin_to_next() {
  const std::optional<Instant> next = timers_.next();
  if (!next) return;
  for (Instant now = clocks_.now(); now < *next && *next - now <= kSpin;) now = clocks_.now();
}

void EpollLoop::run_timers() {
  const std::optional<Instant> next = timers_.next();
  if (!next) return;
  const Instant now = clocks_.now();
  if (now < *next) return;
  running_due_ = now;
  while (const Task task = timers_.take_due(now)) {
    task();
    const std::scoped_lock lock(mutex_);
    if (stop_) break;
  }
  running_due_.reset();
}

void EpollLoop::arm() {
  const std::optional<Instant> next = timers_.next();
  if (armed_ == next || !next) return;  // a needless wake-up costs less than disarming
  armed_ = next;
  const Instant when = pacing_ == Pacing::kPrecise ? *next - kSpin : *next;
  // Zero would disarm; an instant that is past fires at once.
  const std::int64_t ns = std::max<std::int64_t>(1, when.time_since_epoch().count());
  itimerspec spec{};
  spec.it_value.tv_sec = ns / 1'000'000'000;
  spec.it_value.tv_nsec = ns % 1'000'000'000;
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void EpollLoop::wait_and_dispatch() {
  arm();
  const int count = epoll_wait(epoll_, events_.get(), kBatch, -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.ptr == &timer_) {
      drain(timer_);
      armed_.reset();
    } else if (event.data.ptr == &wake_) {
      drain(wake_);
    } else {
      auto* const watcher = static_cast<Watcher*>(event.data.ptr);
      const bool gone =
          std::ranges::any_of(retired_, [&](const WatcherPtr& w) { return w.get() == watcher; });
      if (!gone) watcher->on_ready(event.events);
      // Hundreds of reads take milliseconds: a send that falls due among them can't wait for all.
      run_timers();
    }
  }
  retired_.clear();
}

void EpollLoop::watch(int descriptor, std::uint32_t events, const WatcherPtr& watcher) {
  ++watched_;
  control(epoll_, EPOLL_CTL_ADD, descriptor, events, watcher.get());
  intrusive_ptr_add_ref(watcher.get());  // the kernel's reference, given back by unwatch
}

void EpollLoop::change(int descriptor, std::uint32_t events, const WatcherPtr& watcher) {
  control(epoll_, EPOLL_CTL_MOD, descriptor, events, watcher.get());
}

void EpollLoop::unwatch(int descriptor, const WatcherPtr& watcher) {
  --watched_;
  control(epoll_, EPOLL_CTL_DEL, descriptor, 0, nullptr);
  retired_.push_back(watcher);
  intrusive_ptr_release(watcher.get());
}

}  // namespace assay
