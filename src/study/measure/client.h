// What the instrument says of itself: how late it sent and received, who stamped its reads, how
// busy it was.
#pragma once

#include <cstdint>
#include <span>

#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {

/// A sum of what is known; null as long as nothing is.
inline void add_count(MaybeCount& sum, const MaybeCount& count) {
  if (count) sum = sum.value_or(0) + *count;
}

/// Time from when a request could go (the later of scheduled and admitted) to its first send().
/// A connection of its own is open when it is admitted. Null where it was never sent.
MaybeTime send_lag(const RequestRecord& record);

/// Percentiles in us of lags in ns.
LagSummary lag_summary(std::span<const std::int64_t> lags_ns);

/// Send lags are those of the requests after warm-up; receive lags come from the workers'
/// histograms; counts are of the whole run. Without worker rows (a killed run) the stamps of chunks
/// stand in for those of reads.
Client client_of(const Ledger& ledger, const Population& population);

}  // namespace assay
