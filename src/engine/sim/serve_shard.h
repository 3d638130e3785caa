// One serving thread of the engine's server: a loop, an engine of its own, and its connections.
// Shards share nothing but what ServeSetup holds, which no one changes while they run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/net/epoll_loop.h"
#include "engine/sim/model.h"
#include "engine/sim/serve_metrics.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/truth_log.h"

namespace assay::internal {

class ServeConnection;

struct ServeSetup {
  SimSpec spec;
  bool strict_model = false;
  int threads = 1;
  Instant origin{};  // of the ledger's times
  std::vector<const ServeMetrics*> metrics;
};

class ServeShard {
 public:
  struct Options {
    const ServeSetup& setup;
    int index = 0;
    std::uint64_t seed = 1;
    Clocks clocks;
  };
  explicit ServeShard(const Options& options);
  ~ServeShard();
  ServeShard(const ServeShard&) = delete;
  ServeShard& operator=(const ServeShard&) = delete;

  /// The thread's whole life, until begin_stop() is done.
  void run();

  // All on the loop's thread.
  void adopt(int descriptor);
  /// Idle connections close at once, busy ones after their reply, all after `grace`; then the loop
  /// stops.
  void begin_stop(Duration grace);

  // For connections.
  [[nodiscard]] bool stopping() const { return stopping_; }
  void forget(std::int64_t connection);
  /// The engine has taken a request in or let one go.
  void note_load();
  std::int64_t next_record_id() { return records_++ * setup.threads + index; }
  void push(std::unique_ptr<RequestRecord> record);

  const ServeSetup& setup;
  const int index;
  TruthQueue* truth = nullptr;  // set before run(); null: no ledger
  EpollLoop loop;
  SimEngine engine;
  ServeMetrics metrics;
  WorkerRow counts;

 private:
  std::unordered_map<std::int64_t, std::unique_ptr<ServeConnection>> live_;
  std::int64_t accepted_ = 0;
  std::int64_t records_ = 0;
  bool stopping_ = false;
};

}  // namespace assay::internal
