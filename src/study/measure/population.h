// Who counts. Warm-up ends where the first request of a later phase is scheduled; the steady window
// begins there and ends at --duration, or with --requests when the last request is scheduled,
// whichever came first. Indices are into Ledger::requests.
#pragma once

#include <cstddef>
#include <vector>

#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"

namespace assay {

struct Population {
  RunTime start{0}, end{0};           // the steady window [start, end)
  RunTime last{0};                    // the last instant that any request of the run has
  std::vector<std::size_t> measured;  // every attempt after warm-up, by scheduled instant
  std::vector<std::size_t> cohort;    // of them, those scheduled in the steady window

  [[nodiscard]] Duration window() const { return end - start; }
  [[nodiscard]] Duration whole() const { return last - start; }
  [[nodiscard]] bool contains(RunTime t) const { return t >= start && t < end; }
};

Population population_of(const Ledger& ledger, const Spec& spec);

}  // namespace assay
