#include "engine/target/open.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/spec/redact.h"
#include "domain/spec/spec.h"
#include "domain/spec/url.h"
#include "engine/net/address.h"
#include "engine/net/http_exchange.h"
#include "engine/target/http_target.h"
#include "engine/target/null_target.h"
#include "engine/target/openai.h"

namespace assay {
namespace {

constexpr Duration kModelWithin = 5s;

Result<TargetUrl> parse_target_url(const TargetSpec& spec) {
  if (spec.urls.empty()) {
    return usage_error("no URL given", "URL", "name the server, as in http://127.0.0.1:8000");
  }
  const auto url = read_url(spec.urls.front());
  if (!url) return usage_error(url.error().what, spec.urls.front(), url.error().hint);
  return *url;
}

Result<std::vector<Address>> addresses_of(const TargetUrl& url) {
  if (url.socket_path.empty()) return resolve(url.host, url.port);
  return std::vector<Address>{TRY(unix_address(url.socket_path))};
}

std::string host_header(const TargetUrl& url) {
  if (!url.socket_path.empty()) return "localhost";
  const std::string host =
      url.host.find(':') == std::string::npos ? url.host : fmt::format("[{}]", url.host);
  return url.port == 80 ? host : fmt::format("{}:{}", host, url.port);
}

using Headers = std::vector<std::pair<std::string, std::string>>;

Headers headers_of(const TargetSpec& spec, const std::string& api_key) {
  Headers headers = spec.headers;
  bool authorized = api_key.empty();
  for (const auto& [name, value] : headers) {
    authorized = authorized || equal_ignoring_case(name, "authorization");
  }
  if (!authorized) headers.emplace_back("authorization", "Bearer " + api_key);
  return headers;
}

std::vector<std::string> secrets_of(const Headers& headers, const std::string& body,
                                    const std::string& api_key) {
  // Shorter values of a body are words that any reply may hold: "tokenizer": "auto".
  constexpr std::size_t kLeastOfBody = 8;
  std::vector<std::string> secrets = secrets_in_json(body);
  std::erase_if(secrets, [](const std::string& s) { return s.size() < kLeastOfBody; });
  if (!api_key.empty()) secrets.push_back(api_key);
  for (const auto& [name, value] : headers) {
    if (value.empty() || redacted_header(name, value) == value) continue;
    // Of "Bearer KEY" the key: a server may send it back alone.
    const std::string_view bare = trim(value);
    const std::size_t blank = bare.find_last_of(' ');
    secrets.emplace_back(blank == std::string_view::npos ? bare : bare.substr(blank + 1));
  }
  return secrets;
}

Result<std::string> ask_model(const TargetUrl& url, const std::vector<Address>& addresses,
                              const Headers& headers) {
  const std::string path = url.prefix + "/v1/models";
  std::string request = fmt::format("GET {} HTTP/1.1\r\nhost: {}\r\naccept: application/json\r\n",
                                    path, host_header(url));
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "connection: close\r\n\r\n";
  const HttpReply reply = TRY(http_exchange(addresses, request, kModelWithin));
  const std::string where = show_url(url) + "/v1/models";
  if (reply.status == 401 || reply.status == 403) {
    return usage_error(fmt::format("the server refuses with status {}", reply.status), where,
                       "give a key by OPENAI_API_KEY, --api-key-env or --api-key-file");
  }
  if (reply.status != 200) {
    return usage_error(fmt::format("the server lists no models (status {})", reply.status), where,
                       "name the model with --model");
  }
  return first_model(reply.body, where);
}

}  // namespace

Result<std::string> first_model(const std::string& body, const std::string& url) {
  simdjson::dom::parser parser;
  std::string_view id;
  if (parser.parse(body)["data"].at(0)["id"].get(id) != simdjson::SUCCESS || id.empty()) {
    return usage_error("the reply names no model", url, "name the model with --model");
  }
  return std::string(id);
}

Result<OpenedTarget> open_target(const Spec& whole, const std::string& api_key) {
  const TargetSpec& spec = whole.target;
  OpenedTarget opened;
  if (spec.api == Api::kNull) {
    opened.target = std::make_unique<NullTarget>();
    opened.model = "null";
    return opened;
  }
  const TargetUrl url = TRY(parse_target_url(spec));
  HttpTargetOptions options;
  options.addresses = TRY(addresses_of(url));
  options.host = host_header(url);
  options.headers = headers_of(spec, api_key);
  opened.secrets = secrets_of(options.headers, spec.body, api_key);
  opened.addresses = options.addresses.size();
  opened.model =
      spec.model == "auto" ? TRY(ask_model(url, options.addresses, options.headers)) : spec.model;
  const bool chat = spec.api == Api::kOpenAiChat;
  options.path = url.prefix + (chat ? "/v1/chat/completions" : "/v1/completions");
  options.request = {.chat = chat,
                     .stream = spec.stream,
                     .exact_output = whole.workload.exact_output,
                     .model = opened.model,
                     .body = spec.body};
  opened.target = TRY(HttpTarget::create(std::move(options)));
  return opened;
}

}  // namespace assay
