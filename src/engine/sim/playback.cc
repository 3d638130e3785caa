#include "engine/sim/playback.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "engine/sim/script.h"

namespace assay {
namespace {

constexpr std::int64_t kTokensMax = 1'000'000;  // whatever the request asks

std::string_view usual_reason(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 14> kReasons{{
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {404, "Not Found"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
  }};
  const auto* const found =
      std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  return found == kReasons.end() ? "Scripted" : found->second;
}

class Composer {
 public:
  Composer(const Reply& reply, const AskedReply& asked) : reply_(reply), asked_(asked) {}

  Playback play() {
    run(reply_.steps);
    if (!playback_.last && head_ && !ended_) end({});
    if (head_ && head_->framing == BodyFraming::kClose && !playback_.last) last(LastStep::kClose);
    settle_length();
    return std::move(playback_);
  }

 private:
  void run(const std::vector<Step>& steps);
  void put(std::string_view bytes);
  void wait(Duration by);
  void head(const HeadStep& step);
  void body(std::string_view bytes);
  void event(std::string_view data, const std::string& name);
  void add_line(std::string& text, std::string_view field, std::string_view value);
  void add_line_end(std::string& text);
  void tokens(const TokensStep& step);
  void whole_answer(const TokensStep& step, std::int64_t count);
  void token_event(std::string_view field, std::string_view text);
  void finish_event(std::string_view reason);
  JsonWriter chunk_start() const;
  void end(const EndStep& step);
  void last(LastStep step);
  void settle_length();
  [[nodiscard]] std::string usage_json(const TokensStep& step, std::int64_t count) const;

  const Reply& reply_;
  const AskedReply& asked_;
  Playback playback_;
  Duration now_{0};
  bool split_ = true;  // the next bytes start a send of their own
  std::optional<HeadStep> head_;
  bool ended_ = false;
  std::int64_t body_size_ = 0;
  std::size_t line_ends_ = 0;
};

// A placeholder as wide as any length, replaced once the body's size is known.
constexpr std::string_view kLengthUnknown = "@@@@@@@@@@@@@@@@@@@";

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by the script parser
void Composer::run(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (playback_.last) return;
    if (const auto* s = std::get_if<WaitStep>(&step)) wait(s->wait);
    if (const auto* s = std::get_if<BytesStep>(&step)) put(s->bytes);
    if (const auto* s = std::get_if<HeadStep>(&step)) head(*s);
    if (const auto* s = std::get_if<BodyStep>(&step)) body(s->bytes);
    if (const auto* s = std::get_if<EventStep>(&step)) event(s->data, s->name);
    if (const auto* s = std::get_if<CommentStep>(&step)) {
      std::string text;
      add_line(text, "", s->text);
      add_line_end(text);
      body(text);
    }
    if (const auto* s = std::get_if<TokensStep>(&step)) tokens(*s);
    if (const auto* s = std::get_if<EndStep>(&step)) end(*s);
    if (const auto* s = std::get_if<LastStep>(&step)) last(*s);
    if (const auto* s = std::get_if<RepeatStep>(&step)) {
      for (std::int64_t i = 0; i < s->times; ++i) run(*s->steps);
    }
  }
}

void Composer::put(std::string_view bytes) {
  if (bytes.empty()) return;
  if (split_) playback_.sends.push_back({now_, {}});
  split_ = false;
  playback_.sends.back().bytes += bytes;
}

void Composer::wait(Duration by) {
  now_ += by;
  split_ = true;
}

void Composer::last(LastStep step) {
  playback_.last = step;
  playback_.last_at = now_;
}

void Composer::head(const HeadStep& step) {
  head_ = step;
  const std::string_view reason =
      step.reason.empty() ? usual_reason(step.status) : std::string_view(step.reason);
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", step.status, reason);
  if (!step.content_type.empty()) text += fmt::format("content-type: {}\r\n", step.content_type);
  for (const auto& [name, value] : step.headers) text += fmt::format("{}: {}\r\n", name, value);
  switch (step.framing) {
    case BodyFraming::kChunked:
      text += "transfer-encoding: chunked\r\n";
      break;
    case BodyFraming::kLength:
      text += step.length ? fmt::format("content-length: {}\r\n", *step.length)
                          : fmt::format("content-length: {}\r\n", kLengthUnknown);
      break;
    case BodyFraming::kClose:
      text += "connection: close\r\n";
      break;
  }
  put(text + "\r\n");
}

void Composer::body(std::string_view bytes) {
  if (!head_) head({});
  body_size_ += static_cast<std::int64_t>(bytes.size());
  if (head_->framing != BodyFraming::kChunked) {
    put(bytes);
    return;
  }
  const std::size_t most =
      head_->chunk_size > 0 ? static_cast<std::size_t>(head_->chunk_size) : bytes.size();
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, most);
    put(fmt::format("{:x}{}\r\n{}\r\n", piece.size(), head_->chunk_extension, piece));
    bytes.remove_prefix(piece.size());
  }
}

