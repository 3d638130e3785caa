// What a run leaves in its ledger beside the meta: takes the records of the workers as they end,
// works out where the phases lie, and at the end writes counts, histograms and warnings. Used by
// the run in real time and the one in virtual time alike. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/core/result.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/load/plan.h"
#include "engine/load/worker.h"

namespace assay {

class RunWriter {
 public:
  /// All three outlive the writer.
  RunWriter(const LoadPlan& plan, const SharedRunState& shared, LedgerWriter& ledger)
      : plan_(plan), shared_(shared), ledger_(ledger) {}

  /// What the worker has handed over by now.
  Result<> write_records(Worker& worker);
  /// The same, and what is left: once the worker's loop has ended.
  Result<> write_all_records(Worker& worker);
  /// The user stops the run: steady ends there.
  void note_stop(RunTime at) { stopped_at_ = stopped_at_.value_or(at); }
  /// Null while it can't be known.
  [[nodiscard]] std::optional<RunTime> steady_end() const;
  /// As they stand at `until`; may be called again.
  Result<> write_phases(RunTime until);
  /// Everything else, and commits.
  Result<> write_summary(std::span<Worker* const> workers, std::int64_t clock_steps);

 private:
  Result<> write(const RequestRecord& record);
  Result<> write_histograms(const ExchangeContext& context);

  const LoadPlan& plan_;
  const SharedRunState& shared_;
  LedgerWriter& ledger_;
  std::optional<RunTime> stopped_at_;
  std::map<std::int32_t, std::int64_t> written_;  // records, by worker
  std::int64_t steady_requests_ = 0;
  RunTime last_steady_scheduled_{0};
  RunTime last_done_{0};
};

}  // namespace assay
