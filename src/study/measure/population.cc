#include "study/measure/population.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

const PhaseRow* find_phase(const Ledger& ledger, std::string_view name) {
  const auto row = std::ranges::find(ledger.phases, name, &PhaseRow::name);
  return row == ledger.phases.end() ? nullptr : &*row;
}

RunTime last_instant(const RequestRecord& r) {
  RunTime last = r.scheduled;
  for (const MaybeTime& t : {r.send_start, r.last_token, r.done}) {
    if (t) last = std::max(last, *t);
  }
  return last;
}

/// Where the window ends, given that it starts at population.start.
RunTime window_end(const Ledger& ledger, const Spec& spec, const Population& population) {
  const PhaseRow* steady = find_phase(ledger, "steady");
  RunTime end = population.last;
  if (steady != nullptr && steady->end > steady->start) {
    end = steady->end;
  } else if (spec.load.duration) {
    end = std::min(end, population.start + *spec.load.duration);
  }
  if (!spec.load.requests || population.measured.empty()) return end;
  // Retries are attempts of a request that counts once.
  const auto firsts = std::ranges::count_if(
      population.measured, [&ledger](std::size_t i) { return ledger.requests[i].attempt == 1; });
  if (firsts < *spec.load.requests) return end;
  return std::min(end, ledger.requests[population.measured.back()].scheduled);
}

}  // namespace

Population population_of(const Ledger& ledger, const Spec& spec) {
  Population population;
  const PhaseRow* warmup = find_phase(ledger, "warmup");
  for (std::size_t i = 0; i < ledger.requests.size(); ++i) {
    const RequestRecord& r = ledger.requests[i];
    population.last = std::max(population.last, last_instant(r));
    const bool warming = warmup != nullptr && r.phase == warmup->id;
    if (!warming) population.measured.push_back(i);
  }
  // By instant, then by place: a stable sort, which libstdc++ 12 has only with a deprecated helper.
  std::ranges::sort(population.measured, {}, [&ledger](std::size_t i) {
    return std::pair(ledger.requests[i].scheduled, i);
  });
  if (population.measured.empty()) {
    population.start = population.end = population.last;
    return population;
  }
  population.start = ledger.requests[population.measured.front()].scheduled;
  population.end = std::max(population.start, window_end(ledger, spec, population));
  const PhaseRow* drain = find_phase(ledger, "drain");
  for (const std::size_t i : population.measured) {
    const RequestRecord& r = ledger.requests[i];
    const bool drained = drain != nullptr && r.phase == drain->id;
    if (!drained && r.scheduled <= population.end) population.cohort.push_back(i);
  }
  return population;
}

}  // namespace assay
