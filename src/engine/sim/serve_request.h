// What a client asks of the simulated engine: the JSON body of a generating request, read strictly.
// What an engine would refuse is refused here with a sentence that names the field, as the error
// object of OpenAI's API; fields that change nothing in a simulation (temperature, stop, …) are not
// looked at. A token of a prompt is what sim_text.h counts; a chat template adds none.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace assay {

enum class ServeDialect : std::uint8_t {
  kChat,         // /v1/chat/completions
  kCompletions,  // /v1/completions
  kLlamaCpp,     // /completion, llama.cpp's own
};

/// Output tokens where the request does not say.
inline constexpr std::int64_t kServeTokensDefault = 16;
/// Prompt and output together, of one request.
inline constexpr std::int64_t kServeTokensMax = 1'048'576;

struct ServeRequest {
  ServeDialect dialect = ServeDialect::kChat;
  std::string model;  // as the request names it; may be empty
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = kServeTokensDefault;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool usage_in_each = false;  // stream_options.continuous_usage_stats
};

struct ServeError {
  int status = 400;
  std::string message{};  // a sentence
  std::string param{};    // the field; empty: the request as a whole
  std::string type = "invalid_request_error";
  std::string code{};  // empty: null
};

std::expected<ServeRequest, ServeError> read_serve_request(ServeDialect dialect,
                                                           std::string_view body);

/// The text of a /tokenize request: vLLM's `prompt` or `messages`, or llama.cpp's `content`.
struct TokenizeRequest {
  bool llama_cpp = false;
  std::string text;
};
std::expected<TokenizeRequest, ServeError> read_tokenize_request(std::string_view body);

/// {"error": {"message": …, "type": …, "param": …, "code": …}}
std::string serve_error_json(const ServeError& error);

}  // namespace assay
