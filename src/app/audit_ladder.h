// The rungs of `assay audit`: which load each puts on which simulated engine. Pure: what a machine
// can't carry is left out with the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "engine/probe/limits.h"
#include "study/doctor/audit.h"

namespace assay {

/// The server stands still from `after` the run's start, for `length`.
struct ServerPause {
  Duration after{0};
  Duration length{0};
};

struct RungPlan {
  RungAsked asked;
  Duration ttft{0}, gap{0};  // of the server
  LoadSpec load;
  std::int64_t tokens = 1;  // of a reply
  std::optional<ServerPause> pause;
};

struct Ladder {
  std::vector<RungPlan> rungs;  // in order; the steps of events/s last, the slowest first
  std::vector<LeftOut> left_out;
};

enum class LadderSize : std::uint8_t { kQuick, kFull };

Ladder audit_ladder(LadderSize size, const HostLimits& limits);

}  // namespace assay
