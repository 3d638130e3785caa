// The words of synthetic prompts: common English, each one token in the byte-pair vocabularies in
// wide use, with and without a blank before it (checked against that of SmolLM2).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace assay {

/// A power of two: a word is then a fixed number of random bits.
inline constexpr std::size_t kWordCount = 512;
extern const std::array<std::string_view, kWordCount> kWords;

}  // namespace assay
