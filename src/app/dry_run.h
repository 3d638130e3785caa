// --dry-run: the effective spec and what a run of it would send.
#pragma once

#include <string>

#include "domain/spec/spec.h"

namespace assay {

/// A spec file that repeats the run, with the plan as comments above it.
std::string dry_run_text(const Spec& spec);

}  // namespace assay
