// However the bytes are torn, the same requests come out: the first byte of the input chooses the
// cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "engine/sim/http_request.h"

namespace {

std::string digest(std::string_view wire, std::size_t step) {
  assay::HttpRequestReader reader;
  std::string out;
  for (std::size_t at = 0; at < wire.size(); at += step) {
    reader.feed(wire.substr(at, step));
    while (const std::optional<assay::HttpRequest> request = reader.next()) {
      out += request->method + '\1' + request->target + '\1' + request->body + '\2';
    }
  }
  return out + std::to_string(reader.refused());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view wire(reinterpret_cast<const char*>(data + 1), size - 1);
  if (digest(wire, std::size_t{data[0]} + 1) != digest(wire, wire.size())) std::abort();
  return 0;
}
