// Plays one rung of the audit: the simulated engine in a child process, the real load engine in
// this one, then both ledgers joined. The server is held on its half of the cores, and the load
// engine has as many workers as cores are left. Files live in a folder of
// the caller's and are removed as each rung ends.
#pragma once

#include <functional>
#include <string>

#include "app/audit_ladder.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "study/doctor/audit.h"

namespace assay {

struct PlayInputs {
  std::string folder;
  HostLimits limits;
  Clocks clocks;
  const StopLevel& stop;
};

/// How the cores are shared: the client's workers, and the cores that the server is held on.
struct CoreShare {
  int client = 1, server = 1;
  bool apart = false;  // false: there is but one core, for both
};
CoreShare share_cores(int cores);

/// kInterrupted when `stop` was asked for meanwhile.
Result<Rung> play_rung(const PlayInputs& inputs, const RungPlan& plan);

/// One run of the load engine, without a summary: the ledger it wrote. The file is removed.
struct Played {
  Ledger ledger;
  double cpu_s = 0;  // of this process
};
Result<Played> play_load(const PlayInputs& inputs, const Spec& spec, const std::string& api_key,
                         const std::function<void(const Progress&)>& on_progress);

}  // namespace assay
