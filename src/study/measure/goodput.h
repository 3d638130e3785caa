// Goodput: attempts of the cohort that meet every service level objective. Failed, timed-out and
// cut-off attempts don't, and so don't refused ones where the user set a queue depth (elsewhere
// none is refused). An attempt for which a metric is null passes that metric and is counted.
#pragma once

#include <span>

#include "domain/spec/spec.h"
#include "study/measure/attempt.h"
#include "study/measure/measurement.h"

namespace assay {

/// `window_s` null: no rate.
Goodput goodput_of(std::span<const Attempt> cohort, const Spec& spec, MaybeNumber window_s);

}  // namespace assay
