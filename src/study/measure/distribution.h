// From values in time order to a Distribution: nearest-rank percentiles with their intervals, the
// mean with its own, Kaplan-Meier where some values were cut off. Values are nanoseconds, the
// result is in milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/stats/survival.h"
#include "study/measure/measurement.h"

namespace assay {

/// `why_null` is kept where there are no values.
Distribution distribution_ms(std::span<const std::int64_t> in_time_order, std::string why_null);
Distribution distribution_ms(const std::vector<Lifetime>& in_time_order, std::string why_null);

}  // namespace assay
