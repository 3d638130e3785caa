#include "engine/net/stamp.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/core/time.h"

namespace assay {
namespace {

constexpr Instant kNow{100s};
constexpr std::int64_t kReal = 1'800'000'000'000'000'000;  // the wall clock at kNow
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMs;

TEST(MapByAge, AStampIsTakenByItsAge) {
  const Stamp stamp = map_by_age(kReal - 3 * kMs, kReal, kNow, kNow - 1s);
  EXPECT_EQ(stamp.at, kNow - 3ms);
  EXPECT_EQ(stamp.user, kNow);
  EXPECT_EQ(stamp.source, StampSource::kKernel);
}

TEST(MapByAge, NoStampMeansTheUsersInstant) {
  const Stamp stamp = map_by_age(std::nullopt, kReal, kNow, kNow - 1s);
  EXPECT_EQ(stamp.at, kNow);
  EXPECT_EQ(stamp.user, kNow);
  EXPECT_EQ(stamp.source, StampSource::kUser);
}

struct Edge {
  std::int64_t age_ns;
  StampSource source;
};

TEST(MapByAge, IsBelievedFromTheFloorToNowAndNotANanosecondBeyond) {
  for (const auto& [age_ns, source] :
       {Edge{-1, StampSource::kUser}, Edge{0, StampSource::kKernel}, Edge{1, StampSource::kKernel},
        Edge{kMs - 1, StampSource::kKernel}, Edge{kMs, StampSource::kKernel},
        Edge{kMs + 1, StampSource::kUser}}) {
    const Stamp stamp = map_by_age(kReal - age_ns, kReal, kNow, kNow - 1ms);
    EXPECT_EQ(stamp.source, source) << age_ns;
    EXPECT_EQ(stamp.at, source == StampSource::kKernel ? kNow - Duration(age_ns) : kNow) << age_ns;
  }
}

/// A read of bytes that came `age` ago, on a wall clock that is set `step_ago` before the read.
Stamp read_across_step(Duration age, Duration step_ago, std::int64_t by_ns, Duration floor_ago) {
  const Clocks clocks(Clocks::Step{kReal - step_ago.count(), by_ns});
  return map_by_age(clocks.shown(kReal - age.count()), clocks.shown(kReal), kNow, kNow - floor_ago);
}

TEST(MapByAge, AStepBeforeTheBytesCameChangesNothing) {
  for (const std::int64_t by : {5 * kSecond, -5 * kSecond, kMs, -kMs}) {
    const Stamp stamp = read_across_step(2ms, 3ms, by, 10s);
    EXPECT_EQ(stamp.at, kNow - 2ms) << by;
    EXPECT_EQ(stamp.source, StampSource::kKernel) << by;
  }
}

TEST(MapByAge, AStepBackwardWhileTheBytesWaitedIsSeenAsAStampOfTheFuture) {
  const Stamp stamp = read_across_step(2ms, 1ms, -5 * kSecond, 10s);
  EXPECT_EQ(stamp.at, kNow);
  EXPECT_EQ(stamp.source, StampSource::kUser);
}

TEST(MapByAge, AStepForwardWhileTheBytesWaitedIsSeenAsAStampBeforeTheFloor) {
  const Stamp stamp = read_across_step(2ms, 1ms, 5 * kSecond, 1s);
  EXPECT_EQ(stamp.at, kNow);
  EXPECT_EQ(stamp.source, StampSource::kUser);
}

TEST(MapByAge, WhateverTheStepTheInstantLiesBetweenFloorAndNow) {
  for (const Duration age : {Duration(0), Duration(1), Duration(50us), Duration(2ms)}) {
    for (const Duration step_ago : {Duration(0), Duration(1), Duration(1ms), Duration(1s)}) {
      for (const std::int64_t by :
           {-kSecond, -kMs, -std::int64_t{1}, std::int64_t{1}, kMs, kSecond}) {
        for (const Duration floor_ago : {Duration(0), Duration(1ms), Duration(1h)}) {
          const Stamp stamp = read_across_step(age, step_ago, by, floor_ago);
          EXPECT_GE(stamp.at, kNow - floor_ago);
          EXPECT_LE(stamp.at, kNow);
          EXPECT_EQ(stamp.user, kNow);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
