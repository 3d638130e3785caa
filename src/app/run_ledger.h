// The two ends of a run that every kind of run shares: the ledger's name and meta before it, and
// the summary on screen after it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"

namespace assay {

/// "SmolLM2-135M-c8-20261201-160708.assay", without what a shell or a file system minds. The stamp
/// has seconds: runs that begin in the same one are told apart by a number.
std::string free_ledger_name(const Spec& spec, const std::string& model, WallTime now);

/// Refuses a spec.run.out that exists.
Result<> check_out(const Spec& spec);

struct RunLedgerInputs {
  const Spec& spec;  // run.out is set
  const LoadPlan& plan;
  const HostLimits& limits;
  const std::string& asked;
  const std::string& model;
  WallTime start_wall;
  std::map<std::string, std::string> more = {};  // further meta
};
Result<std::unique_ptr<LedgerWriter>> create_run_ledger(const RunLedgerInputs& inputs);

/// Says so where another process reads the ledger, which is then left in two files.
Result<> close_run_ledger(World& world, const Spec& spec, LedgerWriter& ledger, const RunEnd& end);

/// Reads the ledger of a run that has ended, prints its summary and gives the exit code.
ExitCode summarise_run(World& world, const Spec& spec, ReportFormat format, const RunEnd& end);

}  // namespace assay
