// One attempt of one request, as a plain value: what the `request` table of the ledger holds.
// Instants are nanoseconds since run start; a value that was never reached or never told is an
// empty optional, never 0. Chunks are packed while they arrive: ChunkWriter appends, ChunkReader
// walks them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/time.h"

namespace assay {

/// Nanoseconds since run start.
using RunTime = Duration;
using MaybeTime = std::optional<RunTime>;
using MaybeCount = std::optional<std::int64_t>;

/// How an attempt ended. docs/formats/ledger.md says what each means; the names below are the
/// ledger's.
enum class Outcome : std::uint8_t {
  kOk,
  kHttpError,
  kStreamError,
  kTruncated,
  kEmpty,
  kTimeout,
  kConnect,
  kTls,
  kReset,
  kProtocol,
  kRefusedByClient,
  kCancelled,
};
inline constexpr int kOutcomeCount = 12;
/// "ok", "http_error", "stream_error", …
std::string_view outcome_name(Outcome outcome);
std::optional<Outcome> outcome_from_name(std::string_view name);

/// Flags of one chunk (one event that carries generated output).
enum ChunkFlag : std::uint8_t {
  kChunkNewRead =
      1,  // first event of its read; without it the stamp is shared with the chunk before
  kChunkUserStamp = 2,  // no usable kernel stamp: the instant was read in user space
  kChunkReasoning = 4,
  kChunkTool = 8,
  kChunkTokensKnown = 16,  // `tokens` was told by the server (ids, logprobs, continuous usage)
};

struct Chunk {
  RunTime at{0};
  std::uint32_t bytes = 0;   // of text
  std::uint32_t tokens = 0;  // 0 where unknown
  std::uint8_t flags = 0;
};

/// Packs chunks as LEB128 varints: delta from the previous chunk (first: from scheduled, zigzag;
/// later deltas are zigzag too, since a rejected kernel stamp may be followed by an earlier one),
/// bytes, tokens, flags.
class ChunkWriter {
 public:
  void start(RunTime scheduled) {
    previous_ = scheduled;
    blob_.clear();
    count_ = 0;
  }
  void append(const Chunk& chunk);
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::string take() { return std::move(blob_); }

 private:
  RunTime previous_{0};
  std::string blob_;
  std::size_t count_ = 0;
};

class ChunkReader {
 public:
  ChunkReader(std::string_view blob, RunTime scheduled) : rest_(blob), previous_(scheduled) {}
  /// The next chunk; empty at the end. A torn or foreign blob ends early and sets damaged().
  std::optional<Chunk> next();
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  std::string_view rest_;
  RunTime previous_;
  bool damaged_ = false;
};

struct RequestRecord {
  std::int64_t id = 0;  // of the row: index in the schedule; a further attempt has one of its own
  std::int32_t attempt = 1;
  std::int32_t worker = 0;
  std::int32_t phase = 0;   // row of `phase`: the phase that `scheduled` falls in
  std::int32_t target = 0;  // index of the URL
  MaybeCount session;
  MaybeCount turn;
  std::string item;  // identity of the prompt across runs
  MaybeCount connection;
  std::string request_id;
  std::string trace_id;

  RunTime scheduled{0};
  MaybeTime admitted, send_start, sent, first_byte, first_event, first_token, first_output,
      last_token, done;
  MaybeTime dns, tcp, tls;  // durations of this request's own connection set-up, if it made one
  bool reused = false;      // sent on a connection that was open already

  Outcome outcome = Outcome::kOk;
  std::optional<int> http_status;
  std::string error_code;
  std::string error_text;
  std::string finish_reason;

  MaybeCount tokens_planned, tokens_asked_output, tokens_local_prompt, tokens_local_output;
  MaybeCount tokens_server_prompt, tokens_server_cached, tokens_server_output,
      tokens_server_reasoning;
  std::int64_t bytes_out = 0, bytes_in = 0, reads = 0, events = 0;
  std::optional<double> nll_sum, score;
  MaybeCount nll_tokens;
  std::string chunks;               // see ChunkWriter
  std::optional<std::string> text;  // reply text, only with --keep-text
};

}  // namespace assay
