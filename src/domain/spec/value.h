// Strict readers of single values, each the inverse of the show_ function beside it. A reader gets
// text from a flag, a spec file or a ledger and gives a value or says what is wrong and how to mend
// it; the caller adds the place. Durations need a unit, numbers must be finite and inside stated
// bounds, and no message repeats text that may hold a secret.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/spec/spec.h"

namespace assay {

struct Wrong {
  std::string what;  // continues "<place>: ", no full stop
  std::string hint;
};
template <typename T>
using Parsed = std::expected<T, Wrong>;
using Header = std::pair<std::string, std::string>;

/// Longest duration that any key takes. Up to here text and nanoseconds convert exactly.
inline constexpr Duration kDurationMax = 600h;
inline constexpr std::int64_t kTokensMax = 10'000'000;

Parsed<std::int64_t> read_count(std::string_view text, std::int64_t least, std::int64_t most);
Parsed<std::uint64_t> read_seed(std::string_view text);
/// Requests per second: finite and above 0.
Parsed<double> read_rate(std::string_view text);
Parsed<bool> read_switch(std::string_view text);
enum class Zero { kAllowed, kRefused };
Parsed<Duration> read_duration(std::string_view text, Zero zero);
/// "5s" or "20"; "0" is none. `noun` says what is counted: "requests".
Parsed<Extent> read_extent(std::string_view text, std::string_view noun);
std::string show_extent(const Extent& extent);
/// "512", "uniform:1,2048", "lognormal:512,0.5".
Parsed<LengthSpec> read_length(std::string_view text);
std::string show_length(const LengthSpec& length);
/// "ttft=350ms@99%"; the share is 99 % where left out.
Parsed<SloItem> read_slo(std::string_view text);
/// The part after '=': "350ms@99%".
std::string show_slo_limit(const SloItem& item);
/// "Name: value", by RFC 9110's rules for field names and values.
Parsed<Header> read_header(std::string_view text);
/// A JSON object in its shortest form; "{}" gives the empty text.
Parsed<std::string> read_body(std::string_view text);
/// One of `known`. A member of `later` is refused as not yet there, anything else with a guess.
Parsed<std::string> read_choice(std::string_view text, const std::vector<std::string_view>& known,
                                const std::vector<std::string_view>& later);

/// The text in quotes, clipped and with control characters escaped: fit for a message.
std::string quoted(std::string_view text);
/// "a, b and c".
std::string joined(const std::vector<std::string_view>& words);

}  // namespace assay
