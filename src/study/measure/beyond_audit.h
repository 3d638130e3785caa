// Did this run go beyond what the instrument's last audit on this machine showed to be true? The
// ledger holds what the audit trusted (meta::kAuditEventsPerS, meta::kAuditStreams); the run's own
// peaks come from its requests.
#pragma once

#include <cstdint>

#include "domain/ledger/ledger.h"
#include "study/measure/measurement.h"

namespace assay {

struct Peaks {
  double events_per_s =
      0;  // output events, in the busiest second; of a shorter run, per its length
  std::int64_t streams = 0;  // at most so many in flight
};

Peaks peaks_of(const Ledger& ledger);

/// Advisory; skipped where the ledger knows of no audit.
Check beyond_audit(const Ledger& ledger);

}  // namespace assay
