// Whatever the body is, it is a request within its bounds or an error whose JSON can be read again.
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/sim/serve_request.h"

namespace {

void check_error(const assay::ServeError& error) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const std::string json = assay::serve_error_json(error);
  std::string_view message;
  if (parser.parse(json).get(root) != simdjson::SUCCESS ||
      root["error"]["message"].get(message) != simdjson::SUCCESS || message.empty()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto dialect : {assay::ServeDialect::kChat, assay::ServeDialect::kCompletions,
                             assay::ServeDialect::kLlamaCpp}) {
    const auto request = assay::read_serve_request(dialect, body);
    if (!request) {
      check_error(request.error());
    } else if (request->prompt_tokens < 1 || request->output_tokens < 1 ||
               request->prompt_tokens + request->output_tokens > assay::kServeTokensMax) {
      std::abort();
    }
  }
  const auto tokenize = assay::read_tokenize_request(body);
  if (!tokenize) check_error(tokenize.error());
  return 0;
}
