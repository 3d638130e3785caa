#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/text.h"
#include "engine/target/event.h"
#include "engine/target/openai.h"

namespace assay {
namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

/// Every reader below returns the parser's error: a malformed event is skipped whole, so nothing is
/// half read.
#define JSON_TRY(expr)                                                                     \
  do {                                                                                     \
    if (const error_code json_error_ = (expr); json_error_ != SUCCESS) return json_error_; \
  } while (false)

/// The start of a text that explains itself by no field, cut between two characters.
std::string_view excerpt(std::string_view text) {
  constexpr std::size_t kExcerpt = 200;
  if (text.size() <= kExcerpt) return text;
  std::size_t size = kExcerpt;
  for (int i = 0; i < 3 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U; ++i) --size;
  return text.substr(0, size);
}

bool is(od::raw_json_string key, std::string_view name) { return key.unsafe_is_equal(name); }

/// A string, or nothing for any other type.
error_code read_string(od::value value, std::string_view& out) {
  od::json_type type{};
  JSON_TRY(value.type().get(type));
  if (type != od::json_type::string) return SUCCESS;
  return value.get_string().get(out);
}

/// An integer, also written as 12.0 or "12"; nothing for any other value.
error_code read_count(od::value value, std::optional<std::int64_t>& out) {
  od::json_type type{};
  JSON_TRY(value.type().get(type));
  if (type == od::json_type::number) {
    double number = 0;
    JSON_TRY(value.get_double().get(number));
    if (number >= 0 && number < 9e15) out = static_cast<std::int64_t>(number);
  } else if (type == od::json_type::string) {
    std::string_view text;
    JSON_TRY(value.get_string().get(text));
    if (const auto number = parse_int(text); number && *number >= 0) out = number;
  }
  return SUCCESS;
}

/// Calls `read(key, value)` for each field; nothing for anything but an object.
template <typename Read>
error_code each_field(od::value value, const Read& read) {
  od::json_type type{};
  JSON_TRY(value.type().get(type));
  if (type != od::json_type::object) return SUCCESS;
  od::object object;
  JSON_TRY(value.get_object().get(object));
  for (auto field : object) {
    od::raw_json_string key;
    JSON_TRY(field.key().get(key));
    od::value inner;
    JSON_TRY(field.value().get(inner));
    JSON_TRY(read(key, inner));
  }
  return SUCCESS;
}

template <typename Read>
error_code each_element(od::value value, const Read& read) {
  od::json_type type{};
  JSON_TRY(value.type().get(type));
  if (type != od::json_type::array) return SUCCESS;
  od::array array;
  JSON_TRY(value.get_array().get(array));
  for (auto element : array) {
    od::value inner;
    JSON_TRY(element.get(inner));
    JSON_TRY(read(inner));
  }
  return SUCCESS;
}

error_code count_elements(od::value value, std::uint32_t& count) {
  return each_element(value, [&](od::value) {
    ++count;
    return SUCCESS;
  });
}

/// Reads one event into a TokenEvent. Texts of several choices or parts are joined in `joined`.
class EventReader {
 public:
  EventReader(TokenEvent& event, std::string& text, std::string& reasoning)
      : event_(event), text_(text), reasoning_(reasoning) {}

  error_code top(od::raw_json_string key, od::value value) {
    if (is(key, "choices")) return each_element(value, [this](od::value c) { return choice(c); });
    if (is(key, "usage")) return usage(value);
    if (is(key, "error")) return error(value);
    if (is(key, "timings")) return timings(value);
    if (is(key, "x_groq")) {
      return each_field(value, [this](od::raw_json_string k, od::value v) {
        if (is(k, "usage")) return usage(v);
        return is(k, "error") ? error(v) : SUCCESS;
      });
    }
    if (is(key, "object")) {
      std::string_view object;
      JSON_TRY(read_string(value, object));
      if (object == "error") event_.error = true;
      chunk_ = object == "chat.completion.chunk";
      return SUCCESS;
    }
    if (is(key, "type")) {
      std::string_view type;
      JSON_TRY(read_string(value, type));
      if (type == "error") event_.error = true;
      return SUCCESS;
    }
    if (is(key, "message") || is(key, "detail")) return read_string(value, loose_message_);
    if (is(key, "code")) return code(value, loose_code_);
    return SUCCESS;
  }

  void finish() {
    if (event_.error && event_.error_text.empty()) event_.error_text = loose_message_;
    if (event_.error && event_.error_code.empty()) event_.error_code = loose_code_;
    if (tokens_by_id_ > 0) {
      event_.tokens = tokens_by_id_;
    } else if (tokens_by_logprob_ > 0) {
      event_.tokens = tokens_by_logprob_;
    }
    Usage& u = event_.usage;
    if (!u.prompt) u.prompt = timings_.prompt;
    if (!u.cached) u.cached = timings_.cached;
    if (!u.output) u.output = timings_.output;
  }

