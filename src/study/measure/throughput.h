// Rates inside the steady window, by the instants of events: output tokens where their chunks
// arrived, prompt tokens at the first token, requests where they ended. Attempts of every phase are
// added, since a warm-up request may still stream inside the window. The window is cut into equal
// spans, whose counts give the batch-means interval of each rate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "domain/ledger/record.h"
#include "study/measure/attempt.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {

class ThroughputCollector {
 public:
  explicit ThroughputCollector(const Population& population);

  enum class Part : std::uint8_t { kWarmup, kMeasured };
  void add(const RequestRecord& record, const Attempt& attempt, std::span<const Chunk> chunks,
           Part part);
  /// Per-GPU figures where gpus > 0.
  [[nodiscard]] Throughput steady(std::int64_t gpus) const;
  /// From the start of the window to the last end; sums over every attempt after warm-up. One
  /// value, no interval: ramp-down is in it.
  [[nodiscard]] Throughput whole(std::int64_t gpus) const;

 private:
  static constexpr std::size_t kSpans = 20;
  struct Tally {
    std::array<double, kSpans> spans{};
    double all = 0;      // after warm-up, wherever it fell
    bool known = false;  // something was ever told
  };

  void add_to(Tally& tally, RunTime at, double amount) const;
  void add_output(const Attempt& attempt, std::span<const Chunk> chunks, RunTime end);
  [[nodiscard]] Rate steady_rate(const Tally& tally) const;
  [[nodiscard]] Rate whole_rate(const Tally& tally) const;

  RunTime start_, end_, last_;
  double spans_per_ns_ = 0;
  Tally output_, input_, effective_, requests_;
  std::vector<double> per_user_, per_user_all_;  // tokens per second of each complete reply
};

}  // namespace assay
