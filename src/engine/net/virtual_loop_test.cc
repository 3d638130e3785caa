#include "engine/net/virtual_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay {
namespace {

constexpr Instant kStart{5s};

TEST(VirtualLoop, TheClockIsExactlyThatOfTheTimer) {
  VirtualLoop loop(kStart);
  std::vector<Instant> seen;
  for (const Duration after : {Duration(7h), Duration(1), Duration(333'333'333)}) {
    loop.at(kStart + after, [&] { seen.push_back(loop.now()); });
  }
  loop.run();
  EXPECT_EQ(seen, (std::vector{kStart + 1ns, kStart + 333'333'333ns, kStart + 7h}));
  EXPECT_EQ(loop.now(), kStart + 7h);
}

TEST(VirtualLoop, EqualInstantsRunInTheOrderAsked) {
  VirtualLoop loop;
  std::string order;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    loop.at(Instant(1s), [&order, name] { order += name; });
  }
  loop.run();
  EXPECT_EQ(order, "abcd");
}

TEST(VirtualLoop, WhatIsPostedRunsBeforeTheTimersOfThatInstant) {
  VirtualLoop loop;
  std::string order;
  loop.at(Instant(1s), [&] {
    order += 'a';
    loop.post([&] { order += 'p'; });
    loop.post([&] { order += 'q'; });
  });
  loop.at(Instant(1s), [&] { order += 'b'; });
  loop.run();
  EXPECT_EQ(order, "apqb");
}

TEST(VirtualLoop, ATimerForThePastRunsNowAndDoesNotTurnTheClockBack) {
  VirtualLoop loop(kStart);
  Instant seen{};
  loop.at(kStart - 3s, [&] { seen = loop.now(); });
  loop.run();
  EXPECT_EQ(seen, kStart);
}

TEST(VirtualLoop, TimersOfTimersKeepExactTime) {
  VirtualLoop loop;
  int ticks = 0;
  std::function<void()> tick = [&] {
    if (++ticks < 10'000) loop.at(loop.now() + 100'003ns, tick);
  };
  loop.at(Instant{}, tick);
  loop.run();
  EXPECT_EQ(loop.now(), Instant(9'999 * 100'003ns));
}

TEST(VirtualLoop, ACancelledTimerDoesNotMoveTheClock) {
  VirtualLoop loop(kStart);
  const Loop::TimerId id = loop.at(kStart + 1h, [] { ADD_FAILURE() << "it was cancelled"; });
  loop.at(kStart + 1s, [&] { loop.cancel(id); });
  loop.run();
  EXPECT_EQ(loop.now(), kStart + 1s);
}

TEST(VirtualLoop, StopsAfterTheTaskThatAsksForItAndGoesOnLater) {
  VirtualLoop loop;
  std::string order;
  loop.post([&] {
    order += 'a';
    loop.stop();
  });
  loop.post([&] { order += 'b'; });
  loop.run();
  EXPECT_EQ(order, "a");
  loop.run();
  EXPECT_EQ(order, "ab");
}

}  // namespace
}  // namespace assay
