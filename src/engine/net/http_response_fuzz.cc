// However the bytes are torn, the same response comes out: the first byte of the input chooses the
// cut, and whether the peer closes at the end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/net/http_response.h"

namespace {

class Digest final : public assay::HttpResponseSink {
 public:
  void on_head(const assay::HttpHead& head) override {
    check_open();
    told += std::to_string(head.status);
    told.append("\1").append(head.content_type).append("\1").append(head.server);
    told.append("\1").append(head.location).append("\1");
  }
  void on_body(std::string_view bytes) override {
    check_open();
    told += bytes;
  }
  void on_message_end() override {
    check_open();
    ended_ = true;
  }
  std::string told;

 private:
  void check_open() const {
    if (ended_) std::abort();
  }
  bool ended_ = false;
};

enum class Peer { kStays, kCloses };

std::string digest(std::string_view wire, std::size_t step, Peer peer) {
  assay::HttpResponseDecoder decoder;
  Digest sink;
  bool ok = true;
  for (std::size_t at = 0; at < wire.size() && ok; at += step) {
    // A copy of its own, so that reading past the piece is caught.
    const std::string piece(wire.substr(at, step));
    ok = decoder.feed(piece, sink);
  }
  if (ok && peer == Peer::kCloses && decoder.finish(sink) != decoder.complete()) std::abort();
  if (!ok && decoder.error().empty()) std::abort();
  if (!ok && decoder.keep_alive()) std::abort();
  return sink.told + '\2' + decoder.error() + (decoder.complete() ? 'c' : '-') +
         (decoder.keep_alive() ? 'k' : '-');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view wire(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t step = std::size_t{data[0]} / 2 + 1;
  const Peer peer = data[0] % 2 == 1 ? Peer::kCloses : Peer::kStays;
  if (digest(wire, step, peer) != digest(wire, wire.size(), peer)) std::abort();
  return 0;
}
