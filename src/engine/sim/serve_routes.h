// Which requests the simulated engine's server answers, and how it answers those that need no
// engine: models, health, tokenize, metrics, and everything that is wrong with a request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/core/time.h"
#include "engine/sim/http_request.h"
#include "engine/sim/serve_metrics.h"
#include "engine/sim/serve_request.h"

namespace assay {

/// A response that is known as a whole.
struct PlainReply {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::string headers{};  // further ones, each with its line end
};

struct RouteContext {
  std::string_view model;
  std::span<const ServeMetrics* const> metrics;
};

/// The dialect, where the request is for the engine; else the reply to give.
struct Route {
  std::optional<ServeDialect> generates;
  PlainReply reply;
};
Route route(const HttpRequest& request, const RouteContext& context);

PlainReply error_reply(const ServeError& error);
/// For bytes that are no request; `status` is the reader's.
PlainReply unreadable_reply(int status);

struct PlainFraming {
  std::string_view request_id;  // empty: not told
  bool keep_alive = true;
};
void append_http(std::string& out, const PlainReply& reply, const PlainFraming& framing);

}  // namespace assay
