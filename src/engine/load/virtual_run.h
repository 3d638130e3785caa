// A load run in virtual time: one worker, the same code as in real time, on a VirtualLoop that the
// target lives on too. Hours of load take as long as their events do, and one seed gives one
// ledger, to the byte of every row. What a wall clock would say (CPU time, start, clock steps) is 0
// or left out.
#pragma once

#include <optional>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/net/virtual_loop.h"
#include "engine/target/target.h"

namespace assay {

struct VirtualRunInputs {
  const Spec& spec;      // effective: the salt is set
  const LoadPlan& plan;  // of one worker
  VirtualLoop& loop;     // fresh; the target may live on it, so it is the caller's
  Target& target;
  LedgerWriter& ledger;
  const StopLevel& stop;
  /// Arrivals in order, in place of the spec's arrival process.
  std::optional<std::vector<Duration>> trace;
};

/// Ledger errors as they come.
Result<RunEnd> run_virtual(const VirtualRunInputs& inputs);

}  // namespace assay
