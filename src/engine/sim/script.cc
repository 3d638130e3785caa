#include "engine/sim/script.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "engine/sim/yaml_reader.h"

namespace assay {
namespace {

constexpr int kDepthMax = 4;  // of `repeat` in `repeat`
constexpr std::int64_t kRepeatMax = 1'000'000;
constexpr std::int64_t kTokensMax = 1'000'000;

using Headers = std::vector<std::pair<std::string, std::string>>;

class ScriptParser {
 public:
  explicit ScriptParser(const std::string& path) : in_(path) {}
  std::expected<Script, Errors> parse(const YAML::Node& root);

 private:
  void read_connections(const YAML::Node& node);
  void read_reply(const YAML::Node& node);
  void read_match(const YAML::Node& node, ReplyMatch& match);
  void read_style(const YAML::Node& node, SseStyle& style);
  std::vector<Step> read_steps(const YAML::Node& node, int depth);
  std::optional<Step> read_step(const YAML::Node& node, int depth);
  std::optional<Step> read_named(const std::string& name, const YAML::Node& value, int depth);
  std::optional<Step> read_bare(const YAML::Node& node);
  std::optional<Step> read_head(const YAML::Node& node);
  std::optional<Step> read_event(const YAML::Node& node);
  std::optional<Step> read_chunk(const std::string& name, const YAML::Node& node);
  std::optional<Step> read_tokens(const YAML::Node& node);
  std::optional<Step> read_repeat(const YAML::Node& node, int depth);
  std::optional<std::string> read_bytes(const YAML::Node& node, std::string_view name);
  Headers read_headers(const YAML::Node& node, std::string_view name);

