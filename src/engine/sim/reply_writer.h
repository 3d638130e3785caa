// The bytes of one streamed reply, in the dialect that was asked for: made ahead as far as they are
// the same for every event, so that an event costs a few copies into a buffer that keeps its
// memory. With chunked transfer coding every event is one HTTP chunk. Faults that change bytes
// (comments, CR LF, torn characters) are written here as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/sim/emission.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/sim_spec.h"

namespace assay {

class ReplyWriter {
 public:
  enum class Framing : std::uint8_t { kChunked, kUntilClose };
  enum class Usage : std::uint8_t { kNone, kEnd, kEach };
  struct Reply {
    ServeDialect dialect = ServeDialect::kChat;
    Framing framing = Framing::kChunked;
    Usage usage = Usage::kNone;
    std::string_view id{};     // of the reply, without the dialect's prefix
    std::string_view model{};  // as the reply names it
    std::string_view request_id{};
    std::int64_t created = 0;  // seconds since 1970
    std::int64_t prompt_tokens = 0;
    std::uint8_t wire = 0;  // WireFlags
  };

  /// What a reply came to.
  struct Counts {
    std::string_view finish_reason;
    std::int64_t output = 0, reasoning = 0;  // tokens
  };
  struct Tokens {
    StreamId stream = 0;
    std::int64_t first = 0, count = 0;
    bool reasoning = false;
  };
  /// A reply that is not streamed.
  struct Whole {
    std::string_view text, reasoning;
    Counts counts;
  };

  void begin(const Reply& reply);

  void head(std::string& out) const;
  /// False, and nothing written, where the dialect has no such event.
  bool role(std::string& out) const;
  /// Returns the bytes of text in it.
  std::size_t tokens(std::string& out, const Tokens& tokens) const;
  void malformed(std::string& out) const;
  /// The finish reason; then, where asked for, the usage in an event of its own. Returns how many
  /// events that were.
  int finish(std::string& out, const Counts& counts) const;
  /// An error in place of an event, as `kind` says.
  void error(std::string& out, FaultKind kind) const;
  /// [DONE]. False, and nothing written, where the dialect has no such event.
  bool done(std::string& out) const;
  /// The body's orderly end.
  void end(std::string& out) const;

  /// The text of tokens alone; returns its bytes.
  std::size_t append_text(std::string& out, const Tokens& tokens) const;
  /// The JSON of a whole reply.
  [[nodiscard]] std::string whole(const Whole& reply) const;

 private:
  [[nodiscard]] std::size_t open(std::string& out) const;
  void close(std::string& out, std::size_t opened) const;
  [[nodiscard]] std::string usage_json(const Counts& counts) const;
  void append_counts(std::string& out, std::int64_t output) const;
  void append_llama_end(std::string& out, const Counts& counts) const;
  [[nodiscard]] bool has(WireFlag flag) const { return (wire_ & flag) != 0; }

  ServeDialect dialect_ = ServeDialect::kChat;
  Framing framing_ = Framing::kChunked;
  Usage usage_ = Usage::kNone;
  std::uint8_t wire_ = 0;
  std::string_view line_end_ = "\n";
  std::int64_t prompt_tokens_ = 0;
  std::string request_id_;
  std::string prefix_;          // of every event, up to what differs
  std::size_t choices_at_ = 0;  // in prefix_
  std::string_view text_key_, reasoning_key_, text_end_;
  std::string_view event_end_;  // closes the JSON
};

/// What a stream or a reply says where the spec makes it fail.
ServeError simulated_failure();

}  // namespace assay
