#include "engine/net/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace assay {
namespace {

constexpr Instant kStart{1s};

class TimerHeapTest : public testing::Test {
 protected:
  Loop::TimerId add(Duration after, char name) {
    return heap_.add(kStart + after, [this, name] { ran_ += name; });
  }
  /// The names of the timers that are due, in the order they were handed out.
  std::string take_all(Duration after) {
    ran_.clear();
    while (const Loop::Task task = heap_.take_due(kStart + after)) task();
    return ran_;
  }

  internal::TimerHeap heap_;
  std::string ran_;
};

TEST_F(TimerHeapTest, IsEmptyAtFirst) {
  EXPECT_FALSE(heap_.next());
  EXPECT_FALSE(heap_.take_due(Instant::max()));
}

TEST_F(TimerHeapTest, HandsOutByInstant) {
  add(3us, 'c');
  add(1us, 'a');
  add(2us, 'b');
  EXPECT_EQ(heap_.next(), kStart + 1us);
  EXPECT_EQ(take_all(1s), "abc");
}

TEST_F(TimerHeapTest, EqualInstantsComeInTheOrderAsked) {
  std::string asked;
  for (char name = 'a'; name <= 'z'; ++name) {
    add(1us, name);
    asked += name;
  }
  EXPECT_EQ(take_all(1us), asked);
}

TEST_F(TimerHeapTest, IsDueAtItsInstantAndNotANanosecondBefore) {
  add(1us, 'a');
  EXPECT_EQ(take_all(999ns), "");
  EXPECT_EQ(take_all(1us), "a");
}

TEST_F(TimerHeapTest, ACancelledTimerNeverRuns) {
  add(1us, 'a');
  const Loop::TimerId b = add(2us, 'b');
  add(3us, 'c');
  heap_.cancel(b);
  EXPECT_EQ(take_all(1s), "ac");
}

TEST_F(TimerHeapTest, TheNextOneIsALiveOne) {
  const Loop::TimerId a = add(1us, 'a');
  add(2us, 'b');
  heap_.cancel(a);
  EXPECT_EQ(heap_.next(), kStart + 2us);
}

TEST_F(TimerHeapTest, CancellingFreesWhatTheTaskHolds) {
  const auto held = std::make_shared<int>(1);
  heap_.cancel(heap_.add(kStart, [held] {}));
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(TimerHeapTest, StaleAndForeignIdsAreIgnored) {
  const Loop::TimerId a = add(1us, 'a');
  EXPECT_EQ(take_all(1us), "a");
  add(2us, 'b');  // lives where `a` lived
  heap_.cancel(a);
  heap_.cancel(a);
  heap_.cancel(0);
  heap_.cancel(~Loop::TimerId{0});
  EXPECT_EQ(take_all(1s), "b");
}

TEST_F(TimerHeapTest, AnIdIsNeverZeroAndNeverGivenTwice) {
  const Loop::TimerId first = add(1us, 'a');
  heap_.cancel(first);
  const Loop::TimerId second = add(1us, 'b');
  EXPECT_NE(first, 0U);
  EXPECT_NE(second, 0U);
  EXPECT_NE(first, second);
}

TEST_F(TimerHeapTest, CancelledTimersCostNoMemoryForLong) {
  add(0us, 'a');
  std::size_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    heap_.cancel(add(1h, 'x'));
    most = std::max(most, heap_.size());
  }
  EXPECT_LE(most, 200U);
  EXPECT_EQ(take_all(2h), "a");
}

TEST_F(TimerHeapTest, KeepsItsOrderThroughCompaction) {
  std::vector<Loop::TimerId> doomed;
  std::string kept;
  for (int i = 0; i < 2'000; ++i) {
    const Loop::TimerId id = add(Duration(i * 7919 % 2'000), static_cast<char>('a' + i % 26));
    if (i % 10 != 0) doomed.push_back(id);
  }
  for (int at = 0; at < 2'000; ++at) {
    for (int i = 0; i < 2'000; i += 10) {
      if (i * 7919 % 2'000 == at) kept += static_cast<char>('a' + i % 26);
    }
  }
  for (const Loop::TimerId id : doomed) heap_.cancel(id);
  EXPECT_LE(heap_.size(), 500U);
  EXPECT_EQ(take_all(1s), kept);
}

}  // namespace
}  // namespace assay
