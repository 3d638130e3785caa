// The running of one run, after its arguments have been read: from a valid Spec to a ledger and a
// summary.
#pragma once

#include <optional>
#include <string>

#include "app/show_ledger.h"
#include "app/world.h"
#include "domain/spec/spec.h"

namespace assay {

struct RunOptions {
  ReportFormat format = ReportFormat::kText;
  std::string asked;                   // what was typed, secrets redacted: meta.spec_asked
  std::optional<std::string> api_key;  // sent as a bearer token; never stored or printed
};

ExitCode run_command(World& world, const Spec& spec, const RunOptions& options);

}  // namespace assay
