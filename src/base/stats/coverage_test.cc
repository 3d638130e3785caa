// Do 95 % intervals cover the truth in 95 % of data sets? A thousand simulated sets each, with the
// truth known, independent and autocorrelated (AR(1), each value 0.7 of the one before). The
// standard error of a coverage of 0.95 over 1,000 sets is 0.007.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/core/random.h"
#include "base/stats/interval.h"
#include "base/stats/mean.h"
#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "base/stats/share.h"

namespace assay {
namespace {

constexpr std::uint64_t kSets = 1000;
constexpr double kScale = 1e6;
// Quantiles of the standard normal distribution.
constexpr double kNormal90 = 1.2815515655446004;
constexpr double kNormal99 = 2.3263478740408408;

/// The share of sets for which `covers` is true.
double coverage(const char* name, const std::function<bool(Draws&)>& covers) {
  const RandomStream stream(20261201, name);
  int hits = 0;
  for (std::uint64_t set = 0; set < kSets; ++set) {
    Draws draws = stream.at(set);
    if (covers(draws)) ++hits;
  }
  return static_cast<double>(hits) / static_cast<double>(kSets);
}

/// Stationary AR(1) of standard normal values; `phi` 0: independent.
std::vector<std::int64_t> series(Draws& draws, std::size_t n, double phi) {
  std::vector<std::int64_t> values(n);
  const double noise = std::sqrt(1 - phi * phi);
  double x = draws.normal();
  for (std::int64_t& v : values) {
    v = std::llround(kScale * x);
    x = phi * x + noise * draws.normal();
  }
  return values;
}

bool quantile_covers(const std::vector<std::int64_t>& values, double p, double truth) {
  const std::array<std::size_t, 1> rank{nearest_rank(p, values.size())};
  const double worth = effective_count(values, p, select_ranks(values, rank)[0]);
  const auto interval = quantile_ranks(p, values.size(), worth);
  if (!interval) return false;
  const std::array<std::size_t, 2> ends{interval->low, interval->high};
  const auto found = select_ranks(values, ends);
  return static_cast<double>(found[0]) <= kScale * truth &&
         kScale * truth <= static_cast<double>(found[1]);
}

TEST(Coverage, MedianOfIndependentValues) {
  const double share = coverage(
      "median", [](Draws& draws) { return quantile_covers(series(draws, 200, 0), 0.5, 0); });
  EXPECT_GE(share, 0.93);
  EXPECT_LE(share, 0.985);
}

TEST(Coverage, P90OfIndependentValues) {
  const double share = coverage(
      "p90", [](Draws& draws) { return quantile_covers(series(draws, 400, 0), 0.9, kNormal90); });
  EXPECT_GE(share, 0.93);
  EXPECT_LE(share, 0.985);
}

TEST(Coverage, P99OfIndependentValues) {
  const double share = coverage(
      "p99", [](Draws& draws) { return quantile_covers(series(draws, 1000, 0), 0.99, kNormal99); });
  EXPECT_GE(share, 0.93);
  EXPECT_LE(share, 0.985);
}

TEST(Coverage, MedianOfValuesThatHangTogether) {
  const double share = coverage("median of AR(1)", [](Draws& draws) {
    return quantile_covers(series(draws, 2000, 0.7), 0.5, 0);
  });
  EXPECT_GE(share, 0.92);
}

TEST(Coverage, P90OfValuesThatHangTogether) {
  const double share = coverage("p90 of AR(1)", [](Draws& draws) {
    return quantile_covers(series(draws, 2000, 0.7), 0.9, kNormal90);
  });
  EXPECT_GE(share, 0.92);
}

TEST(Coverage, IgnoringTheCorrelationWouldFail) {
  // The reason for the effective count: plain ranks cover far too seldom.
  const double share = coverage("plain ranks on AR(1)", [](Draws& draws) {
    const auto values = series(draws, 2000, 0.7);
    const auto plain = quantile_ranks(0.5, values.size());
    const std::array<std::size_t, 2> ends{plain->low, plain->high};
    const auto found = select_ranks(values, ends);
    return found[0] <= 0 && 0 <= found[1];
  });
  EXPECT_LT(share, 0.80);
}

bool mean_covers(const std::vector<std::int64_t>& values, double truth) {
  const auto interval = mean_interval(values);
  return interval->low <= truth && truth <= interval->high;
}

TEST(Coverage, MeanOfIndependentValues) {
  for (const std::size_t n : {10UZ, 300UZ}) {
    const double share =
        coverage("mean", [n](Draws& draws) { return mean_covers(series(draws, n, 0), 0); });
    EXPECT_GE(share, 0.93) << n;
    EXPECT_LE(share, 0.97) << n;
  }
}

TEST(Coverage, MeanOfValuesThatHangTogether) {
  const double share = coverage(
      "mean of AR(1)", [](Draws& draws) { return mean_covers(series(draws, 1000, 0.7), 0); });
  EXPECT_GE(share, 0.925);
  EXPECT_LE(share, 0.97);
}

TEST(Coverage, RateOfAPoissonProcess) {
  constexpr double kPerSpan = 15;
  const double share = coverage("rate", [](Draws& draws) {
    std::array<double, 20> spans{};
    for (double t = draws.exponential(); t < kPerSpan * 20; t += draws.exponential()) {
      spans.at(static_cast<std::size_t>(t / kPerSpan)) += 1;
    }
    const auto interval = rate_interval(spans, kPerSpan);
    return interval->low <= 1 && 1 <= interval->high;
  });
  EXPECT_GE(share, 0.93);
  EXPECT_LE(share, 0.97);
}

TEST(Coverage, ShareIsNeverCoveredTooSeldom) {
  for (const double truth : {0.5, 0.95, 0.99}) {
    const double share = coverage("share", [truth](Draws& draws) {
      std::int64_t hits = 0;
      for (int i = 0; i < 100; ++i) hits += draws.uniform() < truth ? 1 : 0;
      const auto interval = share_interval(hits, 100);
      return interval->low <= truth && truth <= interval->high;
    });
    EXPECT_GE(share, 0.945) << truth;
  }
}

TEST(RateInterval, NeedsFiveSpans) {
  const std::array<double, 5> spans{4, 5, 6, 5, 5};
  EXPECT_FALSE(rate_interval(std::span<const double>(spans).first(4), 1));
  const auto interval = rate_interval(spans, 2);
  ASSERT_TRUE(interval);
  // Mean 5 per span of 2 s; s = √0.5, t(4) = 2.7764: 2.5 ± 2.7764 · √(0.5 / 5) / 2.
  EXPECT_NEAR(interval->low, 2.5 - 0.43899, 1e-4);
  EXPECT_NEAR(interval->high, 2.5 + 0.43899, 1e-4);
}

}  // namespace
}  // namespace assay
