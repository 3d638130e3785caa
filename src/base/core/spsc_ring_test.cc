#include "base/core/spsc_ring.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <thread>

namespace assay {
namespace {

TEST(SpscRingTest, KeepsOrderAndSaysWhenFullOrEmpty) {
  SpscRing<int> ring(3);
  ASSERT_EQ(ring.capacity(), 4U);
  EXPECT_EQ(ring.front(), nullptr);
  // Three times round, so that the indices wrap.
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      int value = i;
      EXPECT_TRUE(ring.push(value));
    }
    int extra = 9;
    EXPECT_FALSE(ring.push(extra));
    EXPECT_EQ(ring.size(), 4U);
    for (int i = 0; i < 4; ++i) {
      ASSERT_NE(ring.front(), nullptr);
      EXPECT_EQ(*ring.front(), i);
      EXPECT_EQ(ring.pop(), i);
    }
    EXPECT_EQ(ring.front(), nullptr);
    EXPECT_EQ(ring.size(), 0U);
  }
}

TEST(SpscRingTest, LeavesWhatFoundNoRoomToItsOwner) {
  SpscRing<std::unique_ptr<int>> ring(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(ring.push(first));
  EXPECT_EQ(first, nullptr);
  EXPECT_FALSE(ring.push(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(SpscRingTest, TwoThreadsLoseNothing) {
  constexpr int kValues = 50'000;
  SpscRing<std::unique_ptr<int>> ring(8);
  std::jthread producer([&ring] {
    for (int i = 0; i < kValues; ++i) {
      auto value = std::make_unique<int>(i);
      while (!ring.push(value)) std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int i = 0; i < kValues; ++i) {
    while (ring.front() == nullptr) std::this_thread::yield();
    if (*ring.pop() != i) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ring.front(), nullptr);
}

}  // namespace
}  // namespace assay
