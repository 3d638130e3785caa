// measure: from a ledger to a Measurement. Pure: no clock, no file, no thread; the same ledger
// gives the same figures. Populations, instants and formulas are those of docs/formats/report.md.
// `spec` is the effective spec that the ledger holds (meta::kSpecEffective), parsed by the caller.
#pragma once

#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "study/measure/measurement.h"

namespace assay {

Measurement measure(const Ledger& ledger, const Spec& spec);

}  // namespace assay
