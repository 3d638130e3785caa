#include "engine/sim/engine_server.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "engine/net/listener.h"
#include "engine/sim/serve_shard.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/truth_log.h"

namespace assay {
namespace {

/// How soon a ledger that can't be written ends the server.
constexpr Duration kWatchPeriod = 250ms;

}  // namespace

struct EngineServer::Core {
  void on_accept(int descriptor);

  internal::ServeSetup setup;
  std::string host;
  std::uint16_t port = 0;
  std::unique_ptr<TruthLog> truth;  // null: no ledger
  std::vector<std::unique_ptr<internal::ServeShard>> shards;
  std::unique_ptr<Listener> listener;  // on the first shard's loop
  std::size_t accepted = 0;
  std::vector<std::jthread> threads;  // last: joined before anything that they use goes
};

/// On the first shard's thread.
void EngineServer::Core::on_accept(int descriptor) {
  internal::ServeShard& shard = *shards[accepted++ % shards.size()];
  if (&shard == shards.front().get()) return shard.adopt(descriptor);
  shard.loop.post([&shard, descriptor] { shard.adopt(descriptor); });
}

EngineServer::EngineServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}

EngineServer::~EngineServer() {
  // What could be wrong with the ledger now, only a caller of stop() can be told.
  static_cast<void>(stop(Duration(0)));
}

Result<std::unique_ptr<EngineServer>> EngineServer::start(const SimSpec& spec,
                                                          const EngineServeOptions& options) {
  auto core = std::make_unique<Core>();
  Core* const raw = core.get();
  core->setup.spec = spec;
  core->setup.strict_model = options.models == EngineServeOptions::Models::kStrict;
  core->setup.threads = options.threads;
  core->host = options.host;
  for (int i = 0; i < options.threads; ++i) {
    core->shards.push_back(std::make_unique<internal::ServeShard>(
        internal::ServeShard::Options{.setup = core->setup,
                                      .index = i,
                                      .seed = options.seed + static_cast<std::uint64_t>(i),
                                      .clocks = options.clocks}));
    core->setup.metrics.push_back(&core->shards.back()->metrics);
  }
  core->listener = TRY(Listener::open(core->shards.front()->loop, options.host, options.port,
                                      [raw](int descriptor) { raw->on_accept(descriptor); }));
  core->port = core->listener->port();
  // After the address: a port that is taken leaves no ledger behind.
  core->setup.origin = options.clocks.now();
  if (!options.ledger.empty()) {
    core->truth = TRY(TruthLog::create({.path = options.ledger,
                                        .threads = options.threads,
                                        .seed = options.seed,
                                        .model = spec.model,
                                        .spec_asked = options.spec_asked,
                                        .spec_json = sim_spec_to_json(spec),
                                        .clocks = options.clocks}));
    core->setup.origin = core->truth->start();
    for (const auto& shard : core->shards) shard->truth = &core->truth->queue(shard->index);
  }
  for (const auto& shard : core->shards) {
    core->threads.emplace_back([shard = shard.get()] { shard->run(); });
  }
  return std::unique_ptr<EngineServer>(new EngineServer(std::move(core)));
}

std::uint16_t EngineServer::port() const { return core_->port; }

std::string EngineServer::url() const {
  const bool bare_v6 = core_->host.find(':') != std::string::npos;
  return bare_v6 ? fmt::format("http://[{}]:{}", core_->host, port())
                 : fmt::format("http://{}:{}", core_->host, port());
}

bool EngineServer::failed() const { return core_->truth && core_->truth->failed(); }

Result<> EngineServer::stop(Duration grace) {
  if (core_->threads.empty()) return {};
  core_->shards.front()->loop.post([core = core_.get()] { core->listener.reset(); });
  for (const auto& shard : core_->shards) {
    shard->loop.post([shard = shard.get(), grace] { shard->begin_stop(grace); });
  }
  core_->threads.clear();
  std::vector<WorkerRow> workers;
  for (const auto& shard : core_->shards) workers.push_back(shard->counts);
  if (core_->truth) return core_->truth->close(workers);
  return {};
}

Result<> serve_engine(const SimSpec& spec, const EngineServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready,
                      std::stop_token stop) {
  const std::unique_ptr<EngineServer> server = TRY(EngineServer::start(spec, options));
  on_ready(server->url());
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && !server->failed()) {
    wake.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
  return server->stop();
}

}  // namespace assay
