#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/version.h"

namespace assay {
namespace {

struct Command {
  std::string_view name;
  std::string_view help;
  ExitCode (*run)(World& world, std::span<const std::string> args);
};

constexpr std::array kCommands = std::to_array<Command>({
    {"run", "load a server once: a ledger and a summary", run_main},
    {"report", "show ledgers again, as text or JSON", report_main},
    {"audit", "prove on this machine how far the figures can be trusted", audit_main},
    {"sim", "sim run: a load in virtual time; sim serve: an engine to load", sim_main},
});

constexpr std::string_view kHelpHead = R"(assay measures LLM serving stacks.

Usage: assay COMMAND [arguments]

  assay run http://127.0.0.1:8000                   8 requests in flight, 30 s, after 5 s of warm-up
  assay run http://127.0.0.1:8000 --rate 20         20 requests per second on a Poisson schedule
  assay report FILE.assay --format json             the figures of an earlier run

Commands:
)";

constexpr std::string_view kHelpTail = R"(
  --version                name version and commit
  --help                   this text; assay COMMAND --help shows the flags of a command

Exit codes: 0 ok, 1 internal error, 2 usage, spec or unreadable input, 3 server unreachable,
4 run invalid, 7 this machine can't do what was asked, 130 interrupted.
)";

std::string app_help() {
  std::string out(kHelpHead);
  for (const Command& command : kCommands) {
    out += fmt::format("  {:<24} {}\n", command.name, command.help);
  }
  return out.append(kHelpTail);
}

ExitCode unknown_command(World& world, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(kCommands.size());
  for (const Command& command : kCommands) names.push_back(command.name);
  std::string hint = "assay --help lists the commands";
  if (name.starts_with("http://") || name.starts_with("https://")) {
    hint = fmt::format("did you mean assay run {}?",
                       name.find('@') == std::string_view::npos ? name : std::string_view("URL"));
    name = "a URL";
  } else if (const std::optional<std::string_view> near = nearest_word(name, names)) {
    hint = fmt::format("did you mean {}?", *near);
  }
  return report_errors(world, {{ExitCode::kUsage, "is not a command", std::string(name), hint}});
}

ExitCode dispatch(World& world) {
  if (world.args.empty()) {
    world.err(app_help());
    return ExitCode::kUsage;
  }
  const std::string& name = world.args.front();
  if (name == "--help" || name == "-h" || name == "help") {
    world.out(app_help());
    return ExitCode::kOk;
  }
  if (name == "--version" || name == "version") {
    world.out(fmt::format("assay {} ({})\n", version_number(), version_commit()));
    return ExitCode::kOk;
  }
  const auto* command = std::ranges::find(kCommands, name, &Command::name);
  if (command == kCommands.end()) return unknown_command(world, name);
  return command->run(world, std::span(world.args).subspan(1));
}

}  // namespace

ExitCode run_app(World& world) {
  // Our code does not throw; the library below it may.
  try {
    return dispatch(world);
  } catch (const std::exception& e) {
    world.err(fmt::format("assay: internal error: {} (please report this as a bug)\n", e.what()));
    return ExitCode::kInternal;
  }
}

}  // namespace assay
