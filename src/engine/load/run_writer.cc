#include "engine/load/run_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/core/result.h"
#include "base/core/spsc_ring.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/load/exchange.h"
#include "engine/load/worker.h"

namespace assay {

Result<> RunWriter::write(const RequestRecord& record) {
  ++written_[record.worker];
  if (record.phase == static_cast<int>(Phase::kSteady)) {
    ++steady_requests_;
    last_steady_scheduled_ = std::max(last_steady_scheduled_, record.scheduled);
  }
  last_done_ = std::max(last_done_, record.done.value_or(record.scheduled));
  return ledger_.append(record);
}

Result<> RunWriter::write_records(Worker& worker) {
  SpscRing<std::unique_ptr<RequestRecord>>& ring = worker.records();
  while (ring.front() != nullptr) TRY(write(*ring.pop()));
  return {};
}

Result<> RunWriter::write_all_records(Worker& worker) {
  TRY(write_records(worker));
  for (const auto& record : worker.overflow()) TRY(write(*record));
  worker.overflow().clear();
  return {};
}

std::optional<RunTime> RunWriter::steady_end() const {
  const std::int64_t begin = shared_.steady_start_ns.load(std::memory_order_relaxed);
  if (begin < 0) return std::nullopt;
  std::optional<RunTime> end;
  if (plan_.duration) {
    const RunTime from = plan_.warmup_requests > 0 ? RunTime(begin) : plan_.warmup_time;
    end = from + *plan_.duration;
  }
  if (plan_.requests && steady_requests_ >= *plan_.requests) {
    end = std::min(end.value_or(last_steady_scheduled_), last_steady_scheduled_);
  }
  if (stopped_at_) end = std::min(end.value_or(*stopped_at_), *stopped_at_);
  return end;
}

Result<> RunWriter::write_phases(RunTime until) {
  const std::int64_t steady = shared_.steady_start_ns.load();
  const RunTime warm = steady < 0 ? until : RunTime(steady);
  TRY(ledger_.append(PhaseRow{static_cast<int>(Phase::kWarmup), "warmup", RunTime(0), warm}));
  if (steady < 0) return {};
  const RunTime end = std::clamp(steady_end().value_or(until), warm, std::max(warm, until));
  TRY(ledger_.append(PhaseRow{static_cast<int>(Phase::kSteady), "steady", warm, end}));
  return ledger_.append(
      PhaseRow{static_cast<int>(Phase::kDrain), "drain", end, std::max(end, until)});
}

Result<> RunWriter::write_histograms(const ExchangeContext& context) {
  for (int phase = 0; phase < kPhaseCount; ++phase) {
    const auto p = static_cast<std::size_t>(phase);
    for (const auto& [name, histogram] : {std::pair{"send_lag_ns", &context.send_lag[p]},
                                          std::pair{"receive_lag_ns", &context.receive_lag[p]}}) {
      if (histogram->count() == 0) continue;
      TRY(ledger_.append(HistogramRow{name, context.worker, phase, histogram->encode_v2()}));
    }
  }
  return {};
}

Result<> RunWriter::write_summary(std::span<Worker* const> workers, std::int64_t clock_steps) {
  const RunTime end = std::max(last_done_, stopped_at_.value_or(RunTime(0)));
  TRY(write_phases(end));
  std::string server;
  std::int64_t sent_again = 0;
  for (Worker* const worker : workers) {
    const ExchangeContext& context = worker->context();
    if (server.empty()) server = context.server;
    WorkerRow counts = context.counts;
    counts.lost = counts.requests - written_[counts.id];
    TRY(ledger_.append(counts));
    sent_again += context.counts.sent_again;
    TRY(write_histograms(context));
  }
  if (sent_again > 0) {
    TRY(ledger_.append(EventRow{
        end, "warning",
        fmt::format("{} requests went out again on a new connection: the server had closed "
                    "theirs after an earlier reply without saying so",
                    sent_again)}));
  }
  TRY(ledger_.set_meta(meta::kServer, server));
  TRY(ledger_.set_meta(meta::kClockSteps, std::to_string(clock_steps)));
  return ledger_.commit();
}

}  // namespace assay
