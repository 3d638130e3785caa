#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/audit_ladder.h"
#include "app/audit_play.h"
#include "app/audit_state.h"
#include "app/commands.h"
#include "app/interrupts.h"
#include "app/run_arguments.h"
#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "base/core/version.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "domain/spec/value.h"
#include "engine/load/run.h"
#include "engine/probe/cpu_use.h"
#include "engine/probe/limits.h"
#include "serve/report/audit.h"
#include "serve/report/report.h"
#include "study/doctor/audit.h"
#include "study/doctor/endpoint.h"

namespace assay {
namespace {

constexpr std::string_view kHelpHead =
    R"(Proves the instrument on this machine: a simulated engine that knows when it sent each event, the
real load engine, and both of their ledgers compared, event by event, under rising load.

Usage: assay audit [flags]

Takes under 2 minutes, --quick under 20 s. Exit code 4: the instrument broke a limit that it must
hold. What was found is kept, and assay run warns beyond it. docs/howto/how_wrong.md explains.
)";

constexpr std::array kFlags = std::to_array<Flag>({
    {"--quick", "", "Flags", "off", "fewer and shorter rungs; reaches less high"},
    {"--target", "URL", "Flags", "none",
     "audit the way to a server of yours instead: round trip, fastest answer, who stamps"},
    {"--inject", "FAULT", "Flags", "none",
     "break the instrument on purpose; late-stamp=1ms tells each read late by that much"},
    {"--format", "NAME", "Flags", "text", "text or json"},
    {"--help", "", "Flags", "", "this text"},
});

struct AuditAsked {
  LadderSize size = LadderSize::kFull;
  std::optional<Spec> target;
  Duration late_stamps{0};
  ReportFormat format = ReportFormat::kText;
};

Result<Duration> read_fault(const std::string& text) {
  constexpr std::string_view kLateStamp = "late-stamp=";
  if (!text.starts_with(kLateStamp)) {
    return usage_error("'" + text + "' is no fault that can be put in", "--inject",
                       "late-stamp=1ms is");
  }
  const Parsed<Duration> late =
      read_duration(std::string_view(text).substr(kLateStamp.size()), Zero::kRefused);
  if (!late) return usage_error(late.error().what, "--inject", late.error().hint);
  return *late;
}

/// A closed loop of one, each request on a connection of its own, one token each.
Result<Spec> read_target(const std::string& url) {
  constexpr const char* kRequests = "20";
  Asked asked;
  asked.urls = {url};
  asked.flags = {{"--concurrency", "1"}, {"--requests", kRequests}, {"--warmup", "0"},
                 {"--cold-connect", ""}, {"--output", "1"},         {"--prompt", "Say one word."}};
  std::expected<Resolved, Errors> resolved = resolve_spec(asked);
  if (!resolved) return fail(resolved.error().front());
  return std::move(resolved->spec);
}

std::expected<AuditAsked, Errors> read_arguments(const Arguments& arguments) {
  Errors errors = arguments.errors;
  AuditAsked asked;
  const auto keep = [&errors](auto result, auto& place) {
    if (result) {
      place = *std::move(result);
    } else {
      errors.push_back(result.error());
    }
  };
  for (const std::string& bare : arguments.bare) {
    errors.push_back({ExitCode::kUsage, "takes no bare argument", bare,
                      "--target URL audits the way to a server"});
  }
  if (arguments.has("--quick")) asked.size = LadderSize::kQuick;
  keep(read_format(arguments.value("--format", "text")), asked.format);
  if (arguments.has("--inject")) keep(read_fault(arguments.value("--inject")), asked.late_stamps);
  if (arguments.has("--target")) keep(read_target(arguments.value("--target")), asked.target);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return asked;
}

/// A folder of its own, removed with all that is in it.
class ScratchFolder {
 public:
  static Result<std::unique_ptr<ScratchFolder>> make(const World& world) {
    std::string base = world.env("TMPDIR").value_or("");
    std::string path = (base.empty() ? "/tmp" : base) + "/assay-audit-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return fail({ExitCode::kInternal, "no folder can be made for the ledgers of the audit", path,
                   "set TMPDIR to a folder that can be written"});
    }
    return std::unique_ptr<ScratchFolder>(new ScratchFolder(std::move(path)));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Whoever else runs takes cores from the client, and its lags show it.
std::string others_note(double cores) {
  constexpr double kDisturbing = 0.2;
  return fmt::format("others used {:.2f} cores meanwhile{}", cores,
                     cores > kDisturbing ? ": repeat it when they rest" : "");
}

/// One audit from its arguments to its exit code.
class AuditCommand {
 public:
  AuditCommand(World& world, AuditAsked asked)
      : world_(world), asked_(std::move(asked)), limits_(read_limits()) {}

  ExitCode run() {
    // Before any thread, so that all of them inherit the blocked signals.
    const Interrupts interrupts([this](int nth) { stop_.store(std::min(nth, 2)); });
    const std::stop_callback stopped(world_.stop, [this] { stop_.store(1); });
    const Result<ExitCode> end = asked_.target ? audit_target() : audit_here();
    if (end) return *end;
    if (end.error().code == ExitCode::kInterrupted) {
      world_.err("assay: interrupted: nothing is concluded or kept\n");
      return ExitCode::kInterrupted;
    }
    return report_errors(world_, {end.error()});
  }

