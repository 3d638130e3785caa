#include "engine/net/asio_loop.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/timer_heap.h"

namespace assay {
namespace {
constexpr Duration kSpin = 60us;
}

struct AsioLoop::Core {
  boost::asio::io_context context{1};
  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>,
                                    boost::asio::io_context::executor_type>
      timer{context};
  internal::TimerHeap timers;
  std::optional<Instant> armed;        // what `timer` waits for
  std::optional<Instant> running_due;  // the instant up to which timers are being run
};

AsioLoop::AsioLoop(Clocks clocks, Pacing pacing)
    : clocks_(clocks),
      pacing_(pacing),
      read_buffer_(new char[kReadSize + kReadPadding]()),
      core_(std::make_unique<Core>()) {}

AsioLoop::~AsioLoop() = default;

boost::asio::io_context& AsioLoop::context() { return core_->context; }

void AsioLoop::post(Task task) { boost::asio::post(core_->context, std::move(task)); }

Loop::TimerId AsioLoop::at(Instant when, Task task) {
  // What a timer's task asks for the past waits for the next turn, or it would starve the sockets.
  if (core_->running_due) when = std::max(when, *core_->running_due + 1ns);
  const TimerId id = core_->timers.add(when, std::move(task));
  if (!core_->armed || when < *core_->armed) arm();
  return id;
}

void AsioLoop::cancel(TimerId id) {
  core_->timers.cancel(id);
  // The last timer gone: else the wait for it would keep run() up until its instant.
  if (core_->armed && !core_->timers.next()) arm();
}

void AsioLoop::run() {
  core_->context.restart();
  core_->context.run();
}

void AsioLoop::run_until_stopped() {
  const auto work = boost::asio::make_work_guard(core_->context);
  core_->context.run();
}

void AsioLoop::stop() { core_->context.stop(); }

void AsioLoop::arm() {
  if (core_->running_due) return;  // run_due arms once, at its end
  const std::optional<Instant> next = core_->timers.next();
  if (core_->armed == next) return;
  core_->armed = next;
  if (!next) {
    core_->timer.cancel();
    return;
  }
  core_->timer.expires_at(pacing_ == Pacing::kPrecise ? *next - kSpin : *next);
  core_->timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) run_due();
  });
}

void AsioLoop::run_due() {
  core_->armed.reset();
  Instant now = clocks_.now();
  if (pacing_ == Pacing::kPrecise) {
    const std::optional<Instant> next = core_->timers.next();
    while (next && now < *next && *next - now <= kSpin) now = clocks_.now();
  }
  core_->running_due = now;
  while (!core_->context.stopped()) {
    const Task task = core_->timers.take_due(now);
    if (!task) break;
    task();
  }
  core_->running_due.reset();
  arm();
}

}  // namespace assay