  [[nodiscard]] std::string_view loose_message() const { return loose_message_; }
  [[nodiscard]] std::string_view loose_code() const { return loose_code_; }

 private:
  error_code choice(od::value value) {
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      if (is(key, "delta")) return delta(v);
      // Some servers repeat the whole reply so far beside each delta.
      if (is(key, "message")) return chunk_ ? SUCCESS : delta(v);
      if (is(key, "text")) return add(v, event_.text, text_);
      if (is(key, "finish_reason")) return finish_reason(v);
      if (is(key, "usage")) return usage(v);
      if (is(key, "token_ids")) return count_elements(v, tokens_by_id_);
      if (is(key, "logprobs")) return logprobs(v);
      if (is(key, "error")) return error(v);
      return SUCCESS;
    });
  }

  error_code delta(od::value value) {
    reasoning_of_delta_ = {};
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      if (is(key, "content")) return content(v);
      if (is(key, "reasoning_content") || is(key, "reasoning")) return reasoning(v);
      if (is(key, "refusal")) return add(v, event_.text, text_);
      if (is(key, "tool_calls"))
        return each_element(v, [this](od::value c) { return tool_call(c); });
      if (is(key, "function_call")) return function(v);
      if (is(key, "token_ids")) return count_elements(v, tokens_by_id_);
      if (is(key, "usage")) return usage(v);
      return SUCCESS;
    });
  }

  /// A string, or an array of parts with a text each.
  error_code content(od::value value) {
    od::json_type type{};
    JSON_TRY(value.type().get(type));
    if (type != od::json_type::array) return add(value, event_.text, text_);
    return each_element(value, [this](od::value part) {
      return each_field(part, [this](od::raw_json_string key, od::value v) {
        return is(key, "text") ? add(v, event_.text, text_) : SUCCESS;
      });
    });
  }

  /// Some servers send the same piece under both names; it counts once.
  error_code reasoning(od::value value) {
    std::string_view piece;
    JSON_TRY(read_string(value, piece));
    if (!reasoning_of_delta_.empty() && piece == reasoning_of_delta_) return SUCCESS;
    reasoning_of_delta_ = piece;
    join(piece, event_.reasoning, reasoning_);
    return SUCCESS;
  }

  error_code tool_call(od::value value) {
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      return is(key, "function") ? function(v) : SUCCESS;
    });
  }

  error_code function(od::value value) {
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      if (!is(key, "name") && !is(key, "arguments")) return SUCCESS;
      std::string_view piece;
      JSON_TRY(read_string(v, piece));
      event_.tool_bytes += static_cast<std::uint32_t>(piece.size());
      if (!piece.empty()) event_.tool = true;
      return SUCCESS;
    });
  }

  /// Chat: {"content": [one per token]}. Completions: {"tokens": [one per token]}.
  error_code logprobs(od::value value) {
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      return is(key, "content") || is(key, "tokens") ? count_elements(v, tokens_by_logprob_)
                                                     : SUCCESS;
    });
  }

  error_code finish_reason(od::value value) {
    std::string_view reason;
    JSON_TRY(read_string(value, reason));
    if (reason.empty()) return SUCCESS;
    event_.finish_reason = reason;
    ++event_.choices_finished;
    // vLLM, SGLang and gateways end a reply so when it failed inside: no finished reply.
    if (reason == "error" || reason == "abort") {
      event_.error = true;
      loose_code_ = reason;
      loose_message_ = "the server ended the reply with this finish_reason";
    }
    return SUCCESS;
  }

  error_code usage(od::value value) {
    return each_field(value, [this](od::raw_json_string key, od::value v) {
      Usage& u = event_.usage;
      if (is(key, "prompt_tokens") || is(key, "input_tokens")) return read_count(v, u.prompt);
      if (is(key, "completion_tokens") || is(key, "output_tokens")) return read_count(v, u.output);
      if (is(key, "prompt_cache_hit_tokens") || is(key, "cached_tokens"))
        return read_count(v, u.cached);
      if (is(key, "reasoning_tokens")) return read_count(v, u.reasoning);
      const bool of_prompt = is(key, "prompt_tokens_details") || is(key, "input_tokens_details");
      const bool of_output =
          is(key, "completion_tokens_details") || is(key, "output_tokens_details");
      if (!of_prompt && !of_output) return SUCCESS;
      return each_field(v, [&u](od::raw_json_string k, od::value detail) {
        if (is(k, "cached_tokens")) return read_count(detail, u.cached);
        if (is(k, "reasoning_tokens")) return read_count(detail, u.reasoning);
        return SUCCESS;
      });
    });
  }

  /// llama.cpp: prompt_n counts what was computed, cache_n what was reused.
  error_code timings(od::value value) {
    std::optional<std::int64_t> computed;
    JSON_TRY(each_field(value, [&](od::raw_json_string key, od::value v) {
      if (is(key, "prompt_n")) return read_count(v, computed);
      if (is(key, "cache_n")) return read_count(v, timings_.cached);
      if (is(key, "predicted_n")) return read_count(v, timings_.output);
      return SUCCESS;
    }));
    if (computed) timings_.prompt = *computed + timings_.cached.value_or(0);
    return SUCCESS;
  }

  error_code error(od::value value) {
    od::json_type type{};
    JSON_TRY(value.type().get(type));
    if (type == od::json_type::null) return SUCCESS;
    if (type == od::json_type::boolean) {
      bool raised = false;
      JSON_TRY(value.get_bool().get(raised));
      event_.error = event_.error || raised;
      return SUCCESS;
    }
    if (type == od::json_type::string) {
      // Servers that write every field of a record send "" where there was no error.
      std::string_view text;
      JSON_TRY(read_string(value, text));
      if (text.empty()) return SUCCESS;
      event_.error = true;
      event_.error_text = text;
      return SUCCESS;
    }
    event_.error = true;
    std::string_view kind;
    JSON_TRY(each_field(value, [&](od::raw_json_string key, od::value v) {
      if (is(key, "message")) return read_string(v, event_.error_text);
      if (is(key, "code")) return code(v, event_.error_code);
      return is(key, "type") ? read_string(v, kind) : SUCCESS;
    }));
    if (event_.error_code.empty()) event_.error_code = kind;
    return SUCCESS;
  }

  /// A code is a string or a number; either way a text for us.
  static error_code code(od::value value, std::string_view& out) {
    od::json_type type{};
    JSON_TRY(value.type().get(type));
    if (type == od::json_type::string) return value.get_string().get(out);
    if (type == od::json_type::number) out = trim(value.raw_json_token());
    return SUCCESS;
  }

  error_code add(od::value value, std::string_view& field, std::string& store) {
    std::string_view piece;
    JSON_TRY(read_string(value, piece));
    join(piece, field, store);
    return SUCCESS;
  }

  static void join(std::string_view piece, std::string_view& field, std::string& store) {
    if (piece.empty()) return;
    if (field.empty()) {
      field = piece;
      return;
    }
    if (field.data() != store.data()) store.assign(field);
    store += piece;
    field = store;
  }

  TokenEvent& event_;
  std::string& text_;
  std::string& reasoning_;
  std::string_view reasoning_of_delta_;
  std::string_view loose_message_, loose_code_;
  std::uint32_t tokens_by_id_ = 0, tokens_by_logprob_ = 0;
  Usage timings_;
  bool chunk_ = false;  // the event calls itself a chunk: it has a delta, and no whole message
};

}  // namespace

