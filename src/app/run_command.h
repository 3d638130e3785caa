// The running of one run, after its arguments have been read: from a valid Spec to a ledger and a
// summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/world.h"
#include "domain/spec/spec.h"

namespace assay {

enum class ReportFormat : std::uint8_t { kText, kJson };

struct RunOptions {
  ReportFormat format = ReportFormat::kText;
  std::string asked;                   // what was typed, secrets redacted: meta.spec_asked
  std::optional<std::string> api_key;  // sent as a bearer token; never stored or printed
};

ExitCode run_command(World& world, const Spec& spec, const RunOptions& options);

}  // namespace assay
