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

/// Reads one number at `at` and moves `at` behind it; false when it doesn't end before `end`.
/// Pointers rather than views: a report walks millions of chunks, several times.
bool take_varint(const char*& at, const char* end, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
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
  constexpr std::uint64_t kCountMax = std::numeric_limits<std::uint32_t>::max();
  const char* at = rest_.data();
  const char* const end = at + rest_.size();
  std::uint64_t delta = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tokens = 0;
  if (!take_varint(at, end, delta) || !take_varint(at, end, bytes) ||
      !take_varint(at, end, tokens) || at == end || bytes > kCountMax || tokens > kCountMax) {
    damaged_ = true;
    return std::nullopt;
  }
  // Unsigned addition: a damaged blob may overflow, and must not be undefined behaviour.
  previous_ = RunTime(static_cast<std::int64_t>(static_cast<std::uint64_t>(previous_.count()) +
                                                static_cast<std::uint64_t>(unzigzag(delta))));
  const auto flags = static_cast<std::uint8_t>(*at++);
  rest_ = std::string_view(at, static_cast<std::size_t>(end - at));
  return Chunk{.at = previous_,
               .bytes = static_cast<std::uint32_t>(bytes),
               .tokens = static_cast<std::uint32_t>(tokens),
               .flags = flags};
}

}  // namespace assay
