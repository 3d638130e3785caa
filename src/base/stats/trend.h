// Does a series drift? Least squares of batch means on time, and Student's t of the slope: batches
// make the residuals nearly independent where neighbouring values hang together. Significance alone
// isn't news in a long run, so the size of the drift is told as a share of the mean and the caller
// asks for both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace assay {

struct Trend {
  double change = 0;    // from the first to the last moment of the fitted line ÷ the mean
  double t = 0;         // of the slope; its sign is the direction
  double critical = 0;  // |t| beyond this has probability 1 % without a drift
  [[nodiscard]] bool significant() const { return t > critical || t < -critical; }
};

/// Null where there is too little to tell: fewer than 40 values.
std::optional<Trend> trend_of(std::span<const std::int64_t> in_time_order);

}  // namespace assay
