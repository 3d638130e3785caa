#include <fmt/format.h>

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/dry_run.h"
#include "app/run_arguments.h"
#include "app/run_command.h"
#include "app/world.h"
#include "base/core/result.h"
#include "domain/spec/option.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead = R"(One run of load against a server: a ledger and a summary.

Usage: assay run [URL] [flags]

N is a whole number, D a duration with unit (us ms s m h; a bare 0 is fine), R a rate in requests
per second, LIST parts with commas between. Defaults stand in brackets. docs/howto/run.md has more.
)";

std::string run_help(std::span<const Flag> flags) {
  std::vector<Flag> keys;
  for (const Option& option : options()) {
    if (!option.flag.empty()) continue;
    keys.push_back({option.key, "", "Keys without a flag (--set KEY=VALUE, or in the spec file)",
                    option.fallback, option.help});
  }
  return std::string(kHelpHead) + help_text(flags) + help_text(keys);
}

}  // namespace

ExitCode run_main(World& world, std::span<const std::string> args) {
  const std::vector<Flag> flags = run_flags();
  const Arguments arguments = split_arguments(args, flags);
  if (arguments.has("--help")) {
    world.out(run_help(flags));
    return ExitCode::kOk;
  }
  const std::expected<RunAsked, Errors> asked = read_run_arguments(world, arguments);
  if (!asked) return report_errors(world, asked.error());
  for (const std::string& note : asked->notes) world.err(fmt::format("assay: note: {}\n", note));
  if (arguments.has("--dry-run")) {
    world.out(dry_run_text(asked->spec));
    return ExitCode::kOk;
  }
  return run_command(world, asked->spec, asked->options);
}

}  // namespace assay
