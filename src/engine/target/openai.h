// The OpenAI dialects, both ways: a plan becomes the bytes of a POST, and an event's JSON becomes a
// TokenEvent. Reads what real servers send under that name: content, reasoning_content and
// reasoning, refusals, tool calls, text of the completions endpoint, whole messages of unstreamed
// replies; usage at the top, in a choice or under x_groq, in the words of OpenAI, DeepSeek,
// Moonshot and SGLang, or as llama.cpp's timings; errors as an object, as a string, as an
// error-shaped object, or named by the event field. An unknown field is never an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "engine/target/event.h"

namespace assay {

/// Decodes events; holds a parser with its buffers, so one per thread is enough for any number of
/// streams.
class OpenAiDecoder {
 public:
  OpenAiDecoder();
  ~OpenAiDecoder();
  OpenAiDecoder(const OpenAiDecoder&) = delete;
  OpenAiDecoder& operator=(const OpenAiDecoder&) = delete;

  /// `data` must have 64 readable bytes behind it. The event's views live until the next call.
  TokenEvent decode(std::string_view type, std::string_view data);
  /// The body of an HTTP error, or any text: code and message in `error_code`, `error_text`.
  TokenEvent decode_error_body(std::string_view body);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

struct OpenAiRequestOptions {
  bool chat = true;
  bool stream = true;
  bool exact_output = true;
  std::string model;
  std::string body;  // JSON object of the user's: its keys win, and null takes a key of ours away
};

/// The JSON body around a prompt, made once and then filled in: everything but prompt and output
/// length is the same for every request of a run.
class OpenAiBody {
 public:
  /// Fails with kUsage when options.body is no JSON object.
  static Result<OpenAiBody> create(const OpenAiRequestOptions& options);

  [[nodiscard]] std::string fill(std::string_view prompt, std::int64_t tokens_output) const;
  /// How many choices a reply will have: the user's `n`.
  [[nodiscard]] int choices() const { return choices_; }

 private:
  enum class Hole : std::uint8_t { kNone, kPrompt, kTokens };
  std::vector<std::pair<std::string, Hole>> parts_;  // text, then what comes after it
  int choices_ = 1;
};

}  // namespace assay
