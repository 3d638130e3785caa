// Latencies of a cohort: attempts are added by scheduled instant, then finish() makes the
// distributions. The gaps of ten million chunks are kept once: while every reply has one token per
// chunk the gaps between tokens are the gaps between chunks, and one vector serves both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/stats/survival.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "study/measure/attempt.h"
#include "study/measure/measurement.h"

namespace assay {

class LatencyCollector {
 public:
  /// Room for that many gaps is reserved at once.
  explicit LatencyCollector(std::size_t gaps_expected) { icl_.reserve(gaps_expected); }

  void add(const Attempt& attempt, std::span<const Chunk> chunks);
  [[nodiscard]] Latency finish(const TargetSpec& target) const;

 private:
  void add_gaps(const Attempt& attempt, std::span<const Chunk> chunks);
  void add_token_gaps(const Attempt& attempt, std::span<const Chunk> chunks);
  [[nodiscard]] std::string why_no_itl(const TargetSpec& target) const;

  std::vector<Lifetime> ttft_, ttfo_, e2e_, service_ttft_, service_e2e_, worst_gap_;
  std::vector<std::int64_t> tail_, tpot_, icl_;
  std::vector<std::int64_t> itl_;  // used once `apart_`
  bool apart_ = false;             // ITL and ICL differ
  std::int64_t itl_requests_ = 0, itl_left_out_ = 0, itl_spread_ = 0, first_assumed_ = 0;
  std::int64_t without_tokens_ = 0;  // complete replies whose N nothing tells
  std::int64_t tokens_ = 0, chunks_ = 0;
  std::size_t arrived_ = 0, reads_ = 0;  // chunks, and the reads that brought them
};

}  // namespace assay
