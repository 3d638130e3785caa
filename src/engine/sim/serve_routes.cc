#include "engine/sim/serve_routes.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <expected>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/json_writer.h"
#include "base/core/random.h"
#include "engine/sim/http_request.h"
#include "engine/sim/serve_metrics.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/sim_text.h"

namespace assay {
namespace {

enum class Page : std::uint8_t {
  kChat,
  kCompletions,
  kLlamaCpp,
  kModels,
  kHealth,
  kTokens,
  kMetrics
};

struct PageRow {
  std::string_view path, method;
  Page page;
};
constexpr std::array kPages = std::to_array<PageRow>({
    {"/v1/chat/completions", "POST", Page::kChat},
    {"/v1/completions", "POST", Page::kCompletions},
    {"/completion", "POST", Page::kLlamaCpp},
    {"/v1/models", "GET", Page::kModels},
    {"/health", "GET", Page::kHealth},
    {"/tokenize", "POST", Page::kTokens},
    {"/metrics", "GET", Page::kMetrics},
});

PlainReply detail_reply(int status, std::string_view detail) {
  JsonWriter json;
  json.begin_object().field("detail", detail).end_object();
  return {.status = status, .body = json.take()};
}

PlainReply models_reply(std::string_view model) {
  JsonWriter json;
  json.begin_object().field("object", "list").key("data").begin_array().begin_object();
  json.field("id", model).field("object", "model").field("created", 0);
  json.field("owned_by", "assay").field("max_model_len", kServeTokensMax);
  json.end_object().end_array().end_object();
  return {.body = json.take()};
}

/// A number per token, the same for the same text.
std::int64_t token_id(std::string_view token) {
  constexpr std::uint64_t kVocabulary = 50'000;
  return static_cast<std::int64_t>(hash64(token) % kVocabulary);
}

PlainReply tokens_reply(std::string_view body) {
  const std::expected<TokenizeRequest, ServeError> request = read_tokenize_request(body);
  if (!request) return error_reply(request.error());
  std::int64_t count = 0;
  JsonWriter tokens;
  tokens.begin_array();
  for (std::string_view rest = request->text;;) {
    const std::string_view token = next_sim_token(rest);
    if (token.empty()) break;
    tokens.value(token_id(token));
    ++count;
  }
  tokens.end_array();
  JsonWriter json;
  json.begin_object();
  if (!request->llama_cpp) json.field("count", count).field("max_model_len", kServeTokensMax);
  json.key("tokens").raw(tokens.text()).end_object();
  return {.body = json.take()};
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

Route open_page(Page page, const HttpRequest& request, const RouteContext& context) {
  switch (page) {
    case Page::kChat:
      return {ServeDialect::kChat, {}};
    case Page::kCompletions:
      return {ServeDialect::kCompletions, {}};
    case Page::kLlamaCpp:
      return {ServeDialect::kLlamaCpp, {}};
    case Page::kModels:
      return {{}, models_reply(context.model)};
    case Page::kHealth:
      return {{}, {.body = R"({"status":"ok"})"}};
    case Page::kTokens:
      return {{}, tokens_reply(request.body)};
    case Page::kMetrics:
      return {{},
              {
                  .body = metrics_text(context.metrics, context.model),
                  .content_type = "text/plain; version=0.0.4; charset=utf-8",
              }};
  }
  return {};
}

}  // namespace

Route route(const HttpRequest& request, const RouteContext& context) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  for (const PageRow& row : kPages) {
    if (row.path != path) continue;
    if (row.method == request.method) return open_page(row.page, request, context);
    PlainReply reply = detail_reply(405, "Method Not Allowed");
    reply.headers = fmt::format("allow: {}\r\n", row.method);
    return {{}, std::move(reply)};
  }
  return {{}, detail_reply(404, "Not Found")};
}

PlainReply error_reply(const ServeError& error) {
  return {.status = error.status, .body = serve_error_json(error)};
}

PlainReply unreadable_reply(int status) {
  ServeError error{.status = status};
  switch (status) {
    case 413:
      error.message = fmt::format("the body is larger than {} bytes", HttpRequestReader::kBodyMax);
      break;
    case 431:
      error.message =
          fmt::format("the request's head is larger than {} bytes", HttpRequestReader::kHeadMax);
      break;
    case 501:
      error.message = "the only transfer coding that is understood is chunked";
      break;
    default:
      error.message = "this is not an HTTP/1.1 request";
  }
  return error_reply(error);
}

void append_http(std::string& out, const PlainReply& reply, const PlainFraming& framing) {
  fmt::format_to(std::back_inserter(out),
                 "HTTP/1.1 {} {}\r\nserver: assay-sim\r\ncontent-type: {}\r\n"
                 "content-length: {}\r\n{}",
                 reply.status, reason_phrase(reply.status), reply.content_type, reply.body.size(),
                 reply.headers);
  if (!framing.request_id.empty()) {
    fmt::format_to(std::back_inserter(out), "x-request-id: {}\r\n", framing.request_id);
  }
  if (!framing.keep_alive) out += "connection: close\r\n";
  out.append("\r\n").append(reply.body);
}

}  // namespace assay