  internal::YamlReader in_;
  Script script_;
};

std::expected<Script, Errors> ScriptParser::parse(const YAML::Node& root) {
  // A case file holds the script together with what is expected of it; `case`, `run` and `expect`
  // are its.
  if (in_.map(root, "a script",
              {"script", "model", "connections", "replies", "case", "expect", "run"})) {
    std::int64_t version = 0;
    in_.whole(root, "script", 1, version);
    if (version != 1) {
      in_.problem(root["script"] ? root["script"] : root, "this is no script of version 1",
                  "put \"script: 1\" at the top");
    }
    in_.text(root, "model", script_.model);
    if (root["connections"]) read_connections(root["connections"]);
    if (!root["replies"] || (root["replies"].IsSequence() && root["replies"].size() == 0)) {
      in_.problem(root, "a script needs at least one reply", "list them under \"replies:\"");
    } else if (in_.list(root["replies"], "replies")) {
      for (const YAML::Node& reply : root["replies"]) read_reply(reply);
    }
  }
  Errors problems = in_.take_problems();
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return std::move(script_);
}

void ScriptParser::read_connections(const YAML::Node& node) {
  if (!in_.list(node, "connections")) return;
  for (const YAML::Node& item : node) {
    if (!in_.map(item, "a connection rule", {"nth", "every", "do"})) continue;
    ConnectionRule rule;
    in_.whole(item, "nth", 1, rule.nth);
    in_.whole(item, "every", 1, rule.every);
    if (rule.nth.has_value() == rule.every.has_value()) {
      in_.problem(item, "a connection rule needs either nth or every",
                  "nth: 2 is the second connection, every: 3 each third one");
    }
    if (item["do"]) {
      const auto which = in_.word(item["do"], "do", {"close", "reset", "hang"});
      if (which) rule.action = static_cast<LastStep>(*which);
    }
    script_.connections.push_back(rule);
  }
}

void ScriptParser::read_reply(const YAML::Node& node) {
  if (!in_.map(node, "a reply", {"match", "style", "steps"})) return;
  Reply reply;
  if (node["match"]) read_match(node["match"], reply.match);
  if (node["style"]) read_style(node["style"], reply.style);
  if (!node["steps"]) {
    in_.problem(node, "a reply needs steps", "to answer nothing, write \"steps: [hang]\"");
  } else {
    reply.steps = read_steps(node["steps"], 0);
  }
  script_.replies.push_back(std::move(reply));
}

void ScriptParser::read_match(const YAML::Node& node, ReplyMatch& match) {
  if (!in_.map(
          node, "match",
          {"request", "request_every", "connection", "connection_every", "path", "contains"})) {
    return;
  }
  in_.whole(node, "request", 1, match.request);
  in_.whole(node, "request_every", 1, match.request_every);
  in_.whole(node, "connection", 1, match.connection);
  in_.whole(node, "connection_every", 1, match.connection_every);
  in_.text(node, "path", match.path);
  in_.text(node, "contains", match.contains);
}

void ScriptParser::read_style(const YAML::Node& node, SseStyle& style) {
  if (!in_.map(node, "style", {"line_end", "blank", "event_name", "id", "retry", "comment"})) {
    return;
  }
  if (node["line_end"]) {
    const auto which = in_.word(node["line_end"], "line_end", {"lf", "crlf", "cr", "mixed"});
    if (which) style.line_end = static_cast<SseStyle::LineEnd>(*which);
  }
  if (node["blank"]) {
    const auto which = in_.word(node["blank"], "blank", {"yes", "no"});
    if (which) style.after_colon = *which == 0 ? " " : "";
  }
  in_.text(node, "event_name", style.event_name);
  in_.text(node, "id", style.id);
  in_.text(node, "retry", style.retry);
  in_.text(node, "comment", style.comment);
}

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by kDepthMax
std::vector<Step> ScriptParser::read_steps(const YAML::Node& node, int depth) {
  std::vector<Step> steps;
  if (!in_.list(node, "steps")) return steps;
  for (const YAML::Node& item : node) {
    if (!steps.empty() && std::holds_alternative<LastStep>(steps.back())) {
      in_.problem(item, "no step can follow close, reset or hang", "leave it out");
      break;
    }
    if (std::optional<Step> step = read_step(item, depth)) steps.push_back(std::move(*step));
  }
  return steps;
}

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by kDepthMax
std::optional<Step> ScriptParser::read_step(const YAML::Node& node, int depth) {
  if (node.IsScalar()) return read_bare(node);
  if (!node.IsMap() || node.size() != 1) {
    in_.problem(node, "a step is one word or one \"name: value\"",
                "write each step as an item of its own");
    return std::nullopt;
  }
  return read_named(node.begin()->first.Scalar(), node.begin()->second, depth);
}

std::optional<Step> ScriptParser::read_bare(const YAML::Node& node) {
  const std::vector<std::string_view> words{"close", "reset", "hang", "done", "end", "head"};
  const auto which = in_.word(node, "a step without a value", words);
  if (!which) return std::nullopt;
  if (*which < 3) return static_cast<LastStep>(*which);
  if (*which == 3) return EventStep{"[DONE]", ""};
  if (*which == 4) return EndStep{};
  return HeadStep{};
}

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by kDepthMax
std::optional<Step> ScriptParser::read_named(const std::string& name, const YAML::Node& value,
                                             int depth) {
  if (name == "wait") {
    const std::optional<Duration> wait = in_.duration(value, std::string_view("wait"));
    return wait ? std::optional<Step>(WaitStep{*wait}) : std::nullopt;
  }
  if (name == "bytes" || name == "body") {
    std::optional<std::string> bytes = read_bytes(value, name);
    if (!bytes) return std::nullopt;
    return name == "bytes" ? Step(BytesStep{std::move(*bytes)}) : Step(BodyStep{std::move(*bytes)});
  }
  if (name == "comment") {
    std::optional<std::string> text = in_.scalar(value, name);
    return text ? std::optional<Step>(CommentStep{std::move(*text)}) : std::nullopt;
  }
  if (name == "end") {
    EndStep end;
    if (in_.map(value, "end", {"trailers"}) && value["trailers"]) {
      end.trailers = read_headers(value["trailers"], "trailers");
    }
    return end;
  }
  if (name == "head") return read_head(value);
  if (name == "event") return read_event(value);
  if (name == "delta" || name == "finish" || name == "usage") return read_chunk(name, value);
  if (name == "tokens") return read_tokens(value);
  if (name == "repeat") return read_repeat(value, depth);
  const std::vector<std::string_view> names{"wait",  "bytes",  "body",   "comment",
                                            "end",   "head",   "event",  "delta",
                                            "usage", "finish", "tokens", "repeat"};
  const std::optional<std::string_view> near = nearest_word(name, names);
  in_.problem(value, fmt::format("there is no step \"{}\"", name),
              near ? fmt::format("did you mean {}?", *near)
                   : fmt::format("steps with a value are {}", fmt::join(names, ", ")));
  return std::nullopt;
}

std::optional<Step> ScriptParser::read_head(const YAML::Node& node) {
  if (!in_.map(node, "head",
               {"status", "reason", "framing", "length", "content_type", "headers",
                "chunk_extension", "chunk_size"})) {
    return std::nullopt;
  }
  HeadStep head;
  std::int64_t status = head.status;
  in_.whole(node, "status", 100, status);
  if (status > 999) in_.problem(node["status"], "status must be at most 999");
  head.status = static_cast<int>(status);
  in_.text(node, "reason", head.reason);
  if (node["framing"]) {
    const auto which = in_.word(node["framing"], "framing", {"chunked", "length", "close"});
    if (which) head.framing = static_cast<BodyFraming>(*which);
  }
  in_.whole(node, "length", 0, head.length);
  if (head.length && head.framing != BodyFraming::kLength) {
    in_.problem(node["length"], "length needs \"framing: length\"");
  }
  in_.text(node, "content_type", head.content_type);
  if (node["headers"]) head.headers = read_headers(node["headers"], "headers");
  in_.text(node, "chunk_extension", head.chunk_extension);
  in_.whole(node, "chunk_size", 1, head.chunk_size);
  return head;
}

std::optional<Step> ScriptParser::read_event(const YAML::Node& node) {
  EventStep event;
  const bool named = node.IsMap() && node["name"] && node["data"] && node.size() == 2;
  const YAML::Node data = named ? node["data"] : node;
  if (named) in_.text(node, "name", event.name);
  event.data = data.IsScalar() ? data.Scalar() : internal::yaml_to_json(data);
  return event;
}

/// `delta`, `finish` and `usage`: the usual chat chunk around the part that matters.
std::optional<Step> ScriptParser::read_chunk(const std::string& name, const YAML::Node& node) {
  JsonWriter json;
  json.begin_object();
  json.field("id", "chatcmpl-1").field("object", "chat.completion.chunk");
  json.field("created", 1760000000).field("model", "scripted").key("choices").begin_array();
  if (name != "usage") {
    json.begin_object().field("index", 0);
    json.key("delta").raw(name == "delta" ? internal::yaml_to_json(node) : "{}");
    json.key("finish_reason");
    if (name == "finish") {
      json.value(std::string_view(in_.scalar(node, name).value_or("")));
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array();
  if (name == "usage") json.key("usage").raw(internal::yaml_to_json(node));
  json.end_object();
  return EventStep{json.take(), ""};
}

std::optional<Step> ScriptParser::read_tokens(const YAML::Node& node) {
  if (!in_.map(
          node, "tokens",
          {"count", "first", "gap", "per_event", "reasoning", "text", "finish_reason", "usage"})) {
    return std::nullopt;
  }
  TokensStep tokens;
  if (node["count"] && !(node["count"].IsScalar() && node["count"].Scalar() == "asked")) {
    in_.whole(node, "count", 0, tokens.count);
    if (tokens.count && *tokens.count > kTokensMax) {
      in_.problem(node["count"], fmt::format("count must be at most {}", kTokensMax));
    }
  }
  in_.duration(node, "first", tokens.first);
  in_.duration(node, "gap", tokens.gap);
  in_.whole(node, "per_event", 1, tokens.per_event);
  in_.whole(node, "reasoning", 0, tokens.reasoning);
  in_.text(node, "text", tokens.text);
  in_.text(node, "finish_reason", tokens.finish_reason);
  if (node["usage"]) {
    const auto which = in_.word(node["usage"], "usage", {"asked", "always", "never"});
    if (which) tokens.usage = static_cast<TokensStep::Usage>(*which);
  }
  return tokens;
}

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by kDepthMax
std::optional<Step> ScriptParser::read_repeat(const YAML::Node& node, int depth) {
  if (depth == kDepthMax) {
    in_.problem(node, fmt::format("repeat goes at most {} deep", kDepthMax));
    return std::nullopt;
  }
  if (!in_.map(node, "repeat", {"times", "steps"})) return std::nullopt;
  RepeatStep repeat;
  in_.whole(node, "times", 0, repeat.times);
  if (repeat.times > kRepeatMax) {
    in_.problem(node["times"], fmt::format("times must be at most {}", kRepeatMax));
  }
  if (!node["steps"]) {
    in_.problem(node, "repeat needs steps");
    return std::nullopt;
  }
  repeat.steps = std::make_shared<const std::vector<Step>>(read_steps(node["steps"], depth + 1));
  return repeat;
}

std::optional<std::string> ScriptParser::read_bytes(const YAML::Node& node, std::string_view name) {
  const std::optional<std::string> text = in_.scalar(node, name);
  if (!text) return std::nullopt;
  std::optional<std::string> bytes = unescape_bytes(*text);
  if (!bytes) {
    in_.problem(
        node, fmt::format("{} has a backslash that starts no escape", name),
        R"(the escapes are \r \n \t \0 \\ and \xNN, and single quotes keep YAML's own out)");
  }
  return bytes;
}

Headers ScriptParser::read_headers(const YAML::Node& node, std::string_view name) {
  Headers headers;
  if (!node.IsMap()) {
    in_.problem(node, fmt::format("{} must be a map", name), "one \"name: value\" per line");
    return headers;
  }
  for (const auto& entry : node) {
    if (const auto value = in_.scalar(entry.second, entry.first.Scalar())) {
      headers.emplace_back(entry.first.Scalar(), *value);
    }
  }
  return headers;
}

}  // namespace

std::optional<std::string> unescape_bytes(std::string_view text) {
  constexpr std::string_view kNames = "rnt0\\";
  constexpr std::array<char, 5> kBytes{'\r', '\n', '\t', '\0', '\\'};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (const std::size_t name = kNames.find(text[i]); name != std::string_view::npos) {
      out += kBytes[name];
      continue;
    }
    const std::string_view hex = text.substr(i + 1, 2);
    unsigned value = 0;
    const auto [at, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (text[i] != 'x' || hex.size() != 2 || error != std::errc() || at != hex.data() + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

std::expected<Script, Errors> parse_script(std::string_view yaml, const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(yaml));
  } catch (const YAML::Exception& error) {
    return std::unexpected(
        Errors{{ExitCode::kUsage, fmt::format("this is not YAML: {}", error.msg),
                fmt::format("{}:{}", path, error.mark.is_null() ? 1 : error.mark.line + 1),
                "quote texts that hold any of : # { } [ ] , &"}});
  }
  return ScriptParser(path).parse(root);
}

}  // namespace assay
