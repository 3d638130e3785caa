#include "engine/load/virtual_run.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/core/check.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "engine/load/builder.h"
#include "engine/load/exchange.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/load/run_writer.h"
#include "engine/load/worker.h"
#include "engine/net/virtual_loop.h"

namespace assay {
namespace {

/// Requests between two looks at records and signals: the worker's ring never overflows for long,
/// and a kill loses little.
constexpr std::int64_t kRequestsPerTurn = 1024;
constexpr std::int64_t kTurnsPerCommit = 64;

class VirtualRun {
 public:
  explicit VirtualRun(const VirtualRunInputs& inputs)
      : in_(inputs),
        loop_(inputs.loop),
        builder_(inputs.spec, inputs.spec.run.salt, inputs.target),
        feed_(1, [this] { return next_request(); }),
        worker_(0, inputs.spec, inputs.plan, loop_, inputs.target, feed_, shared_),
        writer_(inputs.plan, shared_, inputs.ledger) {
    if (inputs.trace) {
      schedule_.emplace(*inputs.trace, inputs.plan);
    } else if (inputs.plan.open_loop) {
      schedule_.emplace(inputs.spec.load, inputs.plan, inputs.spec.run.seed);
    }
  }

  Result<RunEnd> run() {
    TRY(in_.ledger.set_meta(meta::kStartMonotonicNs, "0"));
    TRY(in_.ledger.set_meta(meta::kClockOffsetNs, "0"));
    worker_.prepare([this](std::int64_t /*opened*/, const std::string& /*error*/) {
      start_ = loop_.now();
      worker_.start(start_, [this] { loop_.stop(); });
    });
    loop_.run();
    if (broken_) return fail(*broken_);
    worker_.context().counts.wall_ns = (loop_.now() - start_).count();
    TRY(writer_.write_all_records(worker_));
    std::array<Worker*, 1> workers = {&worker_};
    TRY(writer_.write_summary(workers, 0));
    return RunEnd{.interrupted = stop_seen_ > 0};
  }

 private:
  std::unique_ptr<PreparedRequest> next_request();
  void take_turn();
  Result<> write_turn();

  const VirtualRunInputs& in_;
  VirtualLoop& loop_;
  RequestBuilder builder_;
  std::optional<OpenSchedule> schedule_;
  SharedRunState shared_;
  RequestFeed feed_;
  Worker worker_;
  RunWriter writer_;
  Instant start_{};
  std::int64_t made_ = 0;
  int stop_seen_ = 0;
  std::optional<Error> broken_;
};

std::unique_ptr<PreparedRequest> VirtualRun::next_request() {
  if (made_ % kRequestsPerTurn == 0) take_turn();
  if (broken_) return nullptr;
  const std::int64_t id = made_++;
  if (!schedule_) return builder_.build(id);
  const std::optional<OpenSchedule::Arrival> arrival = schedule_->next();
  if (!arrival) return nullptr;
  std::unique_ptr<PreparedRequest> request = builder_.build(arrival->id);
  request->scheduled = arrival->at;
  request->warmup = arrival->warmup;
  return request;
}

void VirtualRun::take_turn() {
  if (const Result<> written = write_turn(); !written) {
    broken_ = written.error();
    loop_.stop();
  }
  const int level = in_.stop.load(std::memory_order_relaxed);
  if (level <= stop_seen_) return;
  stop_seen_ = level;
  writer_.note_stop(loop_.now() - start_);
  // Not from here: the worker is in the middle of asking for its next request.
  loop_.post([this, level] { worker_.stop(level >= 2 ? Duration(0) : in_.plan.drain); });
}

Result<> VirtualRun::write_turn() {
  TRY(writer_.write_records(worker_));
  if (made_ / kRequestsPerTurn % kTurnsPerCommit == 0) TRY(in_.ledger.commit());
  return {};
}

}  // namespace

Result<RunEnd> run_virtual(const VirtualRunInputs& inputs) {
  CHECK(inputs.plan.workers == 1, "{} workers", inputs.plan.workers);
  return VirtualRun(inputs).run();
}

}  // namespace assay
