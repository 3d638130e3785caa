#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/interrupts.h"
#include "app/world.h"
#include "base/core/result.h"
#include "domain/spec/value.h"
#include "engine/sim/engine_server.h"
#include "engine/sim/script.h"
#include "engine/sim/script_server.h"
#include "engine/sim/sim_spec.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead =
    R"(The simulated engine behind a socket, until Ctrl-C: OpenAI's chat and completions, llama.cpp's
/completion, /v1/models, /health, /tokenize and /metrics. With --script a scripted server instead.

Usage: assay sim serve [flags]
       assay sim serve --script FILE [flags]
)";

constexpr std::string_view kServer = "Server";
constexpr std::string_view kEngine = "Simulated engine";
constexpr std::string_view kScript = "Scripted server";
constexpr std::int64_t kThreadsMax = 256;

std::vector<Flag> serve_flags() {
  std::vector<Flag> flags = {
      {"--port", "N", kServer, "0", "TCP port to listen on; 0 takes any free one and prints it"},
      {"--host", "ADDRESS", kServer, "127.0.0.1", "address to listen on"},
      {"--help", "", kServer, "", "this text"},
      {"--sim", "FILE", kEngine, "none",
       "the engine as YAML (docs/formats/sim.md); the flags below override it"},
  };
  for (const SimFlag& flag : sim_flags()) {
    flags.push_back({flag.flag, flag.argument, kEngine, flag.fallback, flag.help});
  }
  flags.insert(
      flags.end(),
      {{"--model", "NAME", kEngine, "of the file, or sim", "what the model is called"},
       {"--strict-model", "", kEngine, "", "refuse requests that name another model with 404"},
       {"--seed", "N", kEngine, "1", "of all random draws; each further thread takes the next"},
       {"--threads", "N", kEngine, "1",
        "serving threads, each a replica of the engine with a queue of its own"},
       {"--ledger", "FILE", kEngine, "none",
        "write when each event was really sent, as a ledger; joins by x-request-id"},
       {"--script", "FILE", kScript, "none", "what to answer (docs/formats/script.md)"}});
  return flags;
}

void add(Errors& errors, const Errors& more) {
  errors.insert(errors.end(), more.begin(), more.end());
}

/// The value of a flag, or `fallback` and an error.
template <typename T>
T take(const Parsed<T>& parsed, std::string_view flag, T fallback, Errors& errors) {
  if (parsed) return *parsed;
  errors.push_back({ExitCode::kUsage, parsed.error().what, std::string(flag), parsed.error().hint});
  return fallback;
}

/// Serves until a signal or the world's stop; `serve` gets on_ready and the token.
using Serve = std::function<Result<>(const std::function<void(const std::string& url)>& on_ready,
                                     std::stop_token stop)>;
ExitCode serve_until_stopped(World& world, const Serve& serve) {
  std::stop_source stop;
  const std::stop_callback relay(world.stop, [&stop] { stop.request_stop(); });
  const Interrupts interrupts([&stop](int /*nth*/) { stop.request_stop(); });
  const Result<> served =
      serve([&world](const std::string& url) { world.out(fmt::format("serving on {}\n", url)); },
            stop.get_token());
  return served ? ExitCode::kOk : report_errors(world, {served.error()});
}

ExitCode serve_script_file(World& world, const Arguments& arguments, ScriptServeOptions options,
                           Errors errors) {
  for (const auto& [flag, value] : arguments.flags) {
    if (flag == "--script" || flag == "--port" || flag == "--host") continue;
    errors.push_back({ExitCode::kUsage, "is for the simulated engine, not for a script", flag,
                      "leave it or --script out"});
  }
  const std::string path = arguments.value("--script");
  const Result<std::string> text = read_file(path);
  if (!text) {
    errors.push_back(text.error());
    return report_errors(world, errors);
  }
  std::expected<Script, Errors> script = parse_script(*text, path);
  if (!script) add(errors, script.error());
  if (!errors.empty()) return report_errors(world, errors);
  return serve_until_stopped(world, [&](const auto& on_ready, std::stop_token stop) {
    return serve_script(*std::move(script), options, on_ready, std::move(stop));
  });
}

/// The engine that the flags and the file ask for.
std::expected<SimSpec, Errors> read_engine(const Arguments& arguments, std::string& asked_text) {
  Errors errors;
  SimAsked asked;
  if (arguments.has("--sim")) {
    asked.path = arguments.value("--sim");
    Result<std::string> text = read_file(asked.path);
    if (text) {
      asked_text = *text;
      asked.yaml = *std::move(text);
    } else {
      errors.push_back(text.error());
    }
  }
  for (const auto& flag : arguments.flags) {
    const bool known =
        std::ranges::find(sim_flags(), flag.first, &SimFlag::flag) != sim_flags().end();
    if (known) asked.flags.push_back(flag);
  }
  const auto read = [](const std::string& path) { return read_file(path); };
  std::expected<SimSpec, Errors> spec = resolve_sim_spec(asked, read);
  if (!spec) add(errors, spec.error());
  if (!errors.empty()) return std::unexpected(std::move(errors));
  if (arguments.has("--model")) spec->model = arguments.value("--model");
  return spec;
}

ExitCode serve_simulated(World& world, const Arguments& arguments, EngineServeOptions options,
                         Errors errors) {
  options.threads =
      static_cast<int>(take(read_count(arguments.value("--threads", "1"), 1, kThreadsMax),
                            "--threads", std::int64_t{1}, errors));
  options.seed =
      take(read_seed(arguments.value("--seed", "1")), "--seed", std::uint64_t{1}, errors);
  options.ledger = arguments.value("--ledger");
  if (arguments.has("--strict-model")) options.models = EngineServeOptions::Models::kStrict;
  options.clocks = world.clocks;
  const std::expected<SimSpec, Errors> spec = read_engine(arguments, options.spec_asked);
  if (!spec) add(errors, spec.error());
  if (!errors.empty()) return report_errors(world, errors);
  return serve_until_stopped(world, [&](const auto& on_ready, std::stop_token stop) {
    return serve_engine(*spec, options, on_ready, std::move(stop));
  });
}

}  // namespace

ExitCode sim_serve_main(World& world, std::span<const std::string> args) {
  const std::vector<Flag> flags = serve_flags();
  const Arguments arguments = split_arguments(args, flags);
  if (arguments.has("--help")) {
    world.out(std::string(kHelpHead) + help_text(flags));
    return ExitCode::kOk;
  }
  Errors errors = arguments.errors;
  for (const std::string& bare : arguments.bare) {
    errors.push_back({ExitCode::kUsage, "takes no bare argument", bare,
                      "assay sim serve --help shows the flags"});
  }
  const std::string host = arguments.value("--host", "127.0.0.1");
  const auto port = static_cast<std::uint16_t>(take(
      read_count(arguments.value("--port", "0"), 0, 65535), "--port", std::int64_t{0}, errors));
  if (arguments.has("--script")) {
    return serve_script_file(world, arguments, {.host = host, .port = port}, std::move(errors));
  }
  EngineServeOptions options;
  options.host = host;
  options.port = port;
  return serve_simulated(world, arguments, std::move(options), std::move(errors));
}

}  // namespace assay
