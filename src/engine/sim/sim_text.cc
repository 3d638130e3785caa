#include "engine/sim/sim_text.h"

#include <algorithm>
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

std::int64_t count_sim_tokens(std::string_view text) {
  std::int64_t tokens = 0;
  bool in_word = false;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    // Bytes of a character outside ASCII count as letters.
    const bool letter =
        u >= 0x80 || (u >= '0' && u <= '9') || (u >= 'A' && u <= 'Z') || (u >= 'a' && u <= 'z');
    const bool blank = u == ' ' || (u >= '\t' && u <= '\r');
    if (letter ? !in_word : !blank) ++tokens;
    in_word = letter;
  }
  return std::max<std::int64_t>(1, tokens);
}

}  // namespace assay
