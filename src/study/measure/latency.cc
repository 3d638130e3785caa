#include "study/measure/latency.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/stats/survival.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "study/measure/attempt.h"
#include "study/measure/distribution.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

void push(std::vector<Lifetime>& to, const MaybeSpan& span) {
  if (!span) return;
  to.push_back(
      {span->time.count(), span->censored ? Lifetime::End::kCensored : Lifetime::End::kObserved});
}

constexpr const char* kNoStream = "replies were not streamed";
constexpr const char* kNoReply = "no reply was complete";

}  // namespace

void LatencyCollector::add(const Attempt& attempt, std::span<const Chunk> chunks) {
  arrived_ += attempt.chunks;
  reads_ += attempt.chunk_reads;
  push(ttft_, attempt.ttft);
  push(ttfo_, attempt.ttfo);
  push(e2e_, attempt.e2e);
  push(service_ttft_, attempt.service_ttft);
  push(service_e2e_, attempt.service_e2e);
  push(worst_gap_, attempt.worst_gap);
  if (attempt.tail) tail_.push_back(attempt.tail->count());
  if (attempt.tpot) {
    tpot_.push_back(attempt.tpot->count());
    if (attempt.first_assumed) ++first_assumed_;
  }
  if (attempt.complete && !attempt.tokens) ++without_tokens_;
  if (attempt.complete && attempt.tokens && attempt.chunks > 0) {
    tokens_ += *attempt.tokens;
    chunks_ += static_cast<std::int64_t>(attempt.chunks);
  }
  if (attempt.complete || attempt.cut_off) add_gaps(attempt, chunks);
}

void LatencyCollector::add_gaps(const Attempt& attempt, std::span<const Chunk> chunks) {
  if (chunks.empty()) return;
  if (!apart_ && attempt.gaps != GapRule::kOnePerChunk && chunks.size() >= 2) {
    apart_ = true;
    itl_ = icl_;
  }
  if (attempt.gaps == GapRule::kUnknown) {
    if (attempt.complete) ++itl_left_out_;
  } else {
    ++itl_requests_;
    if (apart_) add_token_gaps(attempt, chunks);
  }
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    icl_.push_back(gap_before(chunks, i).count());
  }
}

void LatencyCollector::add_token_gaps(const Attempt& attempt, std::span<const Chunk> chunks) {
  std::int64_t waiting = 0;  // gap of chunks that carried no token, added to the next
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    const std::int64_t gap = gap_before(chunks, i).count() + waiting;
    const std::int64_t tokens = attempt.gaps == GapRule::kOnePerChunk ? 1 : chunks[i].tokens;
    waiting = tokens == 0 ? gap : 0;
    if (tokens == 0) continue;
    if (tokens > 1) itl_spread_ += tokens;
    const auto share = static_cast<std::int64_t>(
        std::llround(static_cast<double>(gap) / static_cast<double>(tokens)));
    itl_.insert(itl_.end(), static_cast<std::size_t>(tokens), share);
  }
}

std::string LatencyCollector::why_no_itl(const TargetSpec& target) const {
  if (!target.stream) return kNoStream;
  if (chunks_ == 0 && icl_.empty()) return kNoReply;
  if (without_tokens_ > 0)
    return "the server told no token counts (usage), and no tokenizer was given";
  if (itl_left_out_ > 0) {
    return "tokens per chunk are not known: the server counts a different number of tokens than "
           "it sent chunks";
  }
  return "no reply had two tokens";
}

Latency LatencyCollector::finish(const TargetSpec& target) const {
  const char* const no_stream = target.stream ? kNoReply : kNoStream;
  Latency out;
  out.ttft_ms = distribution_ms(ttft_, no_stream);
  out.ttfo_ms = distribution_ms(
      ttfo_, ttft_.empty() ? no_stream : "no reply had output other than reasoning");
  out.tpot_ms = distribution_ms(
      tpot_, ttft_.empty() ? no_stream
             : without_tokens_ > 0
                 ? "the server told no token counts (usage), and no tokenizer was given"
                 : "no complete reply had a token after its first event");
  out.icl_ms = distribution_ms(icl_, ttft_.empty() ? no_stream : "no reply had two chunks");
  if (itl_requests_ > 0 && !apart_) {
    out.itl_ms = out.icl_ms;
  } else {
    out.itl_ms = distribution_ms(itl_, why_no_itl(target));
  }
  out.worst_gap_ms = distribution_ms(worst_gap_, out.icl_ms.why_null);
  out.e2e_ms = distribution_ms(e2e_, kNoReply);
  out.tail_ms = distribution_ms(tail_, no_stream);
  out.service_ttft_ms = distribution_ms(service_ttft_, no_stream);
  out.service_e2e_ms = distribution_ms(service_e2e_, kNoReply);
  out.itl_requests = itl_requests_;
  out.itl_left_out = itl_left_out_;
  out.itl_spread = itl_spread_;
  out.tpot_first_assumed = first_assumed_;
  if (reads_ > 0) out.chunks_per_read = static_cast<double>(arrived_) / static_cast<double>(reads_);
  if (chunks_ > 0) {
    out.tokens_per_chunk = static_cast<double>(tokens_) / static_cast<double>(chunks_);
  }
  return out;
}

}  // namespace assay
