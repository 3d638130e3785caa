#include "base/stats/survival.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "base/core/check.h"

namespace assay {

KaplanMeier::KaplanMeier(std::vector<Lifetime> lifetimes) {
  CHECK(!lifetimes.empty(), "no lifetimes");
  std::ranges::sort(lifetimes, [](const Lifetime& a, const Lifetime& b) {
    return std::tie(a.time, a.end) < std::tie(b.time, b.end);  // at a tie, the ended come first
  });
  longest_ = lifetimes.back().time;
  const std::size_t n = lifetimes.size();
  double surviving = 1;
  std::int64_t since = 0;
  for (std::size_t i = 0; i < n;) {
    const std::int64_t time = lifetimes[i].time;
    const auto at_risk = static_cast<double>(n - i);
    std::size_t ended = 0;
    for (; i < n && lifetimes[i].time == time; ++i) {
      if (lifetimes[i].end == Lifetime::End::kObserved) ++ended;
    }
    if (ended == 0) continue;
    restricted_mean_ += surviving * static_cast<double>(time - since);
    since = time;
    surviving *= 1 - static_cast<double>(ended) / at_risk;
    steps_.push_back({time, 1 - surviving});
  }
  restricted_mean_ += surviving * static_cast<double>(longest_ - since);
}

std::optional<std::int64_t> KaplanMeier::quantile(double p) const {
  // The product carries rounding errors of some ulps per step; p is a decimal fraction.
  constexpr double kSlack = 1e-9;
  const auto step = std::ranges::lower_bound(steps_, p - kSlack, {}, &Step::ended);
  if (step == steps_.end()) return std::nullopt;
  return step->time;
}

}  // namespace assay
