#include "base/stats/share.h"

#include <cstdint>
#include <optional>

#include "base/core/check.h"
#include "base/stats/distribution.h"
#include "base/stats/interval.h"

namespace assay {

std::optional<Interval> share_interval(std::int64_t successes, std::int64_t trials) {
  CHECK(successes >= 0 && successes <= trials, "{} of {}", successes, trials);
  if (trials == 0) return std::nullopt;
  constexpr double kTail = (1 - kConfidence) / 2;
  const auto hits = static_cast<double>(successes);
  const auto misses = static_cast<double>(trials - successes);
  return Interval{successes == 0 ? 0.0 : beta_quantile(kTail, hits, misses + 1),
                  successes == trials ? 1.0 : beta_quantile(1 - kTail, hits + 1, misses)};
}

}  // namespace assay
