#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/dry_run.h"
#include "app/interrupts.h"
#include "app/run_arguments.h"
#include "app/run_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/load/virtual_run.h"
#include "engine/net/virtual_loop.h"
#include "engine/probe/limits.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/sim_target.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead =
    R"(One run of load against a simulated engine, in virtual time: hours take seconds, and one seed
gives one ledger. Takes the flags of assay run, and those of the engine.

Usage: assay sim run [flags]
)";

constexpr std::string_view kEngine = "Simulated engine";

std::vector<Flag> sim_run_flags() {
  std::vector<Flag> flags = run_flags();
  flags.push_back({"--sim", "FILE", kEngine, "none",
                   "the engine as YAML (docs/formats/sim.md); the flags below override it"});
  for (const SimFlag& flag : sim_flags()) {
    flags.push_back({flag.flag, flag.argument, kEngine, flag.fallback, flag.help});
  }
  flags.push_back({"--trace", "FILE", kEngine, "none",
                   "arrivals instead of --rate: one offset in seconds per line, in order"});
  return flags;
}

struct SimRunAsked {
  RunAsked run;
  SimSpec sim;
  std::optional<std::vector<Duration>> trace;
};

/// One offset in seconds per line, never decreasing.
std::optional<std::vector<Duration>> read_trace(const std::string& path, Errors& errors) {
  constexpr std::size_t kTraceBytesMax = std::size_t{1} << 30;
  constexpr double kOffsetMax = 3.2e9;  // a century
  const Result<std::string> text = read_file(path, kTraceBytesMax);
  if (!text) {
    errors.push_back(text.error());
    return std::nullopt;
  }
  std::vector<Duration> offsets;
  const std::size_t errors_before = errors.size();
  std::int64_t line = 0;
  for (const std::string_view raw : split(*text, '\n')) {
    ++line;
    if (trim(raw).empty()) continue;
    const std::optional<double> seconds = parse_number(trim(raw));
    const bool fits = seconds && *seconds >= 0 && *seconds <= kOffsetMax;
    const Duration offset = fits ? from_seconds(*seconds) : Duration(0);
    if (fits && (offsets.empty() || offset >= offsets.back())) {
      offsets.push_back(offset);
      continue;
    }
    errors.push_back(
        {ExitCode::kUsage, fits ? "an arrival before the one above it" : "no offset in seconds",
         fmt::format("{}:{}", path, line), "one number per line, 0 or more, in order: 0.125"});
    if (errors.size() - errors_before == 10) return std::nullopt;
  }
  if (offsets.empty() && errors.size() == errors_before) {
    errors.push_back(
        {ExitCode::kUsage, "holds no arrival", path, "one offset in seconds per line"});
  }
  return offsets;
}

/// A trace sets the rate and, unless told otherwise, plays to its end without a warm-up.
void add_trace_flags(const std::vector<Duration>& trace, Arguments& run) {
  const double span = std::max(to_seconds(trace.back()), 1e-9);
  const bool bounded = run.has("--requests") || run.has("--duration");
  run.flags.emplace_back("--rate", fmt::format("{}", static_cast<double>(trace.size()) / span));
  if (bounded) return;
  run.flags.emplace_back("--requests", std::to_string(trace.size()));
  if (!run.has("--warmup")) run.flags.emplace_back("--warmup", "0");
}

/// The engine of an earlier run, as its ledger tells it: JSON is YAML.
std::optional<std::string> read_base_engine(const std::string& path, Errors& errors) {
  const Result<Ledger> ledger = read_ledger(path);
  if (!ledger) return std::nullopt;  // the run's own reader says so
  const std::string engine = ledger->meta_or(meta::kSimSpec);
  if (!engine.empty()) return fmt::format("{{\"sim\": {}}}", engine);
  errors.push_back({ExitCode::kUsage, "is the ledger of a real engine, not of a simulated one",
                    path, "name one of assay sim run, or repeat it with assay run --from"});
  return std::nullopt;
}

/// Takes the flags of the engine out of `arguments`.
SimAsked take_sim_flags(Arguments& arguments, Errors& errors) {
  SimAsked asked;
  if (arguments.has("--sim")) {
    asked.path = arguments.value("--sim");
    Result<std::string> text = read_file(asked.path);
    if (text) {
      asked.yaml = *std::move(text);
    } else {
      errors.push_back(text.error());
    }
  } else if (arguments.has("--from")) {
    asked.path = arguments.value("--from");
    asked.yaml = read_base_engine(asked.path, errors);
  }
  std::erase_if(arguments.flags, [&asked](const auto& flag) {
    const bool known =
        std::ranges::find(sim_flags(), flag.first, &SimFlag::flag) != sim_flags().end();
    if (known) asked.flags.push_back(flag);
    return known || flag.first == "--sim" || flag.first == "--trace";
  });
  return asked;
}