 private:
  Result<ExitCode> audit_here();
  Result<ExitCode> audit_target();
  Result<std::vector<Rung>> walk(const Ladder& ladder, const PlayInputs& inputs);
  [[nodiscard]] std::vector<std::string> notes() const;
  Result<> keep(const Audit& audit);
  [[nodiscard]] TextStyle style() const {
    return {.colour = world_.colours() ? TextStyle::Colour::kAlways : TextStyle::Colour::kNever};
  }

  World& world_;
  AuditAsked asked_;
  HostLimits limits_;
  StopLevel stop_{0};
};

std::vector<std::string> AuditCommand::notes() const {
  const CoreShare share = share_cores(limits_.cores);
  std::vector<std::string> notes{fmt::format("assay {}", version_number())};
  notes.push_back(share.apart ? fmt::format("workers {}, cores of the simulated engine {}",
                                            share.client, share.server)
                              : "client and simulated engine share one core");
  if (asked_.size == LadderSize::kQuick) notes.emplace_back("quick");
  if (asked_.late_stamps > 0s) {
    notes.push_back("FAULT PUT IN: stamps late by " + format_duration(asked_.late_stamps));
  }
  return notes;
}

Result<std::vector<Rung>> AuditCommand::walk(const Ladder& ladder, const PlayInputs& inputs) {
  std::vector<Rung> rungs;
  for (const RungPlan& plan : ladder.rungs) {
    world_.err(fmt::format("assay: audit: rung {} of {}: {}\n", rungs.size() + 1,
                           ladder.rungs.size(), plan.asked.name));
    rungs.push_back(TRY(play_rung(inputs, plan)));
    const Rung& rung = rungs.back();
    if (rung.limit_broken) world_.err(fmt::format("assay: audit:   {}\n", *rung.limit_broken));
    // The steps end at the ceiling.
    if (rung.limit_broken && rung.asked.kind == RungKind::kEvents) break;
  }
  return rungs;
}

Result<> AuditCommand::keep(const Audit& audit) {
  if (asked_.late_stamps > 0s) return {};  // of a broken instrument
  const std::string path = audit_state_path(world_);
  if (path.empty()) {
    world_.err("assay: note: the audit is not kept: neither XDG_STATE_HOME nor HOME is set\n");
    return {};
  }
  return save_audit(path, render_audit_json(audit));
}

Result<ExitCode> AuditCommand::audit_here() {
  const std::unique_ptr<ScratchFolder> folder = TRY(ScratchFolder::make(world_));
  const Ladder ladder = audit_ladder(asked_.size, limits_);
  const PlayInputs inputs{.folder = folder->path(),
                          .limits = limits_,
                          .clocks = world_.clocks.with_late_stamps(asked_.late_stamps),
                          .stop = stop_};
  const std::optional<CpuUse> before = read_cpu_use();
  const Instant begin = world_.clocks.now();
  Audit audit = judge_ladder(TRY(walk(ladder, inputs)));
  const std::optional<CpuUse> after = read_cpu_use();
  audit.left_out = ladder.left_out;
  for (std::size_t i = audit.rungs.size(); i < ladder.rungs.size(); ++i) {
    audit.left_out.push_back({ladder.rungs[i].asked.name, "beyond the step that broke"});
  }
  audit.host = audit_host(limits_.cores);
  audit.at = format_utc(world_.clocks.real_now());
  audit.notes = notes();
  if (before && after) {
    const double others = (after->host_s - before->host_s) - (after->own_s - before->own_s);
    audit.notes.push_back(others_note(others / to_seconds(world_.clocks.now() - begin)));
  }
  world_.out(asked_.format == ReportFormat::kJson ? render_audit_json(audit)
                                                  : render_audit_text(audit, style()));
  TRY(keep(audit));
  return audit.pass ? ExitCode::kOk : ExitCode::kRunInvalid;
}

Result<ExitCode> AuditCommand::audit_target() {
  const std::unique_ptr<ScratchFolder> folder = TRY(ScratchFolder::make(world_));
  const PlayInputs inputs{.folder = folder->path(),
                          .limits = limits_,
                          .clocks = world_.clocks.with_late_stamps(asked_.late_stamps),
                          .stop = stop_};
  const std::string& url = asked_.target->target.urls.front();
  world_.err(fmt::format("assay: audit: {} requests, one after the other, to {}\n",
                         asked_.target->load.requests.value_or(0), url));
  const std::string key = world_.env(asked_.target->target.api_key_env).value_or("");
  const Played played = TRY(play_load(inputs, *asked_.target, key, {}));
  EndpointAudit audit = audit_endpoint(played.ledger);
  audit.url = url;
  world_.out(asked_.format == ReportFormat::kJson ? render_endpoint_json(audit)
                                                  : render_endpoint_text(audit, style()));
  return audit.pass ? ExitCode::kOk : ExitCode::kRunInvalid;
}

}  // namespace

ExitCode audit_main(World& world, std::span<const std::string> args) {
  const Arguments arguments = split_arguments(args, kFlags);
  if (arguments.has("--help")) {
    world.out(std::string(kHelpHead) + help_text(kFlags));
    return ExitCode::kOk;
  }
  std::expected<AuditAsked, Errors> asked = read_arguments(arguments);
  if (!asked) return report_errors(world, asked.error());
  return AuditCommand(world, *std::move(asked)).run();
}

}  // namespace assay