/// Writes one event and hands it to the body in one piece.
void Composer::event(std::string_view data, const std::string& name) {
  const SseStyle& style = reply_.style;
  const std::string& event_name = name.empty() ? style.event_name : name;
  std::string text;
  if (!event_name.empty()) add_line(text, "event", event_name);
  if (!style.id.empty()) add_line(text, "id", style.id);
  if (!style.retry.empty()) add_line(text, "retry", style.retry);
  if (!style.comment.empty()) add_line(text, "", style.comment);
  for (const std::string_view line : split(data, '\n')) add_line(text, "data", line);
  add_line_end(text);
  body(text);
}

void Composer::add_line(std::string& text, std::string_view field, std::string_view value) {
  text += field;
  text += ':';
  text += reply_.style.after_colon;
  text += value;
  add_line_end(text);
}

void Composer::add_line_end(std::string& text) {
  constexpr std::array<std::string_view, 3> kEnds{"\n", "\r\n", "\r"};
  const SseStyle::LineEnd style = reply_.style.line_end;
  std::size_t which = static_cast<std::size_t>(style);
  if (style == SseStyle::LineEnd::kMixed) {
    which = line_ends_++ % kEnds.size();
    // A blank line that ends in \n right after a \r would read as one line end.
    if (which == 0 && text.ends_with('\r')) which = 2;
  }
  text += kEnds[which];
}

void Composer::tokens(const TokensStep& step) {
  const std::int64_t count =
      std::clamp<std::int64_t>(step.count.value_or(asked_.max_tokens), 0, kTokensMax);
  if (!asked_.stream) return whole_answer(step, count);
  if (asked_.chat) token_event("role", "assistant");
  wait(step.first);
  for (std::int64_t done = 0; done < count;) {
    const bool reasoning = done < step.reasoning;
    const std::int64_t left = (reasoning ? std::min(step.reasoning, count) : count) - done;
    const std::int64_t now = std::min(step.per_event, left);
    std::string text;
    for (std::int64_t i = 0; i < now; ++i) text += step.text;
    if (done > 0) wait(step.gap);
    token_event(reasoning ? "reasoning_content" : "content", text);
    done += now;
  }
  wait(0ns);
  finish_event(step.finish_reason);
  if (step.usage == TokensStep::Usage::kAlways ||
      (step.usage == TokensStep::Usage::kAsked && asked_.include_usage)) {
    JsonWriter json = chunk_start();
    json.end_array().key("usage").raw(usage_json(step, count)).end_object();
    event(json.text(), "");
  }
  event("[DONE]", "");
}

/// The answer to a request that asked for no stream.
void Composer::whole_answer(const TokensStep& step, std::int64_t count) {
  wait(step.first + step.gap * std::max<std::int64_t>(count - 1, 0));
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) text += step.text;
  JsonWriter json = chunk_start();
  json.begin_object().field("index", 0);
  if (asked_.chat) {
    json.key("message").begin_object().field("role", "assistant");
    json.field("content", std::string_view(text)).end_object();
  } else {
    json.field("text", std::string_view(text));
  }
  json.field("finish_reason", std::string_view(step.finish_reason)).end_object().end_array();
  json.key("usage").raw(usage_json(step, count)).end_object();
  HeadStep answer;
  answer.framing = BodyFraming::kLength;
  answer.content_type = "application/json";
  head(answer);
  body(json.text());
}

