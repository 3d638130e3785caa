// Whatever a server calls an event, the decoder neither crashes nor hands out a byte that it does
// not own, and an event that it calls malformed says nothing. The first byte chooses the type.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/target/event.h"
#include "engine/target/openai.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

/// Reads every byte that the event points to: the sanitizer knows whose it is.
std::string everything(const assay::TokenEvent& event) {
  std::string all;
  for (const std::string_view view :
       {event.text, event.reasoning, event.finish_reason, event.error_code, event.error_text}) {
    all.append(view).append("\1");
  }
  all += std::to_string(event.tool_bytes) + (event.end ? "e" : "") + (event.error ? "E" : "");
  all += std::to_string(event.tokens.value_or(0)) + std::to_string(event.choices_finished);
  return all + std::to_string(event.usage.output.value_or(-1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static assay::OpenAiDecoder used;  // what went before must not matter
  const std::string_view json(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string_view type = data[0] % 2 == 0 ? "" : "error";
  std::string wire(json);
  wire.append(64, ' ');
  const std::string_view padded = std::string_view(wire).substr(0, json.size());

  const assay::TokenEvent event = used.decode(type, padded);
  check(!event.malformed || !(event.has_output() || event.error || event.end || event.usage.any()));
  check(!event.usage.prompt || *event.usage.prompt >= 0);
  check(event.tool == (event.tool_bytes > 0));
  const std::string told = everything(event);
  assay::OpenAiDecoder fresh;
  check(everything(fresh.decode(type, padded)) == told);

  const assay::TokenEvent body = used.decode_error_body(json);
  check(body.error);
  everything(body);
  return 0;
}
