// A script: what `sim serve --script FILE` answers, byte by byte and delay by delay. Read from YAML
// (docs/formats/script.md is the contract); parse_script reports every problem at once, each with
// file and line. A Script is a plain value; playback.h turns a reply of it and one request into the
// bytes on the wire and their instants.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"

namespace assay {

/// How the end of a body is told.
enum class BodyFraming : std::uint8_t { kChunked, kLength, kClose };

/// How events are written as SSE text. Every choice is legal SSE.
struct SseStyle {
  enum class LineEnd : std::uint8_t { kLf, kCrLf, kCr, kMixed };  // mixed: the three in turn
  LineEnd line_end = LineEnd::kLf;
  std::string after_colon = " ";  // between "data:" and the data: a blank or nothing
  std::string event_name;         // writes an `event:` line before the data
  std::string id;                 // writes an `id:` line
  std::string retry;              // writes a `retry:` line
  std::string comment;            // writes a comment line inside each event
};

struct WaitStep {
  Duration wait{0};
};
/// Bytes on the wire as they are, outside any framing.
struct BytesStep {
  std::string bytes;
};
struct HeadStep {
  int status = 200;
  std::string reason;  // empty: the usual one
  BodyFraming framing = BodyFraming::kChunked;
  std::optional<std::int64_t> length;  // content-length as told; null: the true one
  std::string content_type = "text/event-stream; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string chunk_extension;  // ";name=value" after each chunk size
  std::int64_t chunk_size = 0;  // cuts the body into chunks of at most so many bytes; 0: per step
};
/// Bytes of the body, framed as the head says.
struct BodyStep {
  std::string bytes;
};
/// One SSE event; a text of several lines gives several `data:` lines.
struct EventStep {
  std::string data;
  std::string name;  // an `event:` line of its own
};
struct CommentStep {
  std::string text;
};
/// A well-formed reply of so many tokens, as the dialect of the request's path has it.
struct TokensStep {
  std::optional<std::int64_t> count;  // null: as the request's max_tokens asks
  Duration first{0};                  // wait before the first token
  Duration gap{0};                    // wait before each later event
  std::int64_t per_event = 1;
  std::int64_t reasoning = 0;  // so many of them come as reasoning, before the rest
  std::string text = " tok";   // of one token
  std::string finish_reason = "length";
  enum class Usage : std::uint8_t { kAsked, kAlways, kNever };
  Usage usage = Usage::kAsked;
};
/// The orderly end of the body, with trailers where the framing has them.
struct EndStep {
  std::vector<std::pair<std::string, std::string>> trailers;
};
/// What becomes of the connection; nothing after it is played.
enum class LastStep : std::uint8_t { kClose, kReset, kHang };

struct RepeatStep;
using Step = std::variant<WaitStep, BytesStep, HeadStep, BodyStep, EventStep, CommentStep,
                          TokensStep, EndStep, LastStep, RepeatStep>;
struct RepeatStep {
  std::int64_t times = 1;
  std::shared_ptr<const std::vector<Step>> steps;  // never null; copies of a script share them
};

/// Which requests a reply is for; empty conditions hold. Counting starts at 1 and leaves out what
/// the server answers by itself.
struct ReplyMatch {
  std::optional<std::int64_t> request, request_every, connection, connection_every;
  std::string path;
  std::string contains;  // the request's body
  [[nodiscard]] bool any() const {
    return request || request_every || connection || connection_every || !path.empty() ||
           !contains.empty();
  }
};

struct Reply {
  ReplyMatch match;
  SseStyle style;
  std::vector<Step> steps;
};

/// What happens to a connection as soon as it is accepted.
struct ConnectionRule {
  std::optional<std::int64_t> nth, every;
  LastStep action = LastStep::kReset;
};

struct Script {
  std::string model = "scripted";  // what /v1/models names
  std::vector<ConnectionRule> connections;
  std::vector<Reply> replies;  // the first that matches; those without a match take turns
};

/// `path` is for messages only.
std::expected<Script, Errors> parse_script(std::string_view yaml, const std::string& path);

/// Undoes \r \n \t \\ \0 and \xNN. Null where a backslash is followed by anything else.
std::optional<std::string> unescape_bytes(std::string_view text);

}  // namespace assay