/// The start of a chunk, up to and with the opening of `choices`.
JsonWriter Composer::chunk_start() const {
  JsonWriter json;
  json.begin_object().field("id", asked_.chat ? "chatcmpl-1" : "cmpl-1");
  json.field("object", asked_.chat ? "chat.completion.chunk" : "text_completion");
  json.field("created", 1760000000).field("model", std::string_view(asked_.model));
  json.key("choices").begin_array();
  return json;
}

void Composer::token_event(std::string_view field, std::string_view text) {
  JsonWriter json = chunk_start();
  json.begin_object().field("index", 0);
  if (asked_.chat) {
    json.key("delta").begin_object().field(field, text);
    if (field == "role") json.field("content", "");
    json.end_object();
  } else {
    json.field("text", text);
  }
  json.key("finish_reason").null().end_object().end_array().end_object();
  event(json.text(), "");
}

void Composer::finish_event(std::string_view reason) {
  JsonWriter json = chunk_start();
  json.begin_object().field("index", 0);
  if (asked_.chat) {
    json.key("delta").begin_object().end_object();
  } else {
    json.field("text", "");
  }
  json.field("finish_reason", reason).end_object().end_array().end_object();
  event(json.text(), "");
}

std::string Composer::usage_json(const TokensStep& step, std::int64_t count) const {
  const std::int64_t prompt = static_cast<std::int64_t>(asked_.prompt.size() + 3) / 4;
  JsonWriter json;
  json.begin_object().field("prompt_tokens", prompt).field("completion_tokens", count);
  json.field("total_tokens", prompt + count);
  if (step.reasoning > 0) {
    json.key("completion_tokens_details").begin_object();
    json.field("reasoning_tokens", std::min(step.reasoning, count)).end_object();
  }
  return json.end_object().take();
}

void Composer::end(const EndStep& step) {
  if (!head_) head({});
  ended_ = true;
  if (head_->framing != BodyFraming::kChunked) return;
  std::string text = "0\r\n";
  for (const auto& [name, value] : step.trailers) text += fmt::format("{}: {}\r\n", name, value);
  put(text + "\r\n");
}

void Composer::settle_length() {
  for (Playback::Send& send : playback_.sends) {
    const std::size_t at = send.bytes.find(kLengthUnknown);
    if (at == std::string::npos) continue;
    send.bytes.replace(at, kLengthUnknown.size(), std::to_string(body_size_));
    return;
  }
}

}  // namespace

std::string Playback::wire() const {
  std::string all;
  for (const Send& send : sends) all += send.bytes;
  return all;
}

Playback compose(const Reply& reply, const AskedReply& asked) {
  return Composer(reply, asked).play();
}

namespace {

void add_text(std::string& to, std::string_view text) {
  if (!to.empty()) to += '\n';
  to += text;
}

/// A message's content: a text, or a list of parts with texts.
void add_content(std::string& to, const simdjson::dom::element& content) {
  std::string_view text;
  if (content.get(text) == simdjson::SUCCESS) return add_text(to, text);
  simdjson::dom::array parts;
  if (content.get(parts) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element part : parts) {
    if (part["text"].get(text) == simdjson::SUCCESS) add_text(to, text);
  }
}

}  // namespace

AskedReply read_asked_reply(std::string_view target, std::string_view body) {
  AskedReply asked;
  asked.chat = target.find("/chat/") != std::string_view::npos;
  asked.stream = false;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(simdjson::padded_string(body)).get(root) != simdjson::SUCCESS) return asked;
  std::int64_t number = 0;
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    if (root[key].get(number) == simdjson::SUCCESS) asked.max_tokens = number;
  }
  std::string_view text;
  if (root["model"].get(text) == simdjson::SUCCESS) asked.model = text;
  bool flag = false;
  if (root["stream"].get(flag) == simdjson::SUCCESS) asked.stream = flag;
  if (root["stream_options"]["include_usage"].get(flag) == simdjson::SUCCESS) {
    asked.include_usage = flag;
  }
  simdjson::dom::element content;
  if (root["prompt"].get(content) == simdjson::SUCCESS) add_content(asked.prompt, content);
  simdjson::dom::array messages;
  if (root["messages"].get(messages) == simdjson::SUCCESS) {
    for (const simdjson::dom::element message : messages) {
      if (message["content"].get(content) == simdjson::SUCCESS) add_content(asked.prompt, content);
    }
  }
  return asked;
}

}  // namespace assay
