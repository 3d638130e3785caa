#include "domain/workload/arrival.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/core/check.h"
#include "domain/spec/spec.h"

namespace assay {

ArrivalWalk::ArrivalWalk(Arrival process, double rate, std::uint64_t seed)
    : process_(process), rate_(rate), stream_(seed, "arrivals") {
  CHECK(rate > 0 && std::isfinite(rate), "rate {}", rate);
}

Duration ArrivalWalk::next() {
  const std::uint64_t index = index_++;
  double periods = 0;  // in units of 1 / rate
  switch (process_) {
    case Arrival::kConstant:
      periods = static_cast<double>(index) + 0.5;
      break;
    case Arrival::kPoisson: {
      sum_fraction_ += stream_.at(index).exponential();
      const double whole = std::floor(sum_fraction_);
      sum_whole_ += static_cast<std::uint64_t>(whole);
      sum_fraction_ -= whole;
      periods = static_cast<double>(sum_whole_) + sum_fraction_;
      break;
    }
  }
  constexpr double kCenturySeconds = 3.2e9;
  return from_seconds(std::min(periods / rate_, kCenturySeconds));
}

}  // namespace assay
