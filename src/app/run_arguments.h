// What `assay run` was asked, from its arguments, its spec file and the ledger of --from:
// everything up to the first connection. Reads files and the environment, writes nothing.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/run_command.h"
#include "app/world.h"
#include "base/core/result.h"
#include "domain/spec/spec.h"

namespace assay {

struct RunAsked {
  Spec spec;
  RunOptions options;
  std::vector<std::string> notes;  // for the user, on stderr
};

/// The table of `assay run`: its own flags and those of domain/spec.
std::vector<Flag> run_flags();
std::expected<RunAsked, Errors> read_run_arguments(World& world, const Arguments& arguments);

/// "text" or "json"; formats of later versions are refused by name.
Result<ReportFormat> read_format(const std::string& text);

}  // namespace assay
