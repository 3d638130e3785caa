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

#include "app/run_command.h"
#include "app/world.h"
#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "base/core/version.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "serve/report/report.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

std::string host_json(const HostLimits& limits) {
  utsname name{};
  uname(&name);
  JsonWriter json;
  json.begin_object();
  json.field("cores", limits.cores).field("kernel", name.release).field("machine", name.machine);
  json.field("descriptors", limits.descriptors).field("local_ports", limits.ports);
  json.end_object();
  return json.take();
}

}  // namespace

std::string ledger_name(const Spec& spec, const std::string& model, WallTime now) {
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
  return fmt::format("{}-{}-{}.assay", stem.empty() ? "run" : stem, load, stamp);
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
  set(meta::kHost, host_json(inputs.limits));
  set(meta::kStartWall, format_utc(inputs.start_wall));
  return LedgerWriter::create(spec.run.out, values);
}

ExitCode summarise_run(World& world, const Spec& spec, const RunOptions& options,
                       const RunEnd& end) {
  const Result<Ledger> ledger = read_ledger(spec.run.out);
  if (!ledger) return report_errors(world, {ledger.error()});
  const Measurement m = measure(*ledger, spec);
  if (options.format == ReportFormat::kJson) {
    world.out(render_json(m));
  } else {
    const auto colour = world.colours() ? TextStyle::Colour::kAlways : TextStyle::Colour::kNever;
    world.out(render_text(m, {.colour = colour}));
  }
  if (end.interrupted) return ExitCode::kInterrupted;
  return m.validity.valid ? ExitCode::kOk : ExitCode::kRunInvalid;
}

}  // namespace assay
