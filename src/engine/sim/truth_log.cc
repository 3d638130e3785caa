#include "engine/sim/truth_log.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "base/core/version.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace assay {
namespace {

/// The ledger's phase while serving: the same id and name as in a client's ledger.
constexpr std::int32_t kServingPhase = 1;
constexpr Duration kWritePeriod = 100ms;
constexpr int kWritesPerCommit = 5;

}  // namespace

void TruthQueue::push(std::unique_ptr<RequestRecord> record) {
  record->phase = kServingPhase;
  std::size_t moved = 0;
  while (moved < overflow_.size() && ring_.push(overflow_[moved])) ++moved;
  overflow_.erase(overflow_.begin(), overflow_.begin() + static_cast<std::ptrdiff_t>(moved));
  if (!overflow_.empty() || !ring_.push(record)) overflow_.push_back(std::move(record));
}

Result<std::unique_ptr<TruthLog>> TruthLog::create(const Options& options) {
  const Instant start = options.clocks.now();
  const WallTime wall = options.clocks.real_now();
  const std::int64_t start_ns = start.time_since_epoch().count();
  std::map<std::string, std::string> values;
  const auto set = [&values](std::string_view key, std::string value) {
    values.emplace(key, std::move(value));
  };
  set(meta::kToolVersion, version_number());
  set(meta::kToolCommit, version_commit());
  set("side", "server");
  set(meta::kSpecAsked, options.spec_asked);
  set(meta::kSimSpec, options.spec_json);
  set(meta::kSeed, std::to_string(options.seed));
  set(meta::kModel, options.model);
  set(meta::kWorkers, std::to_string(options.threads));
  set(meta::kStartWall, format_utc(wall));
  set(meta::kStartMonotonicNs, std::to_string(start_ns));
  set(meta::kClockOffsetNs, std::to_string(wall.ns - start_ns));
  std::unique_ptr<LedgerWriter> ledger = TRY(LedgerWriter::create(options.path, values));
  return std::unique_ptr<TruthLog>(new TruthLog(std::move(ledger), options, start));
}

TruthLog::TruthLog(std::unique_ptr<LedgerWriter> ledger, const Options& options, Instant start)
    : ledger_(std::move(ledger)), clocks_(options.clocks), start_(start) {
  for (int i = 0; i < options.threads; ++i) queues_.push_back(std::make_unique<TruthQueue>());
  writer_ = std::jthread([this](const std::stop_token& stop) { write_until(stop); });
}

TruthLog::~TruthLog() = default;

Result<> TruthLog::write_queued() {
  for (const auto& queue : queues_) {
    while (queue->ring_.front() != nullptr) TRY(ledger_->append(*queue->ring_.pop()));
  }
  return {};
}

void TruthLog::write_until(const std::stop_token& stop) {
  int writes = 0;
  while (!stop.stop_requested() && !failed()) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, kWritePeriod, [] { return false; });
    Result<> written = write_queued();
    if (written && ++writes % kWritesPerCommit == 0) {
      written =
          ledger_->append(PhaseRow{kServingPhase, "steady", RunTime(0), clocks_.now() - start_});
      if (written) written = ledger_->commit();
    }
    if (written) continue;
    error_ = written.error();
    failed_.store(true, std::memory_order_relaxed);
  }
}

Result<> TruthLog::write_rest(const std::vector<WorkerRow>& workers) {
  TRY(write_queued());
  for (const auto& queue : queues_) {
    for (const auto& record : queue->overflow_) TRY(ledger_->append(*record));
    queue->overflow_.clear();
  }
  for (const WorkerRow& row : workers) TRY(ledger_->append(row));
  TRY(ledger_->append(PhaseRow{kServingPhase, "steady", RunTime(0), clocks_.now() - start_}));
  // Whoever reads the file meanwhile keeps NAME-wal beside it: nothing is lost by that.
  static_cast<void>(TRY(ledger_->close("complete")));
  return {};
}

Result<> TruthLog::close(const std::vector<WorkerRow>& workers) {
  writer_.request_stop();
  if (writer_.joinable()) writer_.join();
  if (error_) return fail(*error_);
  return write_rest(workers);
}

}  // namespace assay
