#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/interrupts.h"
#include "app/world.h"
#include "base/core/result.h"
#include "domain/spec/value.h"
#include "engine/sim/script.h"
#include "engine/sim/script_server.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead =
    R"(Plays a scripted server: bytes and delays from a file, over HTTP, until Ctrl-C.

Usage: assay sim serve --script FILE [flags]
)";

constexpr std::array kFlags = std::to_array<Flag>({
    {"--script", "FILE", "Flags", "", "what to answer (docs/formats/script.md)"},
    {"--port", "N", "Flags", "0", "TCP port to listen on; 0 takes any free one and prints it"},
    {"--host", "ADDRESS", "Flags", "127.0.0.1", "address to listen on"},
    {"--help", "", "Flags", "", "this text"},
});

struct ServeAsked {
  Script script;
  ScriptServeOptions options;
};

std::expected<ServeAsked, Errors> read_serve_arguments(const Arguments& arguments) {
  Errors errors = arguments.errors;
  ServeAsked asked;
  asked.options.host = arguments.value("--host", "127.0.0.1");
  const Parsed<std::int64_t> port = read_count(arguments.value("--port", "0"), 0, 65535);
  if (port) {
    asked.options.port = static_cast<std::uint16_t>(*port);
  } else {
    errors.push_back({ExitCode::kUsage, port.error().what, "--port", port.error().hint});
  }
  const std::string path = arguments.value("--script");
  if (path.empty()) {
    errors.push_back({ExitCode::kUsage, "no script is given", "--script",
                      "for example --script cases/stream/plain.yaml"});
    return std::unexpected(std::move(errors));
  }
  const Result<std::string> text = read_file(path);
  if (!text) {
    errors.push_back(text.error());
    return std::unexpected(std::move(errors));
  }
  std::expected<Script, Errors> script = parse_script(*text, path);
  if (!script) {
    errors.insert(errors.end(), script.error().begin(), script.error().end());
  } else {
    asked.script = *std::move(script);
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return asked;
}

ExitCode serve(World& world, ServeAsked asked) {
  std::stop_source stop;
  const std::stop_callback relay(world.stop, [&stop] { stop.request_stop(); });
  const Interrupts interrupts([&stop](int /*nth*/) { stop.request_stop(); });
  const Result<> served = serve_script(
      std::move(asked.script), asked.options,
      [&world](const std::string& url) { world.out(fmt::format("serving on {}\n", url)); },
      stop.get_token());
  return served ? ExitCode::kOk : report_errors(world, {served.error()});
}

}  // namespace

ExitCode sim_main(World& world, std::span<const std::string> args) {
  if (!args.empty() && args.front() == "run") return sim_run_main(world, args.subspan(1));
  const bool serves = !args.empty() && args.front() == "serve";
  const Arguments arguments = split_arguments(serves ? args.subspan(1) : args, kFlags);
  if (arguments.has("--help")) {
    world.out(std::string(kHelpHead) + help_text(kFlags));
    return ExitCode::kOk;
  }
  if (!serves) {
    return report_errors(world,
                         {{ExitCode::kUsage, "needs a subcommand", "sim",
                           "sim run simulates a load, sim serve --script FILE plays a scripted "
                           "server"}});
  }
  Errors errors;
  for (const std::string& bare : arguments.bare) {
    errors.push_back({ExitCode::kUsage, "takes no bare argument", bare, "use --script FILE"});
  }
  std::expected<ServeAsked, Errors> asked = read_serve_arguments(arguments);
  if (!asked) errors.insert(errors.end(), asked.error().begin(), asked.error().end());
  if (!errors.empty()) return report_errors(world, errors);
  return serve(world, *std::move(asked));
}

}  // namespace assay
