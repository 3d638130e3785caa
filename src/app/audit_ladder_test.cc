#include "app/audit_ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "app/audit_play.h"
#include "engine/probe/limits.h"
#include "study/doctor/audit.h"

namespace assay {
namespace {

constexpr HostLimits kLarge{.descriptors = 100'000, .ports = 28'232, .cores = 2};

const RungPlan* find(const Ladder& ladder, const std::string& name) {
  const auto found =
      std::ranges::find(ladder.rungs, name, [](const RungPlan& p) { return p.asked.name; });
  return found == ladder.rungs.end() ? nullptr : &*found;
}

/// How long a rung loads its server, at least.
Duration length_of(const RungPlan& plan) {
  const Duration reply = plan.ttft + (plan.tokens - 1) * plan.gap;
  return plan.load.warmup.time.value_or(0s) + plan.load.duration.value_or(0s) + reply;
}

TEST(AuditLadder, HasTheRungsThatTheProofNeeds) {
  const Ladder ladder = audit_ladder(LadderSize::kFull, kLarge);
  EXPECT_TRUE(ladder.left_out.empty());
  for (const char* name :
       {"1 stream", "100 streams", "1,000 streams", "10,000 streams", "1,000 starts at once",
        "1,000 requests/s", "10,000 requests/s", "a stall, 4 connections", "80,000 events/s"}) {
    EXPECT_NE(find(ladder, name), nullptr) << name;
  }
  const RungPlan& stall = *find(ladder, "a stall, 4 connections");
  EXPECT_EQ(stall.pause->length, 2s);
  EXPECT_EQ(stall.load.connections, 4);
}

TEST(AuditLadder, FitsItsTime) {
  const auto total = [](LadderSize size) {
    Duration sum{0};
    for (const RungPlan& plan : audit_ladder(size, kLarge).rungs) sum += length_of(plan);
    return sum;
  };
  EXPECT_LE(total(LadderSize::kFull), 80s);
  EXPECT_LE(total(LadderSize::kQuick), 17s);
}

TEST(AuditLadder, WhatTheMachineCantCarryIsLeftOutWithTheReason) {
  const Ladder ladder =
      audit_ladder(LadderSize::kFull, {.descriptors = 4096, .ports = 28'232, .cores = 2});
  EXPECT_EQ(find(ladder, "10,000 streams"), nullptr);
  ASSERT_EQ(ladder.left_out.size(), 1U);
  EXPECT_EQ(ladder.left_out[0].rung, "10,000 streams");
  EXPECT_NE(ladder.left_out[0].why.find("file descriptors"), std::string::npos);
}

TEST(AuditLadder, QuickNamesWhatItLeavesOut) {
  const Ladder ladder = audit_ladder(LadderSize::kQuick, kLarge);
  EXPECT_EQ(find(ladder, "10,000 streams"), nullptr);
  EXPECT_EQ(ladder.left_out.size(), 3U);
}

TEST(AuditLadder, StepsComeLastAndRise) {
  for (const LadderSize size : {LadderSize::kQuick, LadderSize::kFull}) {
    double before = 0;
    for (const RungPlan& plan : audit_ladder(size, kLarge).rungs) {
      if (plan.asked.kind != RungKind::kEvents) {
        EXPECT_EQ(before, 0) << plan.asked.name;
        continue;
      }
      EXPECT_GT(*plan.asked.events_per_s, before);
      before = *plan.asked.events_per_s;
      EXPECT_EQ(plan.asked.standing, Standing::kReach);
    }
    EXPECT_GT(before, 0);
  }
}

TEST(AuditLadder, CoresAreSharedInHalves) {
  EXPECT_FALSE(share_cores(1).apart);
  for (const int cores : {2, 3, 8}) {
    const CoreShare share = share_cores(cores);
    EXPECT_TRUE(share.apart);
    EXPECT_GE(share.client, 1);
    EXPECT_EQ(share.client + share.server, cores);
  }
}

}  // namespace
}  // namespace assay
