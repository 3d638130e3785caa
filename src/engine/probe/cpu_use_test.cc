#include "engine/probe/cpu_use.h"

#include <gtest/gtest.h>

#include <optional>

namespace assay {
namespace {

TEST(CpuUse, CountsAllButIdleAndWaiting) {
  EXPECT_EQ(busy_seconds("cpu  100 20 30 90000 8000 4 5 6 7 8\ncpu0 1 2 3\n", 100), 1.65);
}

TEST(CpuUse, WhatIsNoSuchLineIsNoNumber) {
  EXPECT_EQ(busy_seconds("", 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpu0 1 2 3 4 5 6 7 8", 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpu 1 2 3 4 5 6 7", 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpu 1 2 x 4 5 6 7 8", 100), std::nullopt);
}

TEST(CpuUse, ThisProcessIsAPartOfTheMachine) {
  const std::optional<CpuUse> use = read_cpu_use();
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->own_s, 0);
  EXPECT_GT(use->host_s, use->own_s);
}

}  // namespace
}  // namespace assay
