// The server's own ledger: one record per request with the instants at which it really sent, taken
// just before the send() calls. Serving threads hand records over through a queue each and never
// wait; a thread of the log's own writes and commits them. Client and server ledgers of one machine
// join by request_id, through meta.start_monotonic_ns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/core/result.h"
#include "base/core/spsc_ring.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace assay {

/// Where one serving thread puts its records; used by that thread alone until the log is closed.
class TruthQueue {
 public:
  TruthQueue() : ring_(kCapacity) {}
  void push(std::unique_ptr<RequestRecord> record);

 private:
  friend class TruthLog;
  static constexpr std::size_t kCapacity = 1 << 14;

  SpscRing<std::unique_ptr<RequestRecord>> ring_;
  std::vector<std::unique_ptr<RequestRecord>> overflow_;  // in order; goes when there is room
};

class TruthLog {
 public:
  struct Options {
    std::string path;
    int threads = 1;
    std::uint64_t seed = 0;
    std::string model;
    std::string spec_asked;  // as given
    std::string spec_json;   // every value
    Clocks clocks;
  };
  /// Creates the ledger; an existing file is refused.
  static Result<std::unique_ptr<TruthLog>> create(const Options& options);
  ~TruthLog();
  TruthLog(const TruthLog&) = delete;
  TruthLog& operator=(const TruthLog&) = delete;

  /// What all times in the ledger count from.
  [[nodiscard]] Instant start() const { return start_; }
  [[nodiscard]] TruthQueue& queue(int thread) { return *queues_[static_cast<std::size_t>(thread)]; }
  /// Writing has failed: close() says how.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }
  /// Once no thread pushes any more: writes the rest, `workers` and the end of the file.
  Result<> close(const std::vector<WorkerRow>& workers);

 private:
  TruthLog(std::unique_ptr<LedgerWriter> ledger, const Options& options, Instant start);
  void write_until(const std::stop_token& stop);
  Result<> write_queued();
  Result<> write_rest(const std::vector<WorkerRow>& workers);

  std::unique_ptr<LedgerWriter> ledger_;
  Clocks clocks_;
  Instant start_;
  std::vector<std::unique_ptr<TruthQueue>> queues_;
  std::atomic<bool> failed_{false};
  std::optional<Error> error_;  // of the writing thread; read after it has ended
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread writer_;
};

}  // namespace assay
