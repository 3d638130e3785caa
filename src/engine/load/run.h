// A load run in real time: makes the workers' loops and threads, the builder thread, and is itself
// the writer: the calling thread takes the records, commits them to the ledger twice a second,
// watches the wall clock for steps and reports progress. Returns when everything has ended, drained
// or been cancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/target/target.h"

namespace assay {

struct Progress {
  std::string_view phase;  // "warmup", "steady", "drain"
  Duration elapsed{0};
  std::int64_t scheduled = 0, in_flight = 0, ok = 0, failed = 0, events = 0;
};

/// Set by signal handlers: 1 drains and reports, 2 stops at once.
using StopLevel = std::atomic<int>;

struct RunInputs {
  const Spec& spec;  // effective: the salt is drawn
  const LoadPlan& plan;
  Target& target;
  LedgerWriter& ledger;
  Clocks clocks;
  std::vector<std::string> secrets;
  const StopLevel& stop;
  std::function<void(const Progress&)> on_progress;  // at most ten times a second
};

struct RunEnd {
  bool interrupted = false;
};

/// kUnreachable when no connection opens within five seconds; ledger errors as they come.
Result<RunEnd> run_load(const RunInputs& inputs);

}  // namespace assay