void refuse_foreign(const Arguments& arguments, Errors& errors) {
  constexpr std::string_view kWhy = "the engine is in this process";
  for (const std::string& bare : arguments.bare) {
    errors.push_back({ExitCode::kUsage, "takes no URL", bare, std::string(kWhy)});
  }
  if (arguments.has("--api")) {
    errors.push_back({ExitCode::kUsage, "has no choice here", "--api", std::string(kWhy)});
  }
  if (!arguments.has("--trace")) return;
  for (const char* const flag : {"--rate", "--arrival", "--concurrency"}) {
    if (!arguments.has(flag)) continue;
    errors.push_back(
        {ExitCode::kUsage, "a trace says itself when requests arrive", flag, "keep it or --trace"});
  }
}

std::expected<SimRunAsked, Errors> read_arguments(World& world, Arguments arguments) {
  Errors errors;
  refuse_foreign(arguments, errors);
  arguments.bare.clear();
  std::erase_if(arguments.flags, [](const auto& flag) { return flag.first == "--api"; });
  SimRunAsked asked;
  const bool traced = arguments.has("--trace");
  if (traced) asked.trace = read_trace(arguments.value("--trace"), errors);
  const SimAsked sim_asked = take_sim_flags(arguments, errors);
  const auto read = [](const std::string& path) { return read_file(path); };
  std::expected<SimSpec, Errors> sim = resolve_sim_spec(sim_asked, read);
  if (sim) {
    asked.sim = *std::move(sim);
  } else {
    errors.insert(errors.end(), sim.error().begin(), sim.error().end());
  }
  if (traced && (!asked.trace || asked.trace->empty())) return std::unexpected(std::move(errors));
  if (traced) add_trace_flags(*asked.trace, arguments);
  arguments.flags.emplace_back("--api", "null");
  std::expected<RunAsked, Errors> run = read_run_arguments(world, arguments);
  if (run) {
    asked.run = *std::move(run);
  } else {
    errors.insert(errors.end(), run.error().begin(), run.error().end());
  }
  if (asked.run.spec.load.workers.value_or(1) > 1) {
    errors.push_back({ExitCode::kUsage, "virtual time has one worker", "load.workers",
                      "leave it out: a simulated run is not short of cores"});
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return asked;
}

Result<RunEnd> simulate(World& world, const SimRunAsked& asked, const Spec& spec) {
  TRY(check_out(spec));
  const LoadPlan plan = plan_load(spec, 1);
  StopLevel stop{0};
  const Interrupts interrupts([&](int nth) { stop.store(std::min(nth, 2)); });
  const std::stop_callback relay(world.stop, [&] { stop.store(1); });
  VirtualLoop loop;
  SimTarget target(asked.sim, spec.run.seed);
  // Virtual time has no wall clock: its runs start in 1970, all of them, and are alike to the byte.
  std::unique_ptr<LedgerWriter> ledger = TRY(
      create_run_ledger({.spec = spec,
                         .plan = plan,
                         .limits = read_limits(),
                         .asked = asked.run.options.asked,
                         .model = asked.sim.model,
                         .start_wall = WallTime{},
                         .more = {{std::string(meta::kSimSpec), sim_spec_to_json(asked.sim)}}}));
  const RunEnd end = TRY(run_virtual({.spec = spec,
                                      .plan = plan,
                                      .loop = loop,
                                      .target = target,
                                      .ledger = *ledger,
                                      .stop = stop,
                                      .trace = asked.trace}));
  TRY(close_run_ledger(world, spec, *ledger, end));
  return end;
}

}  // namespace

ExitCode sim_run_main(World& world, std::span<const std::string> args) {
  const std::vector<Flag> flags = sim_run_flags();
  const Arguments arguments = split_arguments(args, flags);
  if (arguments.has("--help")) {
    world.out(std::string(kHelpHead) + help_text(flags));
    return ExitCode::kOk;
  }
  std::expected<SimRunAsked, Errors> asked = read_arguments(world, arguments);
  if (!asked) return report_errors(world, asked.error());
  for (const std::string& note : asked->run.notes) {
    world.err(fmt::format("assay: note: {}\n", note));
  }
  Spec spec = asked->run.spec;
  // A fresh salt keeps real prefix caches cold; here it would make every ledger another one.
  if (spec.run.salt == "auto") spec.run.salt = "sim";
  if (arguments.has("--dry-run")) {
    world.out(dry_run_text(spec));
    return ExitCode::kOk;
  }
  if (spec.run.out.empty()) {
    spec.run.out = free_ledger_name(spec, asked->sim.model, world.clocks.real_now());
  }
  const Result<RunEnd> end = simulate(world, *asked, spec);
  if (!end) return report_errors(world, {end.error()});
  return summarise_run(world, spec, asked->run.options.format, *end);
}

}  // namespace assay
