#include "engine/load/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/core/time.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

void plan_workers(const LoadSpec& spec, int cores, LoadPlan& plan) {
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();
  const std::int64_t connections = plan.connections.value_or(kMany);
  const std::int64_t slots = plan.open_loop ? kMany : plan.slots;
  if (spec.workers) {
    plan.workers = static_cast<int>(std::min({*spec.workers, connections, slots}));
    plan.workers_why = fmt::format("{} asked for", *spec.workers);
    return;
  }
  const bool finite = plan.queue_depth || plan.connections;
  if (finite && connections < 64LL * cores) {
    // Two half queues are not one queue: a request could wait beside a free connection.
    plan.workers = 1;
    plan.workers_why = fmt::format(
        "one: the queue or the connections are finite, with under 64 connections per core ({} "
        "cores)",
        cores);
    return;
  }
  plan.workers = static_cast<int>(std::min<std::int64_t>({cores, connections, slots}));
  plan.workers_why = "the least of cores, connections and concurrency";
}

}  // namespace

LoadPlan plan_load(const Spec& whole, int cores) {
  // A run of so many requests waits for each of them: one may stand in the queue for the timeout
  // and then run for the timeout. A run of so much time can't wait for ever.
  constexpr Duration kDrain = 30s;
  const LoadSpec& spec = whole.load;
  LoadPlan plan;
  plan.drain = spec.requests ? 2 * whole.target.timeout : std::min(kDrain, whole.target.timeout);
  plan.open_loop = spec.rate.has_value();
  plan.slots = spec.concurrency.value_or(0);
  plan.connections = spec.connections;
  if (!plan.open_loop && !plan.connections) plan.connections = plan.slots;
  plan.queue_depth = spec.queue_depth;
  plan.warmup_time = spec.warmup.time.value_or(Duration(0));
  plan.warmup_requests = spec.warmup.requests.value_or(0);
  plan.duration = spec.duration;
  plan.requests = spec.requests;
  plan_workers(spec, cores, plan);
  return plan;
}

}  // namespace assay
