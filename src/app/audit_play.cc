#include "app/audit_play.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/audit_ladder.h"
#include "app/child_server.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "base/core/version.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/probe/limits.h"
#include "engine/target/open.h"
#include "study/doctor/audit.h"

namespace assay {
namespace {

/// Of the simulated engine: no request of any rung waits for one.
constexpr int kServers = 100'000;

double process_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Removes a ledger, and what SQLite may have left beside it.
class LedgerFile {
 public:
  explicit LedgerFile(std::string path) : path_(std::move(path)) {}
  ~LedgerFile() {
    for (const char* ending : {"", "-wal", "-shm"}) unlink((path_ + ending).c_str());
  }
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Spec spec_of(const RungPlan& plan, const std::string& url) {
  Spec spec;
  spec.target.urls = {url};
  spec.target.model = "sim";
  spec.target.timeout = 30s;
  spec.workload.prompt = "How late is it?";
  spec.workload.output = {LengthSpec::Kind::kFixed, static_cast<double>(plan.tokens), 0};
  spec.load = plan.load;
  return spec;
}

/// Stops and continues the server at its instants of the run.
class Pauser {
 public:
  Pauser(ChildServer& server, const std::optional<ServerPause>& pause)
      : server_(server), pause_(pause) {}
  void at(Duration elapsed) {
    if (!pause_) return;
    if (!paused_ && elapsed >= pause_->after) {
      server_.pause();
      paused_ = true;
    } else if (paused_ && elapsed >= pause_->after + pause_->length) {
      server_.resume();
      pause_.reset();
    }
  }

 private:
  ChildServer& server_;
  std::optional<ServerPause> pause_;
  bool paused_ = false;
};

Error interrupted() { return {ExitCode::kInterrupted, "interrupted", "", ""}; }

}  // namespace

CoreShare share_cores(int cores) {
  if (cores < 2) return {};
  return {.client = cores / 2, .server = cores - cores / 2, .apart = true};
}

Result<Played> play_load(const PlayInputs& inputs, const Spec& asked, const std::string& api_key,
                         const std::function<void(const Progress&)>& on_progress) {
  Spec spec = asked;
  spec.run.salt = "audit";
  const LedgerFile file(inputs.folder + "/client.assay");
  spec.run.out = file.path();
  OpenedTarget opened = TRY(open_target(spec, api_key));
  const LoadPlan plan = plan_load(spec, read_limits().cores);
  std::unique_ptr<LedgerWriter> writer = TRY(
      LedgerWriter::create(file.path(), {{std::string(meta::kToolVersion), version_number()},
                                         {std::string(meta::kSpecEffective), spec_to_json(spec)},
                                         {std::string(meta::kModel), opened.model}}));
  const RunInputs run{.spec = spec,
                      .plan = plan,
                      .target = *opened.target,
                      .ledger = *writer,
                      .clocks = inputs.clocks,
                      .secrets = opened.secrets,
                      .stop = inputs.stop,
                      .on_progress = on_progress};
  const double before = process_cpu_s();
  const RunEnd end = TRY(run_load(run));
  Played played;
  played.cpu_s = process_cpu_s() - before;
  TRY(writer->close(end.interrupted ? "interrupted" : "complete"));
  if (end.interrupted) return fail(interrupted());
  played.ledger = TRY(read_ledger(file.path()));
  return played;
}

Result<Rung> play_rung(const PlayInputs& inputs, const RungPlan& plan) {
  if (inputs.stop.load() > 0) return fail(interrupted());
  const LedgerFile truth(inputs.folder + "/truth.assay");
  const CoreShare share = share_cores(inputs.limits.cores);
  const std::unique_ptr<ChildServer> server = TRY(ChildServer::start(
      {.args = {"sim", "serve", "--servers", std::to_string(kServers), "--threads",
                std::to_string(share.server), "--ttft", "det:" + format_duration(plan.ttft),
                "--gap", "det:" + format_duration(plan.gap), "--ledger", truth.path()},
       .said_path = inputs.folder + "/server.txt",
       .cores_from_last = share.apart ? share.server : 0}));
  Pauser pauser(*server, plan.pause);
  Spec spec = spec_of(plan, server->url());
  // Where connections are few, the load engine's own rule keeps them in one queue.
  if (plan.asked.kind != RungKind::kStall) spec.load.workers = share.client;
  const Played played =
      TRY(play_load(inputs, spec, "", [&pauser](const Progress& p) { pauser.at(p.elapsed); }));
  TRY(server->stop());
  const Ledger told = TRY(read_ledger(truth.path()));
  return join_rung(plan.asked, played.ledger, told, {.client_cpu_s = played.cpu_s});
}

}  // namespace assay
