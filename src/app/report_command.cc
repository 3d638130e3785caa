#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/run_arguments.h"
#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead =
    R"(Shows ledgers again: every figure is recomputed from the file.

Usage: assay report FILE... [flags]
)";

constexpr std::array kFlags = std::to_array<Flag>({
    {"--format", "NAME", "Flags", "text", "text, or json with one object per ledger"},
    {"--check", "", "Flags", "off", "exit 4 when a run is INVALID"},
    {"--help", "", "Flags", "", "this text"},
});

}  // namespace

ExitCode report_main(World& world, std::span<const std::string> args) {
  const Arguments arguments = split_arguments(args, kFlags);
  if (arguments.has("--help")) {
    world.out(std::string(kHelpHead) + help_text(kFlags));
    return ExitCode::kOk;
  }
  Errors errors = arguments.errors;
  const Result<ReportFormat> format = read_format(arguments.value("--format", "text"));
  if (!format) errors.push_back(format.error());
  if (arguments.bare.empty()) {
    errors.push_back(
        {ExitCode::kUsage, "no ledger is given", "FILE", "for example assay report NAME.assay"});
  }
  if (!errors.empty()) return report_errors(world, errors);
  bool all_valid = true;
  for (const std::string& path : arguments.bare) {
    const Result<Measurement> measurement = measure_file(path);
    if (!measurement) {
      errors.push_back(measurement.error());
      continue;
    }
    all_valid = all_valid && measurement->validity.valid;
    world.out(rendered(world, *measurement, *format));
  }
  if (!errors.empty()) return report_errors(world, errors);
  return arguments.has("--check") && !all_valid ? ExitCode::kRunInvalid : ExitCode::kOk;
}

}  // namespace assay
