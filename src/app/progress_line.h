// The live line of a run on a terminal: phase, time, and what has happened to requests. Elsewhere
// one line at the start and one every ten seconds, so that a log shows the run is alive without
// filling up.
#pragma once

#include "app/world.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"

namespace assay {

class ProgressLine {
 public:
  ProgressLine(World& world, const Spec& spec, const LoadPlan& plan);
  void show(const Progress& progress);
  /// Removes the line from the terminal.
  void clear();

 private:
  World& world_;
  Duration next_log_{0};
};

}  // namespace assay
