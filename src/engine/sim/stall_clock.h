// The clock of an engine that stands still at times. Engine time runs like wall time but for the
// stalls, whose starts are told in wall time; what falls on the start of a stall comes after it.
// Both maps never decrease, so the order of events survives them. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {

class StallClock {
 public:
  StallClock(const SimSpec& spec, std::uint64_t seed);
  /// Engine time at wall time `wall`; stands still during a stall.
  Duration to_engine(Duration wall);
  /// Wall time at which the engine does what is due at engine time `engine`.
  Duration to_wall(Duration engine);

 private:
  struct Stall {
    Duration engine;  // when it starts, in engine time
    Duration lost;    // by this stall and those before it
  };

  /// Draws random stalls until one starts after `engine`.
  void extend(Duration engine);
  [[nodiscard]] Duration lost_at(Duration engine) const;

  std::vector<Stall> stalls_;
  std::optional<RandomStalls> random_;
  RandomStream stream_;
  std::uint64_t drawn_ = 0;
};

}  // namespace assay::internal
