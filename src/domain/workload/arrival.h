// Arrival processes of the open loop. Gap i is drawn by index from the stream "arrivals", so a
// schedule is the same for one seed whatever the number of workers. Constant: (i + 1/2) / rate.
// Poisson: exponential gaps, the first one drawn like the rest, so that no burst stands at 0.
#pragma once

#include <cstdint>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"

namespace assay {

/// Walks a schedule in order. Offsets are from run start and never decrease; rounding doesn't
/// accumulate.
class ArrivalWalk {
 public:
  /// `rate` in requests per second, > 0.
  ArrivalWalk(Arrival process, double rate, std::uint64_t seed);
  /// Offset of the next arrival; the first call gives arrival 0. Stops growing at a century.
  Duration next();

 private:
  Arrival process_;
  double rate_;
  RandomStream stream_;
  std::uint64_t index_ = 0;
  // Sum of exponential gaps of mean 1, whole and fractional part apart: no rounding builds up.
  std::uint64_t sum_whole_ = 0;
  double sum_fraction_ = 0;
};

}  // namespace assay
