// For tests and benchmarks: plays Poisson arrivals into a SimCore and keeps what each served
// request saw, in the order of arrival.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"
#include "engine/sim/emission.h"
#include "engine/sim/model.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {

struct QueuePlay {
  SimSpec spec;
  double rate = 1;            // arrivals per second
  std::int64_t requests = 0;  // measured, after the warm-up
  std::int64_t warmup = 0;    // requests that are not measured
  std::int64_t tokens = 1;    // asked for
  std::uint64_t seed = 1;
};

struct QueueSeen {
  std::vector<std::int64_t> wait_ns, response_ns;  // of served requests, in the order of their ends
  SimCounts counts;                                // warm-up included
  Duration end{0};
};

inline QueueSeen play_queue(const QueuePlay& play) {
  QueueSeen seen;
  SimCore core(play.spec, play.seed);
  ArrivalWalk walk(Arrival::kPoisson, play.rate, play.seed);
  std::vector<Emission> out;
  std::int64_t ended = 0;
  const auto drain_until = [&](std::optional<Duration> limit) {
    for (auto next = core.next(); next && (!limit || *next <= *limit); next = core.next()) {
      out.clear();
      core.step(out);
      for (const Emission& e : out) {
        seen.end = e.at;
        if ((e.flags & kEmitEnd) == 0 || ++ended <= play.warmup) continue;
        seen.wait_ns.push_back((e.started - e.arrived).count());
        seen.response_ns.push_back((e.at - e.arrived).count());
      }
    }
  };
  for (std::int64_t i = 0; i < play.warmup + play.requests; ++i) {
    const Duration at = walk.next();
    drain_until(at);
    core.submit(at, {.prompt_tokens = 1, .output_tokens = play.tokens});
  }
  drain_until(std::nullopt);
  seen.counts = core.counts();
  return seen;
}

}  // namespace assay::internal
