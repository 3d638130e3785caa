#include "app/run_command.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/interrupts.h"
#include "app/progress_line.h"
#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/random.h"
#include "base/core/result.h"
#include "base/core/version.h"
#include "domain/ledger/host.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "engine/target/open.h"
#include "study/measure/measurement.h"

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

/// "SmolLM2-135M-c8-20261201-160708.assay", without what a shell or a file system minds.
std::string ledger_name(const Spec& spec, const std::string& model, WallTime now, int number) {
  std::string stem = model.substr(model.find_last_of('/') + 1).substr(0, 48);
  std::ranges::replace_if(
      stem,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.' && c != '_'; },
      '-');
  std::string stamp = format_utc(now);
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':' || c == 'Z'; });
  std::ranges::replace(stamp, 'T', '-');
  const std::string load = spec.load.rate ? fmt::format("r{:g}", *spec.load.rate)
                                          : fmt::format("c{}", spec.load.concurrency.value_or(0));
  return fmt::format("{}-{}-{}{}.assay", stem.empty() ? "run" : stem, load, stamp,
                     number > 1 ? fmt::format("-{}", number) : "");
}

Host host_of(const HostLimits& limits) {
  utsname name{};
  uname(&name);
  return {.cores = limits.cores,
          .descriptors = limits.descriptors,
          .local_ports = limits.ports,
          .kernel = name.release,
          .machine = name.machine};
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
    return summarise(*end);
  }

 private:
  Result<RunEnd> load();
  Result<> preflight() const;
  void note_proxies() const;
  Result<std::unique_ptr<LedgerWriter>> create_ledger(const OpenedTarget& target);
  Result<std::unique_ptr<LedgerWriter>> create_ledger(const OpenedTarget& target, WallTime now);
  ExitCode summarise(const RunEnd& end);

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
  if (!spec_.run.out.empty() && access(spec_.run.out.c_str(), F_OK) == 0) {
    return usage_error("there is such a file already, and no run is ever overwritten",
                       spec_.run.out, "choose another name with --out");
  }
  if (spec_.target.api == Api::kNull || !plan_.connections) return {};
  const bool unix_socket =
      !spec_.target.urls.empty() && spec_.target.urls.front().starts_with("unix:");
  return check_connections(limits_, *plan_.connections, 1,
                           unix_socket ? Transport::kUnix : Transport::kTcp);
}

Result<std::unique_ptr<LedgerWriter>> RunCommand::create_ledger(const OpenedTarget& target) {
  const WallTime now = world_.clocks.real_now();
  if (!spec_.run.out.empty()) return create_ledger(target, now);
  // The stamp has seconds: runs that begin in the same one are told apart by a number.
  constexpr int kMostInASecond = 1000;
  for (int n = 1;; ++n) {
    spec_.run.out = ledger_name(spec_, target.model, now, n);
    auto ledger = create_ledger(target, now);
    if (ledger || n == kMostInASecond || access(spec_.run.out.c_str(), F_OK) != 0) return ledger;
  }
}

Result<std::unique_ptr<LedgerWriter>> RunCommand::create_ledger(const OpenedTarget& target,
                                                                WallTime now) {
  std::map<std::string, std::string> values;
  const auto set = [&values](std::string_view key, std::string value) {
    values.emplace(key, std::move(value));
  };
  set(meta::kToolVersion, version_number());
  set(meta::kToolCommit, version_commit());
  set(meta::kSpecAsked, options_.asked);
  set(meta::kSpecEffective, spec_to_json(spec_));
  set(meta::kSeed, std::to_string(spec_.run.seed));
  set(meta::kSalt, spec_.run.salt);
  set(meta::kModel, target.model);
  set(meta::kWorkers, fmt::format("{} ({})", plan_.workers, plan_.workers_why));
  set(meta::kHost, host_to_json(host_of(limits_)));
  set(meta::kStartWall, format_utc(now));
  return LedgerWriter::create(spec_.run.out, values);
}

Result<RunEnd> RunCommand::load() {
  TRY(preflight());
  note_proxies();
  StopLevel stop{0};
  // Before any thread, so that all of them inherit the blocked signals.
  const Interrupts interrupts([&](int nth) { stop.store(std::min(nth, 2)); });
  const std::stop_callback asked(world_.stop, [&] { stop.store(1); });
  OpenedTarget opened = TRY(open_target(spec_, options_.api_key.value_or("")));
  std::unique_ptr<LedgerWriter> ledger = TRY(create_ledger(opened));
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
  if (!end) {
    // Nothing was sent: an empty ledger helps nobody. What was measured before another error stays.
    ledger.reset();
    if (end.error().code == ExitCode::kUnreachable) unlink(spec_.run.out.c_str());
    return end;
  }
  const Closed closed = TRY(ledger->close(end->interrupted ? "interrupted" : "complete"));
  if (closed == Closed::kWithWal) {
    world_.err(
        fmt::format("assay: {0}: another process reads the ledger; the run is saved, and "
                    "{0}-wal belongs to it (keep it beside the ledger)\n",
                    spec_.run.out));
  }
  return end;
}

ExitCode RunCommand::summarise(const RunEnd& end) {
  const Result<Measurement> m = measure_file(spec_.run.out);
  if (!m) return report_errors(world_, {m.error()});
  world_.out(rendered(world_, *m, options_.format));
  if (end.interrupted) return ExitCode::kInterrupted;
  return m->validity.valid ? ExitCode::kOk : ExitCode::kRunInvalid;
}

}  // namespace

ExitCode run_command(World& world, const Spec& spec, const RunOptions& options) {
  return RunCommand(world, spec, options).run();
}

}  // namespace assay
