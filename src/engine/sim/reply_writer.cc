#include "engine/sim/reply_writer.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/core/json_writer.h"
#include "base/core/text.h"
#include "engine/sim/emission.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/sim_text.h"

namespace assay {
namespace {

constexpr std::string_view kFailureText = "the simulated engine failed as asked";
constexpr std::string_view kFailureCode = "internal_error";
constexpr std::string_view kData = "data: ";
/// Room for an event's size in hexadecimal, in front of it.
constexpr std::string_view kChunkStart = "0000\r\n";

void patch_size(std::string& out, std::size_t at, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 4; i > 0; --i, size >>= 4U) out[at + i - 1] = kDigits[size & 15U];
}

std::string_view prefix_of(ServeDialect dialect) {
  return dialect == ServeDialect::kChat ? "chatcmpl-" : "cmpl-";
}

/// `"id": …, "object": …, "created": …, "model": …, ` in an open object.
std::string preamble(const ReplyWriter::Reply& reply, std::string_view object) {
  JsonWriter json;
  json.begin_object().field("id", fmt::format("{}{}", prefix_of(reply.dialect), reply.id));
  json.field("object", object).field("created", reply.created).field("model", reply.model);
  std::string text = json.end_object().take();
  text.back() = ',';
  return text;
}

}  // namespace

void ReplyWriter::begin(const Reply& reply) {
  dialect_ = reply.dialect;
  framing_ = reply.framing;
  usage_ = reply.usage;
  wire_ = reply.wire;
  line_end_ = has(kWireCrLf) ? "\r\n" : "\n";
  prompt_tokens_ = reply.prompt_tokens;
  request_id_ = reply.request_id;
  std::string start;
  switch (dialect_) {
    case ServeDialect::kChat:
      start = preamble(reply, "chat.completion.chunk") + R"("choices":[{"index":0,"delta":{)";
      text_key_ = R"("content":")";
      reasoning_key_ = R"("reasoning_content":")";
      text_end_ = R"("},"logprobs":null,"finish_reason":null}])";
      break;
    case ServeDialect::kCompletions:
      start = preamble(reply, "text_completion") + R"("choices":[{"index":0,)";
      text_key_ = reasoning_key_ = R"("text":")";
      text_end_ = R"(","logprobs":null,"finish_reason":null}])";
      break;
    case ServeDialect::kLlamaCpp:
      start = R"({"index":0,)";
      text_key_ = reasoning_key_ = R"("content":")";
      text_end_ = R"(","tokens":[],"stop":false,"id_slot":-1)";
      break;
  }
  prefix_ = std::string(kData) + start;
  choices_at_ = prefix_.find(R"("choices":)");
  // Where a usage event is to come, OpenAI's API has a null in those before.
  event_end_ = usage_ == Usage::kEnd && dialect_ != ServeDialect::kLlamaCpp
                   ? std::string_view(R"(,"usage":null})")
                   : std::string_view("}");
}

void ReplyWriter::head(std::string& out) const {
  out +=
      "HTTP/1.1 200 OK\r\nserver: assay-sim\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
      "cache-control: no-cache\r\nx-request-id: ";
  out += request_id_;
  out += framing_ == Framing::kChunked ? "\r\ntransfer-encoding: chunked\r\n\r\n"
                                       : "\r\nconnection: close\r\n\r\n";
}

/// Begins an event; close() wants what it returns.
std::size_t ReplyWriter::open(std::string& out) const {
  const std::size_t at = out.size();
  if (framing_ == Framing::kChunked) out += kChunkStart;
  if (has(kWireComments)) out.append(": keep-alive").append(line_end_).append(line_end_);
  return at;
}

void ReplyWriter::close(std::string& out, std::size_t opened) const {
  out.append(line_end_).append(line_end_);
  if (framing_ != Framing::kChunked) return;
  patch_size(out, opened, out.size() - opened - kChunkStart.size());
  out += "\r\n";
}

bool ReplyWriter::role(std::string& out) const {
  if (dialect_ != ServeDialect::kChat) return false;
  const std::size_t opened = open(out);
  out += prefix_;
  out += R"("role":"assistant","content":""},"logprobs":null,"finish_reason":null}])";
  out += event_end_;
  close(out, opened);
  return true;
}

std::size_t ReplyWriter::append_text(std::string& out, const Tokens& tokens) const {
  const std::size_t before = out.size();
  if (!has(kWireSplitUtf8)) {
    append_sim_tokens(out, tokens.stream, tokens.first, tokens.count);
    return out.size() - before;
  }
  // A character of two bytes in each token, or there would be none to tear.
  for (std::int64_t i = 0; i < tokens.count; ++i) {
    append_sim_tokens(out, tokens.stream, tokens.first + i, 1);
    out += "é";
  }
  return out.size() - before;
}

void ReplyWriter::append_counts(std::string& out, std::int64_t output) const {
  if (usage_ == Usage::kNone) return;
  if (dialect_ == ServeDialect::kLlamaCpp) {
    fmt::format_to(std::back_inserter(out), R"(,"tokens_predicted":{},"tokens_evaluated":{})",
                   output, prompt_tokens_);
  } else if (usage_ == Usage::kEach) {
    fmt::format_to(std::back_inserter(out),
                   R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}})",
                   prompt_tokens_, output, prompt_tokens_ + output);
  }
}

