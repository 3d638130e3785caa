// The figures of one attempt: its durations, its tokens, its gaps. Durations are nanoseconds and
// null where the attempt says nothing about them. A cut-off attempt (timeout, cancelled) took at
// least so long: its durations that were not reached hold that bound and `cut_off` says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "domain/ledger/record.h"
#include "domain/spec/spec.h"

namespace assay {

enum class TokenSource : std::uint8_t { kNone, kUsage, kIds, kTokenizer };
inline constexpr int kTokenSourceCount = 4;
std::string_view token_source_name(TokenSource source);

/// How the gaps between tokens follow from the gaps between chunks.
enum class GapRule : std::uint8_t {
  kUnknown,      // tokens per chunk are not known: no ITL
  kOnePerChunk,  // N = chunks
  kSpread,       // known counts add up to N: k tokens make k gaps of gap/k
};

/// A duration of an attempt, or a lower bound of it.
struct Span {
  Duration time{0};
  bool censored = false;
};
using MaybeSpan = std::optional<Span>;

struct Attempt {
  MaybeSpan ttft, ttfo, e2e, service_ttft, service_e2e, worst_gap;
  std::optional<Duration> tail, tpot;
  std::optional<Duration> itl_mean, icl_mean;  // over this attempt's gaps
  MaybeCount tokens;                           // N, by `source`
  TokenSource source = TokenSource::kNone;
  GapRule gaps = GapRule::kUnknown;
  std::size_t chunks = 0;
  std::size_t chunk_reads = 0;  // reads that brought them
  bool first_assumed = false;   // tpot takes the first event to carry one token
  bool complete = false;        // outcome ok
  bool cut_off = false;         // timeout or cancelled
};

/// Reads a chunk blob into `chunks`, replacing what is there. False when the blob is damaged; what
/// could be read stays.
bool unpack_chunks(const RequestRecord& record, std::vector<Chunk>& chunks);

/// `last` is the run's last instant, the bound for an attempt whose end was not recorded.
Attempt attempt_of(const RequestRecord& record, std::span<const Chunk> chunks,
                   const TargetSpec& target, RunTime last);

/// Gap before chunk i ≥ 1. A stamp that lies before its predecessor's counts as simultaneous.
inline Duration gap_before(std::span<const Chunk> chunks, std::size_t i) {
  const Duration gap = chunks[i].at - chunks[i - 1].at;
  return gap > Duration{0} ? gap : Duration{0};
}

}  // namespace assay
