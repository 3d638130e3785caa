#include "engine/sim/serve_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/json_writer.h"
#include "engine/sim/sim_text.h"

namespace assay {
namespace {

namespace dom = simdjson::dom;

std::string_view type_name(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "a boolean";
    case dom::element_type::NULL_VALUE:
      return "null";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      return "a number";
  }
  return "something else";
}

/// Reads the fields of one body; the first problem stays.
class BodyReader {
 public:
  explicit BodyReader(const dom::object& root) : root_(root) {}

  /// Null where the field is missing or null.
  [[nodiscard]] std::optional<dom::element> find(std::string_view key) const {
    dom::element value;
    if (root_[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  bool flag(std::string_view key) { return flag_of(find(key), key); }
  bool flag_of(const std::optional<dom::element>& value, std::string_view name);
  std::optional<std::int64_t> count(std::string_view key);
  std::string text(std::string_view key);
  void prompt(std::string_view key, ServeRequest& request);
  std::string messages();
  void stream_options(ServeRequest& request);

  void wrong(std::string_view param, std::string message) {
    if (!error_) error_ = ServeError{.message = std::move(message), .param = std::string(param)};
  }
  void wrong_type(std::string_view param, std::string_view wanted, const dom::element& got) {
    wrong(param, fmt::format("'{}' must be {}, not {}", param, wanted, type_name(got)));
  }
  [[nodiscard]] const std::optional<ServeError>& error() const { return error_; }

 private:
  void message(const dom::element& message, std::size_t index, std::string& all);
  void content_parts(const dom::array& parts, const std::string& where, std::string& all);

  dom::object root_;
  std::optional<ServeError> error_;
};

bool BodyReader::flag_of(const std::optional<dom::element>& value, std::string_view name) {
  bool flag = false;
  if (value && value->get(flag) != simdjson::SUCCESS) wrong_type(name, "a boolean", *value);
  return flag;
}

std::optional<std::int64_t> BodyReader::count(std::string_view key) {
  const std::optional<dom::element> value = find(key);
  if (!value) return std::nullopt;
  std::int64_t number = 0;
  if (value->get(number) == simdjson::SUCCESS) return number;
  if (value->is_number()) {
    wrong(key, fmt::format("'{}' must be an integer", key));
  } else {
    wrong_type(key, "an integer", *value);
  }
  return std::nullopt;
}

std::string BodyReader::text(std::string_view key) {
  const std::optional<dom::element> value = find(key);
  std::string_view text;
  if (value && value->get(text) != simdjson::SUCCESS) wrong_type(key, "a string", *value);
  return std::string(text);
}

void BodyReader::prompt(std::string_view key, ServeRequest& request) {
  const std::optional<dom::element> value = find(key);
  if (!value) {
    return wrong(key, fmt::format("'{}' is missing: give the text to continue", key));
  }
  std::string_view text;
  if (value->get(text) == simdjson::SUCCESS) {
    request.prompt_tokens = count_sim_tokens(text);
    return;
  }
  dom::array list;
  if (value->get(list) != simdjson::SUCCESS) {
    return wrong_type(key, "a string, a list of one string, or a list of token ids", *value);
  }
  std::int64_t ids = 0;
  for (const dom::element item : list) ids += item.is_int64() ? 1 : 0;
  if (ids > 0 && static_cast<std::size_t>(ids) == list.size()) {
    request.prompt_tokens = ids;
  } else if (list.size() == 1 && list.at(0).get(text) == simdjson::SUCCESS) {
    request.prompt_tokens = count_sim_tokens(text);
  } else {
    wrong(key, fmt::format("'{}' must hold one prompt: a string, a list of one string, or a list "
                           "of token ids",
                           key));
  }
}

void BodyReader::content_parts(const dom::array& parts, const std::string& where,
                               std::string& all) {
  for (const dom::element part : parts) {
    dom::object object;
    if (part.get(object) != simdjson::SUCCESS) return wrong_type(where, "a list of objects", part);
    std::string_view text;
    // A part that is no text (an image, a sound) has no tokens here.
    if (object["text"].get(text) == simdjson::SUCCESS) all.append(text).push_back('\n');
  }
}

void BodyReader::message(const dom::element& message, std::size_t index, std::string& all) {
  const std::string where = fmt::format("messages[{}]", index);
  dom::object object;
  if (message.get(object) != simdjson::SUCCESS) return wrong_type(where, "an object", message);
  std::string_view role;
  if (object["role"].get(role) != simdjson::SUCCESS) {
    return wrong(where, fmt::format("'{}.role' must be a string such as \"user\"", where));
  }
  dom::element content;
  if (object["content"].get(content) != simdjson::SUCCESS || content.is_null()) return;
  std::string_view text;
  dom::array parts;
  if (content.get(text) == simdjson::SUCCESS) {
    all.append(text).push_back('\n');
  } else if (content.get(parts) == simdjson::SUCCESS) {
    content_parts(parts, where + ".content", all);
  } else {
    wrong_type(where + ".content", "a string or a list of parts", content);
  }
}

std::string BodyReader::messages() {
  std::string all;
  const std::optional<dom::element> value = find("messages");
  dom::array list;
  if (!value) {
    wrong("messages",
          "'messages' is missing: give a list such as [{\"role\": \"user\", "
          "\"content\": \"Hello\"}]");
  } else if (value->get(list) != simdjson::SUCCESS) {
    wrong_type("messages", "a list of objects", *value);
  } else if (list.size() == 0) {
    wrong("messages", "'messages' must hold at least one message");
  } else {
    std::size_t index = 0;
    for (const dom::element one : list) message(one, index++, all);
  }
  return all;
}

void BodyReader::stream_options(ServeRequest& request) {
  const std::optional<dom::element> value = find("stream_options");
  if (!value) return;
  dom::object options;
  if (value->get(options) != simdjson::SUCCESS) {
    return wrong_type("stream_options", "an object", *value);
  }
  if (!request.stream) {
    return wrong("stream_options", "'stream_options' is for requests with \"stream\": true");
  }
  const BodyReader inner(options);
  request.include_usage = flag_of(inner.find("include_usage"), "stream_options.include_usage");
  request.usage_in_each =
      flag_of(inner.find("continuous_usage_stats"), "stream_options.continuous_usage_stats");
}

/// The body as an object, or what is wrong with it.
std::expected<dom::object, ServeError> parse_object(dom::parser& parser, std::string_view body) {
  dom::element root;
  const simdjson::error_code failure = parser.parse(simdjson::padded_string(body)).get(root);
  if (failure != simdjson::SUCCESS) {
    return std::unexpected(ServeError{.message = fmt::format("the body is not valid JSON: {}",
                                                             simdjson::error_message(failure))});
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return std::unexpected(ServeError{
        .message = fmt::format("the body must be a JSON object, not {}", type_name(root))});
  }
  return object;
}

void read_output_tokens(BodyReader& reader, ServeRequest& request) {
  std::string_view name = "max_tokens";
  std::optional<std::int64_t> asked;
  if (request.dialect == ServeDialect::kLlamaCpp) {
    name = "n_predict";
    asked = reader.count(name);
    if (asked == -1) asked.reset();  // no limit: the engine decides
  } else {
    asked = reader.count(name);
    if (request.dialect == ServeDialect::kChat) {
      if (const auto newer = reader.count("max_completion_tokens")) {
        name = "max_completion_tokens";
        asked = newer;
      }
    }
  }
  request.output_tokens = asked.value_or(kServeTokensDefault);
  if (request.output_tokens <= 0) {
    reader.wrong(name, fmt::format("'{}' must be at least 1, not {}", name, request.output_tokens));
  } else if (request.output_tokens > kServeTokensMax - request.prompt_tokens) {
    reader.wrong(name,
                 fmt::format("{} tokens of prompt and {} of output are more than the {} that "
                             "the model takes: lower '{}'",
                             request.prompt_tokens, request.output_tokens, kServeTokensMax, name));
  }
}

}  // namespace

std::expected<ServeRequest, ServeError> read_serve_request(ServeDialect dialect,
                                                           std::string_view body) {
  dom::parser parser;
  const std::expected<dom::object, ServeError> root = parse_object(parser, body);
  if (!root) return std::unexpected(root.error());
  BodyReader reader(*root);
  ServeRequest request;
  request.dialect = dialect;
  request.model = reader.text("model");
  request.stream = reader.flag("stream");
  if (dialect == ServeDialect::kChat) {
    const std::string all = reader.messages();
    request.prompt_tokens = count_sim_tokens(all);
  } else {
    reader.prompt("prompt", request);
  }
  read_output_tokens(reader, request);
  if (dialect != ServeDialect::kLlamaCpp) {
    if (reader.count("n").value_or(1) != 1) {
      reader.wrong("n", "'n' must be 1: the simulated engine gives one choice");
    }
    reader.stream_options(request);
  }
  if (reader.error()) return std::unexpected(*reader.error());
  return request;
}

std::expected<TokenizeRequest, ServeError> read_tokenize_request(std::string_view body) {
  dom::parser parser;
  const std::expected<dom::object, ServeError> root = parse_object(parser, body);
  if (!root) return std::unexpected(root.error());
  BodyReader reader(*root);
  TokenizeRequest request;
  if (reader.find("content")) {
    request.llama_cpp = true;
    request.text = reader.text("content");
  } else if (reader.find("messages")) {
    request.text = reader.messages();
  } else if (reader.find("prompt")) {
    request.text = reader.text("prompt");
  } else {
    reader.wrong("prompt",
                 "'prompt' is missing: give the text to split (or 'messages', or "
                 "llama.cpp's 'content')");
  }
  if (reader.error()) return std::unexpected(*reader.error());
  return request;
}

std::string serve_error_json(const ServeError& error) {
  JsonWriter json;
  const auto field = [&json](std::string_view name, const std::string& text) {
    json.key(name);
    if (text.empty()) {
      json.null();
    } else {
      json.value(std::string_view(text));
    }
  };
  json.begin_object().key("error").begin_object().field("message", error.message);
  json.field("type", error.type);
  field("param", error.param);
  field("code", error.code);
  return json.end_object().end_object().take();
}

}  // namespace assay
