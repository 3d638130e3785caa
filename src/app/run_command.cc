#include "app/run_command.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "app/audit_state.h"
#include "app/interrupts.h"
#include "app/progress_line.h"
#include "app/run_ledger.h"
#include "app/world.h"
#include "base/core/random.h"
#include "base/core/result.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "engine/target/open.h"

namespace assay {
namespace {

std::string draw_salt() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    const Clocks clocks;
    bits = hash64(fmt::format("{}/{}", clocks.real_now().ns, getpid()));
  }
  return fmt::format("{:012x}", bits & 0xffff'ffff'ffffULL);
}

/// One run from a checked spec to its exit code.
class RunCommand {
 public:
  RunCommand(World& world, Spec spec, const RunOptions& options)
      : world_(world), spec_(std::move(spec)), options_(options), limits_(read_limits()) {}

  ExitCode run() {
    if (spec_.run.salt == "auto") spec_.run.salt = draw_salt();
    plan_ = plan_load(spec_, limits_.cores);
    const Result<RunEnd> end = load();
    if (!end) return report_errors(world_, {end.error()});
    return summarise_run(world_, spec_, options_.format, *end);
  }

 private:
  Result<RunEnd> load();
  Result<> preflight() const;
  void note_proxies() const;

  World& world_;
  Spec spec_;
  const RunOptions& options_;
  HostLimits limits_;
  LoadPlan plan_;
};

/// Whoever set a proxy expects it to be used; a measurement through one would be of the proxy.
void RunCommand::note_proxies() const {
  for (const char* const name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) {
    if (!world_.env(name).value_or("").empty()) {
      world_.err(
          fmt::format("assay: note: {} is set and not used: connections are direct\n", name));
    }
  }
}

Result<> RunCommand::preflight() const {
  TRY(check_out(spec_));
  if (spec_.target.api == Api::kNull || !plan_.connections) return {};
  const bool unix_socket =
      !spec_.target.urls.empty() && spec_.target.urls.front().starts_with("unix:");
  return check_connections(limits_, *plan_.connections, 1,
                           unix_socket ? Transport::kUnix : Transport::kTcp);
}

Result<RunEnd> RunCommand::load() {
  TRY(preflight());
  note_proxies();
  StopLevel stop{0};
  // Before any thread, so that all of them inherit the blocked signals.
  const Interrupts interrupts([&](int nth) { stop.store(std::min(nth, 2)); });
  const std::stop_callback asked(world_.stop, [&] { stop.store(1); });
  OpenedTarget opened = TRY(open_target(spec_, options_.api_key.value_or("")));
  const WallTime now = world_.clocks.real_now();
  if (spec_.run.out.empty()) spec_.run.out = free_ledger_name(spec_, opened.model, now);
  std::unique_ptr<LedgerWriter> ledger = TRY(create_run_ledger({.spec = spec_,
                                                                .plan = plan_,
                                                                .limits = limits_,
                                                                .asked = options_.asked,
                                                                .model = opened.model,
                                                                .start_wall = now,
                                                                .more = audit_meta(world_)}));
  ProgressLine line(world_, spec_, plan_);
  const RunInputs inputs{.spec = spec_,
                         .plan = plan_,
                         .target = *opened.target,
                         .ledger = *ledger,
                         .clocks = world_.clocks,
                         .secrets = opened.secrets,
                         .stop = stop,
                         .on_progress = [&line](const Progress& p) { line.show(p); }};
  Result<RunEnd> end = run_load(inputs);
  line.clear();
  // What the workers' threads have freed goes back before the report takes memory of its own.
  malloc_trim(0);
  if (!end) {
    // Nothing was sent: an empty ledger helps nobody. What was measured before another error stays.
    ledger.reset();
    if (end.error().code == ExitCode::kUnreachable) unlink(spec_.run.out.c_str());
    return end;
  }
  TRY(close_run_ledger(world_, spec_, *ledger, *end));
  return end;
}

}  // namespace

ExitCode run_command(World& world, const Spec& spec, const RunOptions& options) {
  return RunCommand(world, spec, options).run();
}

}  // namespace assay
