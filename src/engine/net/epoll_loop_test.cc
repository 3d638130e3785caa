#include "engine/net/epoll_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay {
namespace {

class EpollLoopTest : public testing::TestWithParam<EpollLoop::Pacing> {
 protected:
  EpollLoop loop_{Clocks(), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(BothPacings, EpollLoopTest,
                         testing::Values(EpollLoop::Pacing::kTimer, EpollLoop::Pacing::kPrecise),
                         [](const auto& tested) {
                           return tested.param == EpollLoop::Pacing::kTimer ? "Timer" : "Precise";
                         });

TEST_P(EpollLoopTest, TimersRunInOrderAndNeverEarly) {
  std::string order;
  const Instant now = loop_.now();
  const auto ask = [&](Duration after, char name) {
    loop_.at(now + after, [this, &order, name, when = now + after] {
      EXPECT_GE(loop_.now(), when);
      order += name;
    });
  };
  ask(3ms, 'd');
  ask(1ms, 'a');
  ask(2ms, 'b');
  ask(2ms, 'c');
  loop_.run();
  EXPECT_EQ(order, "abcd");
}

TEST_P(EpollLoopTest, ManyCloseTimersNeverRunEarly) {
  const Instant now = loop_.now();
  int ran = 0;
  for (int i = 0; i < 300; ++i) {
    const Instant when = now + i * 37us;
    loop_.at(when, [this, when, &ran] {
      EXPECT_GE(loop_.now(), when);
      ++ran;
    });
  }
  loop_.run();
  EXPECT_EQ(ran, 300);
}

TEST_P(EpollLoopTest, AnEarlierTimerOvertakesTheOneWaitedFor) {
  std::string order;
  loop_.at(loop_.now() + 4ms, [&] { order += 'b'; });
  loop_.post([&] { loop_.at(loop_.now() + 100us, [&] { order += 'a'; }); });
  loop_.run();
  EXPECT_EQ(order, "ab");
}

TEST_P(EpollLoopTest, AskingForThePastAgainAndAgainDoesNotStarveTheRest) {
  bool posted_ran = false;
  std::function<void()> greedy = [&] {
    if (!posted_ran) loop_.at(Instant{}, greedy);
  };
  loop_.at(Instant{}, [&] {
    loop_.post([&] { posted_ran = true; });
    greedy();
  });
  loop_.run();
  EXPECT_TRUE(posted_ran);
}

TEST_P(EpollLoopTest, ACancelledTimerNeitherRunsNorKeepsTheLoop) {
  const Loop::TimerId early = loop_.at(loop_.now() + 1h, [] { ADD_FAILURE(); });
  loop_.cancel(early);
  loop_.run();
  const Loop::TimerId late = loop_.at(loop_.now() + 1h, [] { ADD_FAILURE(); });
  loop_.at(loop_.now() + 100us, [&] { loop_.cancel(late); });
  loop_.run();
}

TEST_P(EpollLoopTest, StopHoldsBackWhatIsDueUntilTheNextRun) {
  std::string order;
  const Instant now = loop_.now();
  loop_.at(now, [&] {
    order += 'a';
    loop_.stop();
  });
  loop_.at(now, [&] { order += 'b'; });
  loop_.run();
  EXPECT_EQ(order, "a");
  loop_.run();
  EXPECT_EQ(order, "ab");
}

TEST(EpollLoop, PostedTasksRunInOrderAndNotInsidePost) {
  EpollLoop loop;
  std::string order;
  loop.post([&] {
    loop.post([&] { order += 'b'; });
    order += 'a';
  });
  EXPECT_EQ(order, "");
  loop.run();
  EXPECT_EQ(order, "ab");
}

TEST(EpollLoop, OtherThreadsMayPostToALoopThatHasNothingToDo) {
  EpollLoop loop;
  int ran = 0;  // touched on the loop's thread alone
  std::thread::id ran_on;
  const std::jthread poster([&] {
    for (int i = 0; i < 1'000; ++i) loop.post([&ran] { ++ran; });
    loop.post([&] {
      ran_on = std::this_thread::get_id();
      loop.stop();
    });
  });
  loop.run_until_stopped();
  EXPECT_EQ(ran, 1'000);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(EpollLoop, AnotherThreadMayStopIt) {
  EpollLoop loop;
  const std::jthread stopper([&] { loop.stop(); });
  loop.run_until_stopped();
}

TEST(EpollLoop, WhatNeverRanIsFreedWithTheLoop) {
  const auto held = std::make_shared<int>(1);
  {
    EpollLoop loop;
    loop.at(loop.now() + 1h, [held] {});
    loop.post([held] {});
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace assay
