#include "engine/net/clock_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/core/time.h"

namespace assay {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMs;

/// What a watch reports on a wall clock that is set by `by_ns` soon after the watch began, polled
/// until well after the step.
std::vector<std::int64_t> reports_of_step(std::int64_t by_ns) {
  for (;;) {
    const std::int64_t at = Clocks().real_now().ns + 5 * kMs;
    ClockWatch watch(Clocks(Clocks::Step{at, by_ns}));
    if (Clocks().real_now().ns >= at) continue;  // this thread was held up: the step is over
    std::vector<std::int64_t> reports;
    const auto poll = [&] {
      if (const std::optional<std::int64_t> moved = watch.poll()) reports.push_back(*moved);
    };
    while (Clocks().real_now().ns < at) poll();
    for (int i = 0; i < 100; ++i) poll();
    return reports;
  }
}

TEST(ClockWatch, SeesAStepOnceAndKnowsItsSize) {
  for (const std::int64_t by : {5 * kSecond, -5 * kSecond, 20 * kMs, -20 * kMs}) {
    const std::vector<std::int64_t> reports = reports_of_step(by);
    ASSERT_EQ(reports.size(), 1U) << by;
    EXPECT_LT(std::abs(reports[0] - by), kMs) << by;
  }
}

TEST(ClockWatch, AClockThatRunsEvenlyIsNoStep) {
  ClockWatch watch((Clocks()));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(watch.poll(), std::nullopt);
}

TEST(ClockWatch, AStepFromBeforeTheWatchIsNoStep) {
  ClockWatch watch(Clocks(Clocks::Step{0, 5 * kSecond}));
  EXPECT_EQ(watch.poll(), std::nullopt);
}

TEST(ClockWatch, TellsHowFarTheWallClockIsFromTheMonotonicOne) {
  const ClockWatch plain((Clocks()));
  const ClockWatch ahead(Clocks(Clocks::Step{0, 5 * kSecond}));
  EXPECT_LT(std::abs(ahead.offset_ns() - plain.offset_ns() - 5 * kSecond), 100 * kMs);
}

}  // namespace
}  // namespace assay
