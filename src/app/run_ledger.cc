#include "app/run_ledger.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "base/core/version.h"
#include "domain/ledger/host.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

Host host_of(const HostLimits& limits) {
  utsname name{};
  uname(&name);
  return {.cores = limits.cores,
          .descriptors = limits.descriptors,
          .local_ports = limits.ports,
          .kernel = name.release,
          .machine = name.machine};
}

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

}  // namespace

std::string free_ledger_name(const Spec& spec, const std::string& model, WallTime now) {
  constexpr int kMostInASecond = 1000;
  std::string name;
  for (int n = 1; n <= kMostInASecond; ++n) {
    name = ledger_name(spec, model, now, n);
    if (access(name.c_str(), F_OK) != 0) break;
  }
  return name;
}

Result<> check_out(const Spec& spec) {
  if (spec.run.out.empty() || access(spec.run.out.c_str(), F_OK) != 0) return {};
  return usage_error("there is such a file already, and no run is ever overwritten", spec.run.out,
                     "choose another name with --out");
}

Result<std::unique_ptr<LedgerWriter>> create_run_ledger(const RunLedgerInputs& inputs) {
  const Spec& spec = inputs.spec;
  std::map<std::string, std::string> values = inputs.more;
  const auto set = [&values](std::string_view key, std::string value) {
    values.emplace(key, std::move(value));
  };
  set(meta::kToolVersion, version_number());
  set(meta::kToolCommit, version_commit());
  set(meta::kSpecAsked, inputs.asked);
  set(meta::kSpecEffective, spec_to_json(spec));
  set(meta::kSeed, std::to_string(spec.run.seed));
  set(meta::kSalt, spec.run.salt);
  set(meta::kModel, inputs.model);
  set(meta::kWorkers, fmt::format("{} ({})", inputs.plan.workers, inputs.plan.workers_why));
  set(meta::kHost, host_to_json(host_of(inputs.limits)));
  set(meta::kStartWall, format_utc(inputs.start_wall));
  return LedgerWriter::create(spec.run.out, values);
}

Result<> close_run_ledger(World& world, const Spec& spec, LedgerWriter& ledger, const RunEnd& end) {
  const Closed closed = TRY(ledger.close(end.interrupted ? "interrupted" : "complete"));
  if (closed == Closed::kWithWal) {
    world.err(
        fmt::format("assay: {0}: another process reads the ledger; the run is saved, and "
                    "{0}-wal belongs to it (keep it beside the ledger)\n",
                    spec.run.out));
  }
  return {};
}

ExitCode summarise_run(World& world, const Spec& spec, ReportFormat format, const RunEnd& end) {
  const Result<Measurement> m = measure_file(spec.run.out);
  if (!m) return report_errors(world, {m.error()});
  world.out(rendered(world, *m, format));
  const Check* const audit = m->validity.find("audit");
  if (audit != nullptr && audit->status == CheckStatus::kFail) {
    world.err(fmt::format("assay: note: beyond the last audit: {}\n", audit->advice));
  }
  if (end.interrupted) return ExitCode::kInterrupted;
  return m->validity.valid ? ExitCode::kOk : ExitCode::kRunInvalid;
}

}  // namespace assay
