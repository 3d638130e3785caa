#include "base/stats/survival.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using End = Lifetime::End;

TEST(KaplanMeier, WithoutCutOffValuesIsNearestRank) {
  std::vector<Lifetime> lives;
  for (int i = 100; i >= 1; --i) lives.push_back({.time = i, .end = End::kObserved});
  const KaplanMeier curve(lives);
  for (const int percent : {1, 7, 50, 90, 99, 100}) {
    EXPECT_EQ(curve.quantile(percent / 100.0), percent);
  }
  EXPECT_NEAR(curve.restricted_mean(), 50.5, 1e-9);
}

TEST(KaplanMeier, MatchesTheTextbookExample) {
  // Remission times of 6-MP patients (Freireich 1963, in Kalbfleisch & Prentice): the survival is
  // 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448 after 6, 7, 10, 13, 16, 22, 23 weeks.
  std::vector<Lifetime> lives;
  for (const int t : {6, 6, 6, 7, 10, 13, 16, 22, 23}) lives.push_back({t, End::kObserved});
  for (const int t : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35}) {
    lives.push_back({t, End::kCensored});
  }
  const KaplanMeier curve(lives);
  EXPECT_EQ(curve.quantile(1 - 0.858), 6);
  EXPECT_EQ(curve.quantile(1 - 0.856), 7);
  EXPECT_EQ(curve.quantile(1 - 0.691), 13);
  EXPECT_EQ(curve.quantile(1 - 0.628), 16);
  EXPECT_EQ(curve.quantile(0.5), 23);
  EXPECT_EQ(curve.quantile(1 - 0.449), 23);
  EXPECT_EQ(curve.quantile(1 - 0.447), std::nullopt);
  EXPECT_EQ(curve.longest(), 35);
}

TEST(KaplanMeier, OfCutOffValuesOnlyKnowsABoundOnly) {
  const KaplanMeier curve({{.time = 5, .end = End::kCensored}, {.time = 9, .end = End::kCensored}});
  EXPECT_EQ(curve.quantile(0.01), std::nullopt);
  EXPECT_EQ(curve.longest(), 9);
  EXPECT_EQ(curve.restricted_mean(), 9);
}

}  // namespace
}  // namespace assay
