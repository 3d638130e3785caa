#include "domain/ledger/record.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/time.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, kOutcomeCount> kOutcomeNames{
    "ok",  "http_error", "stream_error", "truncated",         "empty",    "timeout", "connect",
    "tls", "reset",      "protocol",     "refused_by_client", "cancelled"};

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

std::optional<std::uint64_t> take_varint(std::string_view& in) {
  if (!in.empty() && static_cast<unsigned char>(in.front()) < 0x80) {  // most are one byte
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    return byte;
  }
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
std::int64_t unzigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  return kOutcomeNames.at(static_cast<std::size_t>(outcome));
}

std::optional<Outcome> outcome_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kOutcomeNames, name);
  if (found == kOutcomeNames.end()) return std::nullopt;
  return static_cast<Outcome>(std::distance(kOutcomeNames.begin(), found));
}

void ChunkWriter::append(const Chunk& chunk) {
  put_varint(blob_, zigzag((chunk.at - previous_).count()));
  put_varint(blob_, chunk.bytes);
  put_varint(blob_, chunk.tokens);
  blob_ += static_cast<char>(chunk.flags);
  previous_ = chunk.at;
  ++count_;
}

std::optional<Chunk> ChunkReader::next() {
  if (rest_.empty() || damaged_) return std::nullopt;
  const auto delta = take_varint(rest_);
  const auto bytes = take_varint(rest_);
  const auto tokens = take_varint(rest_);
  constexpr std::uint64_t kCountMax = std::numeric_limits<std::uint32_t>::max();
  if (!delta || !bytes || !tokens || *bytes > kCountMax || *tokens > kCountMax || rest_.empty()) {
    damaged_ = true;
    return std::nullopt;
  }
  Chunk chunk;
  // Unsigned addition: a damaged blob may overflow, and must not be undefined behaviour.
  chunk.at = RunTime(static_cast<std::int64_t>(static_cast<std::uint64_t>(previous_.count()) +
                                               static_cast<std::uint64_t>(unzigzag(*delta))));
  chunk.bytes = static_cast<std::uint32_t>(*bytes);
  chunk.tokens = static_cast<std::uint32_t>(*tokens);
  chunk.flags = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  previous_ = chunk.at;
  return chunk;
}

}  // namespace assay
