#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "engine/target/openai.h"

namespace assay {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;  // key, raw JSON, in order

/// Stand-ins for what differs from request to request; no user text can hold a NUL byte in JSON.
constexpr std::string_view kPromptHole("\0p", 2);
constexpr std::string_view kTokensHole("\0t", 2);

Keys own_keys(const OpenAiRequestOptions& options) {
  Keys keys;
  std::string model;
  append_json_string(model, options.model);
  keys.emplace_back("model", model);
  if (options.chat) {
    keys.emplace_back("messages", fmt::format(R"([{{"role":"user","content":{}}}])", kPromptHole));
  } else {
    keys.emplace_back("prompt", kPromptHole);
  }
  keys.emplace_back("max_tokens", kTokensHole);
  keys.emplace_back("temperature", "0");
  if (options.exact_output) {
    keys.emplace_back("ignore_eos", "true");
    keys.emplace_back("min_tokens", kTokensHole);
  }
  keys.emplace_back("stream", options.stream ? "true" : "false");
  if (options.stream) keys.emplace_back("stream_options", R"({"include_usage":true})");
  return keys;
}

Result<Keys> user_keys(const std::string& body) {
  Keys keys;
  if (trim(body).empty()) return keys;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(body).get(object) != simdjson::SUCCESS) {
    return usage_error("the extra body is no JSON object", "--body",
                       R"(write it like {"temperature": 0.7})");
  }
  for (const auto& [key, value] : object) {
    keys.emplace_back(std::string(key), simdjson::minify(value));
  }
  return keys;
}

void merge(Keys& keys, const Keys& user) {
  for (const auto& [key, value] : user) {
    const auto found = std::ranges::find(keys, key, &Keys::value_type::first);
    if (value == "null") {
      if (found != keys.end()) keys.erase(found);
    } else if (found != keys.end()) {
      found->second = value;
    } else {
      keys.emplace_back(key, value);
    }
  }
}

/// Servers refuse stream_options without a stream: where the user's body turned the stream off,
/// ours go with it.
void drop_idle_stream_options(Keys& keys, const Keys& user) {
  const auto value_of = [](const Keys& in, std::string_view key) {
    const auto found = std::ranges::find(in, key, &Keys::value_type::first);
    return found == in.end() ? std::string_view() : std::string_view(found->second);
  };
  if (value_of(keys, "stream") == "true" || !value_of(user, "stream_options").empty()) return;
  std::erase_if(keys, [](const auto& key) { return key.first == "stream_options"; });
}

}  // namespace

Result<OpenAiBody> OpenAiBody::create(const OpenAiRequestOptions& options) {
  Keys keys = own_keys(options);
  const Keys user = TRY(user_keys(options.body));
  merge(keys, user);
  drop_idle_stream_options(keys, user);
  OpenAiBody body;
  std::string text = "{";
  for (const auto& [key, raw] : keys) {
    if (text.size() > 1 || !body.parts_.empty()) text += ',';
    append_json_string(text, key);
    text += ':';
    std::string_view rest = raw;
    for (std::size_t hole = rest.find('\0'); hole != std::string_view::npos;
         hole = rest.find('\0')) {
      text += rest.substr(0, hole);
      const bool prompt = rest.substr(hole, 2) == kPromptHole;
      body.parts_.emplace_back(std::move(text), prompt ? Hole::kPrompt : Hole::kTokens);
      text.clear();
      rest.remove_prefix(hole + 2);
    }
    text += rest;
    if (key == "n")
      body.choices_ = static_cast<int>(
          std::clamp<std::int64_t>(parse_int(raw).value_or(1), 1, std::numeric_limits<int>::max()));
  }
  body.parts_.emplace_back(text + "}", Hole::kNone);
  return body;
}

std::string OpenAiBody::fill(std::string_view prompt, std::int64_t tokens_output) const {
  std::string out;
  out.reserve(prompt.size() + 512);
  for (const auto& [text, hole] : parts_) {
    out += text;
    if (hole == Hole::kPrompt) append_json_string(out, prompt);
    if (hole == Hole::kTokens) out += fmt::format_int(tokens_output).c_str();
  }
  return out;
}

}  // namespace assay
