// Intervals of means and rates of a series in time order by nonoverlapping batch means: the series
// is cut into a few long batches, whose means are nearly independent and nearly normal even where
// neighbouring values are neither, and Student's t of the batch means gives the interval (Law,
// Simulation Modeling and Analysis, 5th ed., §9.5.3; Schmeiser 1982 for the number of batches).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/stats/interval.h"

namespace assay {

inline constexpr std::size_t kMeanBatches = 20;

/// 95 % interval of the mean of values in time order. Fewer than 2 · kMeanBatches values are
/// treated as independent; null below 2 values.
std::optional<Interval> mean_interval(std::span<const double> in_time_order);
std::optional<Interval> mean_interval(std::span<const std::int64_t> in_time_order);

/// 95 % interval of a rate from what was counted in equal, consecutive spans of time that together
/// make the window: per-span amounts divided by `span_seconds`. Null below 5 spans.
std::optional<Interval> rate_interval(std::span<const double> amounts, double span_seconds);

}  // namespace assay
