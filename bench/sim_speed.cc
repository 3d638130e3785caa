// How fast the simulated engine is: requests of an M/M/c queue per second and core, with no ledger,
// no load engine and no text. Prints one JSON object; the last value is the check that the queue
// was the one asked for.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"
#include "engine/sim/distribution.h"
#include "engine/sim/emission.h"
#include "engine/sim/model.h"
#include "engine/sim/sim_spec.h"

namespace {

using namespace assay;

struct Timed {
  double requests_per_s = 0;
  double mean_wait_ms = 0;
};

Timed time_queue(std::int64_t servers, std::int64_t requests) {
  constexpr double kUtilisation = 0.8, kServiceSeconds = 0.05;
  SimSpec spec;
  spec.engine = ServersSpec{.servers = servers, .service = SimDistribution::exponential(50ms)};
  SimCore core(spec, 1);
  ArrivalWalk walk(Arrival::kPoisson, kUtilisation * static_cast<double>(servers) / kServiceSeconds,
                   1);
  std::vector<Emission> out;
  double waited_ms = 0;
  const Clocks clocks;
  const Instant begin = clocks.now();
  for (std::int64_t i = 0; i <= requests; ++i) {
    const Duration at = i < requests ? walk.next() : Duration::max();
    for (auto next = core.next(); next && *next <= at; next = core.next()) {
      out.clear();
      core.step(out);
      for (const Emission& e : out) waited_ms += to_ms(e.started - e.arrived);
    }
    if (i < requests) core.submit(at, {});
  }
  const double seconds = to_seconds(clocks.now() - begin);
  return {static_cast<double>(requests) / seconds, waited_ms / static_cast<double>(requests)};
}

}  // namespace

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string(argv[1]) == "--smoke";
  const std::int64_t requests = smoke ? 100'000 : 5'000'000;
  JsonWriter json;
  json.begin_object().key("mm_c").begin_array();
  for (const std::int64_t servers : {1, 8, 256}) {
    const Timed timed = time_queue(servers, requests);
    json.begin_object().field("servers", servers).field("requests", requests);
    json.field("requests_per_s", timed.requests_per_s).field("mean_wait_ms", timed.mean_wait_ms);
    json.end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.take().c_str());
  return 0;
}
