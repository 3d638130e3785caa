// Findings: what the run says about the target and its traffic, and the warnings that it
// wrote down. They never touch validity.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/stats/trend.h"
#include "domain/ledger/ledger.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {

/// A drift of latency over the window that is both significant (1 %) and material (≥ 20 % of the
/// mean): TTFT by scheduled instant, or E2E where nothing streams. Cut-off requests enter with what
/// they took at least. Null: steady, or too few requests to tell.
std::optional<Trend> latency_drift(const Ledger& ledger, const Population& population,
                                   const Spec& spec);

/// `m` holds everything but findings. The ledger's own warnings are among them.
std::vector<Finding> findings_of(const Ledger& ledger, const Measurement& m,
                                 const std::optional<Trend>& drift);

}  // namespace assay
