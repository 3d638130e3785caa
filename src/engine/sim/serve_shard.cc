#include "engine/sim/serve_shard.h"

#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/sim/serve_connection.h"
#include "engine/sim/truth_log.h"

namespace assay::internal {

ServeShard::ServeShard(const Options& options)
    : setup(options.setup),
      index(options.index),
      loop(options.clocks),
      engine(loop, options.setup.spec, options.seed) {
  counts.id = options.index;
}

ServeShard::~ServeShard() = default;

void ServeShard::run() {
  const Instant begin = loop.now();
  loop.run_until_stopped();
  counts.wall_ns = (loop.now() - begin).count();
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  counts.busy_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
}

void ServeShard::adopt(int descriptor) {
  const std::int64_t number = ++accepted_;
  ++counts.connects;
  auto connection = std::make_unique<ServeConnection>(*this, number);
  ServeConnection& made = *connection;
  live_.emplace(number, std::move(connection));
  made.adopt(descriptor);
  if (stopping_) made.cut();
}

void ServeShard::begin_stop(Duration grace) {
  stopping_ = true;
  std::vector<ServeConnection*> idle;
  for (const auto& [number, connection] : live_) {
    if (!connection->busy()) idle.push_back(connection.get());
  }
  for (ServeConnection* const connection : idle) connection->cut();
  if (live_.empty()) return loop.stop();
  loop.at(loop.now() + grace, [this] {
    for (const auto& [number, connection] : live_) connection->cut();
  });
}

void ServeShard::forget(std::int64_t connection) {
  // In a turn of its own: the connection's code is running.
  loop.post([this, connection] {
    live_.erase(connection);
    if (stopping_ && live_.empty()) loop.stop();
  });
}

void ServeShard::note_load() {
  metrics.running.set(engine.core().served());
  metrics.waiting.set(engine.core().waiting());
}

void ServeShard::push(std::unique_ptr<RequestRecord> record) {
  if (truth != nullptr) truth->push(std::move(record));
}

}  // namespace assay::internal
