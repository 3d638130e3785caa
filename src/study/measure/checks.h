// Validity: did the instrument work? Must checks decide VALID or INVALID; advisory ones inform. A
// check that the ledger holds no data for is skipped with the reason, never passed. An interrupted
// run is judged on what it has. Errors, slowness and overload of the target are findings, not
// checks.
#pragma once

#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {

/// `m` holds everything else already.
Validity validity_of(const Ledger& ledger, const Population& population, const Measurement& m);

}  // namespace assay
