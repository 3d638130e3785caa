// Three ways to the same events: the decoder fed whole, the decoder fed in steps (chosen by the
// first byte) and a plain reading of the WHATWG rules that looks at one line after the other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/net/sse.h"

namespace {

void write_event(std::string& out, std::string_view type, std::string_view data) {
  out.append(type).append("\1").append(std::to_string(data.size())).append("\1").append(data);
}

class Digest final : public assay::SseSink {
 public:
  void on_sse_event(std::string_view type, std::string_view data) override {
    for (std::size_t i = 0; i < assay::SseDecoder::kPadding; ++i) {
      const volatile char promised = data.data()[data.size() + i];
      static_cast<void>(promised);
    }
    write_event(told, type, data);
  }
  std::string told;
};

std::string decoded(std::string_view stream, std::size_t step) {
  assay::SseDecoder decoder;
  Digest sink;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    std::string piece(stream.substr(at, step));
    const std::size_t size = piece.size();
    piece.append(assay::SseDecoder::kPadding, '\0');
    if (!decoder.feed(std::string_view(piece).substr(0, size), sink)) std::abort();
  }
  return sink.told;
}

/// The next line without its end; false when the stream ends before the line does.
bool next_line(std::string_view& stream, std::string_view& line) {
  const std::size_t end = stream.find_first_of("\r\n");
  if (end == std::string_view::npos) return false;
  line = stream.substr(0, end);
  stream.remove_prefix(end + (stream.substr(end).starts_with("\r\n") ? 2 : 1));
  return true;
}

std::string by_the_rules(std::string_view stream) {
  if (stream.starts_with("\xef\xbb\xbf")) stream.remove_prefix(3);
  std::string out;
  std::string type;
  std::string data;
  std::string_view line;
  while (next_line(stream, line)) {
    if (line.empty()) {
      // Beyond the rules: an error counts without data too.
      if (!data.empty()) {
        write_event(out, type, std::string_view(data).substr(0, data.size() - 1));
      } else if (type == "error") {
        write_event(out, type, {});
      }
      type.clear();
      data.clear();
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "data") data.append(value).append("\n");
    if (name == "event") type = value;
    if (name == "error") {  // beyond the rules, see sse.cc
      type = name;
      data.append(value).append("\n");
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string expected = by_the_rules(stream);
  if (decoded(stream, stream.size()) != expected) std::abort();
  if (decoded(stream, std::size_t{data[0]} + 1) != expected) std::abort();
  return 0;
}
