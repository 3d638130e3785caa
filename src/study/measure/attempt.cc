#include "study/measure/attempt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "domain/ledger/record.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

Duration divide(Duration total, std::int64_t parts) {
  return Duration(std::llround(static_cast<double>(total.count()) / static_cast<double>(parts)));
}

struct ChunkTotals {
  bool all_known = true;    // every chunk's token count was told
  std::int64_t tokens = 0;  // told
  std::size_t reads = 0;
  Duration worst{0};
  Duration sum{0};  // of the gaps
};

ChunkTotals totals_of(std::span<const Chunk> chunks) {
  ChunkTotals totals;
  totals.all_known = !chunks.empty();
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    totals.all_known = totals.all_known && (chunks[i].flags & kChunkTokensKnown) != 0;
    totals.tokens += chunks[i].tokens;
    if ((chunks[i].flags & kChunkNewRead) != 0) ++totals.reads;
    if (i == 0) continue;
    const Duration gap = gap_before(chunks, i);
    totals.worst = std::max(totals.worst, gap);
    totals.sum += gap;
  }
  return totals;
}

void set_tokens(Attempt& attempt, const RequestRecord& r, const ChunkTotals& totals) {
  if (r.tokens_server_output) {
    attempt.tokens = r.tokens_server_output;
    attempt.source = TokenSource::kUsage;
  } else if (totals.all_known) {
    attempt.tokens = totals.tokens;
    attempt.source = TokenSource::kIds;
  } else if (r.tokens_local_output) {
    attempt.tokens = r.tokens_local_output;
    attempt.source = TokenSource::kTokenizer;
  }
  if (!attempt.tokens || attempt.chunks == 0) return;
  if (totals.all_known && totals.tokens == *attempt.tokens) {
    attempt.gaps = totals.tokens == static_cast<std::int64_t>(attempt.chunks)
                       ? GapRule::kOnePerChunk
                       : GapRule::kSpread;
  } else if (*attempt.tokens == static_cast<std::int64_t>(attempt.chunks)) {
    attempt.gaps = GapRule::kOnePerChunk;
  }
}

/// Tokens that the first event carried; one is assumed where nothing tells.
std::int64_t tokens_in_first(Attempt& attempt, std::span<const Chunk> chunks) {
  if (!chunks.empty() && (chunks[0].flags & kChunkTokensKnown) != 0) return chunks[0].tokens;
  attempt.first_assumed = attempt.gaps != GapRule::kOnePerChunk;
  return 1;
}

void set_rates(Attempt& attempt, const RequestRecord& r, std::span<const Chunk> chunks,
               const ChunkTotals& totals) {
  if (attempt.complete && attempt.tokens && r.first_token && r.last_token) {
    const std::int64_t after_first = *attempt.tokens - tokens_in_first(attempt, chunks);
    if (after_first > 0) attempt.tpot = divide(*r.last_token - *r.first_token, after_first);
  }
  if (attempt.chunks < 2) return;
  attempt.icl_mean = divide(totals.sum, static_cast<std::int64_t>(attempt.chunks) - 1);
  if (attempt.gaps == GapRule::kOnePerChunk) attempt.itl_mean = attempt.icl_mean;
  if (attempt.gaps == GapRule::kSpread && totals.tokens > chunks[0].tokens) {
    attempt.itl_mean = divide(totals.sum, totals.tokens - chunks[0].tokens);
  }
}

/// From `from` to `to` if that was reached; else, for a cut-off attempt, at least until `cut`.
MaybeSpan span_of(const MaybeTime& from, const MaybeTime& to, const MaybeTime& cut) {
  if (!from) return std::nullopt;
  if (to) return Span{.time = *to - *from, .censored = false};
  if (cut) return Span{.time = std::max(Duration{0}, *cut - *from), .censored = true};
  return std::nullopt;
}

MaybeTime cut_instant(const RequestRecord& r, const TargetSpec& target, RunTime last) {
  if (r.done) return r.done;
  if (r.outcome == Outcome::kTimeout && r.admitted) return *r.admitted + target.timeout;
  return std::max(last, r.scheduled);
}

void set_worst_gap(Attempt& attempt, const ChunkTotals& totals, std::span<const Chunk> chunks,
                   const MaybeTime& cut) {
  if (cut && !chunks.empty()) {
    const Duration open = *cut - chunks.back().at;  // the gap that the cut left unfinished
    attempt.worst_gap = Span{.time = std::max(totals.worst, open), .censored = true};
  } else if (attempt.complete && chunks.size() >= 2) {
    attempt.worst_gap = Span{.time = totals.worst, .censored = false};
  }
}

}  // namespace

std::string_view token_source_name(TokenSource source) {
  constexpr std::array<std::string_view, kTokenSourceCount> kNames{"none", "usage", "ids",
                                                                   "tokenizer"};
  return kNames.at(static_cast<std::size_t>(source));
}

bool unpack_chunks(const RequestRecord& record, std::vector<Chunk>& chunks) {
  chunks.clear();
  ChunkReader reader(record.chunks, record.scheduled);
  while (const std::optional<Chunk> chunk = reader.next()) chunks.push_back(*chunk);
  return !reader.damaged();
}

Attempt attempt_of(const RequestRecord& record, std::span<const Chunk> chunks,
                   const TargetSpec& target, RunTime last) {
  Attempt attempt;
  attempt.complete = record.outcome == Outcome::kOk;
  attempt.cut_off = record.outcome == Outcome::kTimeout || record.outcome == Outcome::kCancelled;
  attempt.chunks = chunks.size();
  const ChunkTotals totals = totals_of(chunks);
  attempt.chunk_reads = totals.reads;
  set_tokens(attempt, record, totals);
  if (!attempt.complete && !attempt.cut_off) return attempt;

  const MaybeTime cut = attempt.cut_off ? cut_instant(record, target, last) : std::nullopt;
  const MaybeTime scheduled = record.scheduled;
  // A cut-off attempt has no end, wherever its last token so far lies.
  const MaybeTime end = attempt.cut_off ? std::nullopt
                        : target.stream ? record.last_token
                                        : record.done;
  attempt.e2e = span_of(scheduled, end, cut);
  attempt.service_e2e = span_of(record.send_start, end, cut);
  if (!target.stream) return attempt;
  attempt.ttft = span_of(scheduled, record.first_token, cut);
  attempt.service_ttft = span_of(record.send_start, record.first_token, cut);
  attempt.ttfo = span_of(scheduled, record.first_output, cut);
  if (attempt.complete && record.done && record.last_token) {
    attempt.tail = *record.done - *record.last_token;
  }
  set_worst_gap(attempt, totals, chunks, cut);
  set_rates(attempt, record, chunks, totals);
  return attempt;
}

}  // namespace assay
