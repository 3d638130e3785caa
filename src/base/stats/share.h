// Interval of a share (successes of trials) by Clopper and Pearson (Biometrika 26, 1934): exact, so
// it never covers less than 95 %, also at shares near 0 and 1, where service levels live.
#pragma once

#include <cstdint>
#include <optional>

#include "base/stats/interval.h"

namespace assay {

/// Null without trials. 0 ≤ successes ≤ trials.
std::optional<Interval> share_interval(std::int64_t successes, std::int64_t trials);

}  // namespace assay