std::size_t ReplyWriter::tokens(std::string& out, const Tokens& tokens) const {
  const std::size_t opened = open(out);
  out += prefix_;
  out += tokens.reasoning ? reasoning_key_ : text_key_;
  const std::size_t bytes = append_text(out, tokens);
  out += text_end_;
  append_counts(out, tokens.first + tokens.count);
  out += event_end_;
  close(out, opened);
  return bytes;
}

void ReplyWriter::malformed(std::string& out) const {
  const std::size_t opened = open(out);
  out += prefix_;
  out += text_key_;
  close(out, opened);
}

std::string ReplyWriter::usage_json(const Counts& counts) const {
  JsonWriter json;
  json.begin_object().field("prompt_tokens", prompt_tokens_);
  json.field("completion_tokens", counts.output);
  json.field("total_tokens", prompt_tokens_ + counts.output);
  if (counts.reasoning > 0) {
    json.key("completion_tokens_details").begin_object();
    json.field("reasoning_tokens", counts.reasoning).end_object();
  }
  return json.end_object().take();
}

/// What the last event of llama.cpp's own dialect tells, and a whole reply as well.
void ReplyWriter::append_llama_end(std::string& out, const Counts& counts) const {
  out += R"(,"tokens":[],"stop":true,"id_slot":-1,"stop_type":")";
  out += counts.finish_reason == "length" ? "limit" : "eos";
  out += '"';
  append_counts(out, counts.output);
  if (usage_ != Usage::kNone) {
    fmt::format_to(std::back_inserter(out), R"(,"timings":{{"prompt_n":{},"predicted_n":{}}})",
                   prompt_tokens_, counts.output);
  }
  out += '}';
}

int ReplyWriter::finish(std::string& out, const Counts& counts) const {
  std::size_t opened = open(out);
  out += prefix_;
  if (dialect_ == ServeDialect::kLlamaCpp) {
    out += R"("content":"")";
    append_llama_end(out, counts);
    close(out, opened);
    return 1;
  }
  out += dialect_ == ServeDialect::kChat ? "}," : R"("text":"",)";
  fmt::format_to(std::back_inserter(out), R"("logprobs":null,"finish_reason":"{}"}}])",
                 counts.finish_reason);
  append_counts(out, counts.output);
  out += event_end_;
  close(out, opened);
  if (usage_ == Usage::kNone) return 1;
  opened = open(out);
  out.append(prefix_, 0, choices_at_).append(R"("choices":[],"usage":)");
  out.append(usage_json(counts)).append("}");
  close(out, opened);
  return 2;
}

void ReplyWriter::error(std::string& out, FaultKind kind) const {
  const std::size_t opened = open(out);
  if (kind == FaultKind::kErrorEvent) out.append("event: error").append(line_end_);
  if (kind == FaultKind::kErrorString) {
    fmt::format_to(std::back_inserter(out), R"(data: {{"error":"{}"}})", kFailureText);
  } else {
    out.append("data: ").append(serve_error_json(simulated_failure()));
  }
  close(out, opened);
}

bool ReplyWriter::done(std::string& out) const {
  if (dialect_ == ServeDialect::kLlamaCpp) return false;
  const std::size_t opened = open(out);
  out += "data: [DONE]";
  close(out, opened);
  return true;
}

void ReplyWriter::end(std::string& out) const {
  if (framing_ == Framing::kChunked) out += "0\r\n\r\n";
}

std::string ReplyWriter::whole(const Whole& reply) const {
  const Counts& counts = reply.counts;
  if (dialect_ == ServeDialect::kLlamaCpp) {
    std::string out = R"({"index":0,"content":)";
    append_json_string(out, reply.text);
    append_llama_end(out, counts);
    return out;
  }
  const bool chat = dialect_ == ServeDialect::kChat;
  std::string out(prefix_, kData.size(), choices_at_ - kData.size());
  if (chat) replace_all(out, "chat.completion.chunk", "chat.completion");
  JsonWriter choice;
  choice.begin_object().field("index", 0);
  if (chat) {
    choice.key("message").begin_object().field("role", "assistant").field("content", reply.text);
    if (!reply.reasoning.empty()) choice.field("reasoning_content", reply.reasoning);
    choice.end_object();
  } else {
    choice.field("text", reply.text);
  }
  choice.key("logprobs").null().key("finish_reason");
  if (counts.finish_reason.empty()) {
    choice.null();
  } else {
    choice.value(counts.finish_reason);
  }
  out.append(R"("choices":[)").append(choice.end_object().take()).append("]");
  if (usage_ != Usage::kNone) out.append(R"(,"usage":)").append(usage_json(counts));
  return out.append("}");
}

ServeError simulated_failure() {
  return {.status = 500,
          .message = std::string(kFailureText),
          .type = "server_error",
          .code = std::string(kFailureCode)};
}

}  // namespace assay
