#include "engine/sim/sim_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "domain/workload/words.h"
#include "engine/sim/emission.h"

namespace assay {

void append_sim_tokens(std::string& out, StreamId stream, std::int64_t first, std::int64_t count) {
  static_assert(kWordCount == 512, "the shift below keeps nine bits");
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::uint64_t place = stream * 1'000'003 + static_cast<std::uint64_t>(i);
    out += ' ';
    out += kWords[(place * 0x9e3779b97f4a7c15ULL) >> 55];
  }
}

std::string_view next_sim_token(std::string_view& rest) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  // Bytes of a character outside ASCII count as letters.
  const auto letter = [](char c) {
    return static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
           (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  std::size_t begin = 0;
  while (begin < rest.size() && blank(rest[begin])) ++begin;
  std::size_t end = begin;
  while (end < rest.size() && letter(rest[end])) ++end;
  if (end == begin && end < rest.size()) ++end;
  const std::string_view token = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return token;
}

std::int64_t count_sim_tokens(std::string_view text) {
  std::int64_t tokens = 0;
  while (!next_sim_token(text).empty()) ++tokens;
  return std::max<std::int64_t>(1, tokens);
}

}  // namespace assay
