#include "engine/net/clock_watch.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/core/time.h"

namespace assay {
namespace {
/// Well over what slewing does between two polls, and over the noise of reading two clocks.
constexpr std::int64_t kStepNs = 1'000'000;
}  // namespace

ClockWatch::ClockWatch(Clocks clocks)
    : clocks_(clocks),
      timer_(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      offset_ns_(offset_ns()) {
  arm();
}

ClockWatch::~ClockWatch() {
  if (timer_ >= 0) close(timer_);
}

void ClockWatch::arm() const {
  if (timer_ < 0) return;
  itimerspec far{};
  far.it_value.tv_sec = 1LL << 40;  // never; only a set of the clock wakes it
  timerfd_settime(timer_, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, nullptr);
}

bool ClockWatch::set_by_kernel_account() {
  if (timer_ < 0) return false;
  std::uint64_t ticks = 0;
  if (read(timer_, &ticks, sizeof ticks) >= 0 || errno != ECANCELED) return false;
  arm();
  return true;
}

std::int64_t ClockWatch::offset_ns() const {
  // The wall clock between two monotonic readings, the narrowest of three tries: a preemption
  // widens one.
  std::int64_t best = 0;
  Duration width = Duration::max();
  for (int i = 0; i < 3; ++i) {
    const Instant before = clocks_.now();
    const std::int64_t real = clocks_.real_now().ns;
    const Instant after = clocks_.now();
    if (after - before >= width) continue;
    width = after - before;
    best = real - (before + width / 2).time_since_epoch().count();
  }
  return best;
}

std::optional<std::int64_t> ClockWatch::poll() {
  const bool set = set_by_kernel_account();
  const std::int64_t offset = offset_ns();
  const std::int64_t moved = offset - offset_ns_;
  offset_ns_ = offset;
  if (!set && std::abs(moved) < kStepNs) return std::nullopt;
  return moved;
}

}  // namespace assay