struct OpenAiDecoder::Parser {
  error_code read(std::string_view data, EventReader& reader) {
    od::document document;
    JSON_TRY(parser.iterate(data.data(), data.size(), data.size() + simdjson::SIMDJSON_PADDING)
                 .get(document));
    od::object object;
    JSON_TRY(document.get_object().get(object));
    for (auto field : object) {
      od::raw_json_string key;
      JSON_TRY(field.key().get(key));
      od::value value;
      JSON_TRY(field.value().get(value));
      JSON_TRY(reader.top(key, value));
    }
    // Past the end there is no location: anything else means text behind the object.
    return document.current_location().error() == SUCCESS ? error_code::TAPE_ERROR : SUCCESS;
  }

  od::parser parser;
  std::string text, reasoning, padded;
};

OpenAiDecoder::OpenAiDecoder() : parser_(std::make_unique<Parser>()) {}
OpenAiDecoder::~OpenAiDecoder() = default;

TokenEvent OpenAiDecoder::decode(std::string_view type, std::string_view data) {
  static_assert(simdjson::SIMDJSON_PADDING <= 64);
  TokenEvent event;
  const std::string_view bare = trim(data);
  if (type == "error") event.error = true;
  if (bare == "[DONE]") {
    event.end = true;
    return event;
  }
  if (bare.empty()) return event;  // some servers keep a stream alive so
  EventReader reader(event, parser_->text, parser_->reasoning);
  if (parser_->read(data, reader) == SUCCESS) {
    reader.finish();
    if (event.error && event.error_text.empty()) event.error_text = excerpt(bare);
    return event;
  }
  // Nothing of a broken event is believed, except that it was named an error.
  TokenEvent broken;
  broken.error = type == "error";
  broken.malformed = !broken.error;
  if (broken.error) broken.error_text = excerpt(bare);
  return broken;
}

TokenEvent OpenAiDecoder::decode_error_body(std::string_view body) {
  parser_->padded.assign(body);
  parser_->padded.append(simdjson::SIMDJSON_PADDING, ' ');
  const std::string_view text = std::string_view(parser_->padded).substr(0, body.size());
  TokenEvent event;
  EventReader reader(event, parser_->text, parser_->reasoning);
  const bool json = parser_->read(text, reader) == SUCCESS;
  event.error = true;
  if (json) reader.finish();
  if (event.error_text.empty()) event.error_text = excerpt(trim(text));
  return event;
}

}  // namespace assay
