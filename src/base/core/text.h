// Small helpers on text that several rooms need: trimming, splitting, strict number parsing, UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

std::string_view trim(std::string_view text);
/// Splits at every `separator`; "a,,b" gives three parts.
std::vector<std::string_view> split(std::string_view text, char separator);
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// The whole text must be a decimal integer. No sign other than '-', no blanks.
std::optional<std::int64_t> parse_int(std::string_view text);
/// The whole text must be a finite decimal number: no "nan", no "inf", no overflow.
std::optional<double> parse_number(std::string_view text);

/// Length of the valid UTF-8 sequence that `text` begins with; 0 when it is not valid.
std::size_t utf8_sequence_length(std::string_view text);

/// Every occurrence of `from`, which must not be empty.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// `candidates`' member nearest to `word` by edit distance, if it is near enough to be a likely
/// typo.
std::optional<std::string_view> nearest_word(std::string_view word,
                                             const std::vector<std::string_view>& candidates);

}  // namespace assay
