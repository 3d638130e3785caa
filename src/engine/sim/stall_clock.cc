#include "engine/sim/stall_clock.h"

#include <algorithm>
#include <cstdint>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {

StallClock::StallClock(const SimSpec& spec, std::uint64_t seed)
    : random_(spec.random_stalls), stream_(seed, "stalls") {
  Duration lost{0};
  for (const StallSpec& stall : spec.stalls) {
    stalls_.push_back({stall.at - lost, lost + stall.length});
    lost += stall.length;
  }
}

void StallClock::extend(Duration engine) {
  while (random_ && (stalls_.empty() || stalls_.back().engine <= engine)) {
    Draws draws = stream_.at(drawn_++);
    const Stall last = stalls_.empty() ? Stall{Duration(0), Duration(0)} : stalls_.back();
    // At least a nanosecond apart, or a spec of zeros would never get anywhere.
    const Duration start = last.engine + std::max(Duration(1), random_->every.draw(draws));
    stalls_.push_back({start, last.lost + random_->length.draw(draws)});
  }
}

Duration StallClock::lost_at(Duration engine) const {
  const auto after = std::ranges::upper_bound(stalls_, engine, {}, &Stall::engine);
  return after == stalls_.begin() ? Duration(0) : std::prev(after)->lost;
}

Duration StallClock::to_wall(Duration engine) {
  if (stalls_.empty() && !random_) return engine;
  extend(engine);
  return engine + lost_at(engine);
}

Duration StallClock::to_engine(Duration wall) {
  if (stalls_.empty() && !random_) return wall;
  extend(wall);  // engine time is never ahead of wall time
  // The last stall that starts at or before `wall`; its start in wall time is engine + lost before.
  Duration lost{0};
  for (const Stall& stall : stalls_) {
    const Duration start = stall.engine + lost;
    if (start > wall) break;
    if (wall < start + (stall.lost - lost)) return stall.engine;
    lost = stall.lost;
  }
  return wall - lost;
}

}  // namespace assay::internal
