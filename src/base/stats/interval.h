// A two-sided confidence interval. Every interval of assay is at kConfidence unless its function
// says otherwise; its ends are in the unit of the figure that it belongs to.
#pragma once

namespace assay {

inline constexpr double kConfidence = 0.95;

struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace assay
