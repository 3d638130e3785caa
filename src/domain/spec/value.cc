#include "domain/spec/value.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "base/core/text.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

using Failed = std::unexpected<Wrong>;

Failed wrong(std::string what, std::string hint = {}) {
  return Failed(Wrong{std::move(what), std::move(hint)});
}

constexpr std::array kSloMetrics{SloMetric::kTtft, SloMetric::kTtfo,        SloMetric::kTpot,
                                 SloMetric::kItl,  SloMetric::kIcl,         SloMetric::kWorstGap,
                                 SloMetric::kE2e,  SloMetric::kServiceTtft, SloMetric::kServiceE2e};

bool is_token_char(char c) {
  const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alnum || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool is_length_count(double value) {
  return value >= 1 && value <= static_cast<double>(kTokensMax) && value == std::floor(value);
}

struct Pair {
  double first = 0, second = 0;
};

std::optional<Pair> read_pair(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != 2) return std::nullopt;
  const std::optional<double> first = parse_number(parts[0]);
  const std::optional<double> second = parse_number(parts[1]);
  if (!first || !second) return std::nullopt;
  return Pair{*first, *second};
}

Parsed<LengthSpec> read_uniform(std::string_view arguments) {
  const std::optional<Pair> pair = read_pair(arguments);
  if (!pair || !is_length_count(pair->first) || !is_length_count(pair->second) ||
      pair->first > pair->second) {
    return wrong(fmt::format("uniform needs the least and the greatest length as whole tokens "
                             "from 1 to {}, the least first, not {}",
                             kTokensMax, quoted(arguments)),
                 "for example uniform:1,2048");
  }
  return LengthSpec{LengthSpec::Kind::kUniform, pair->first, pair->second};
}

Parsed<LengthSpec> read_lognormal(std::string_view arguments) {
  const std::optional<Pair> pair = read_pair(arguments);
  constexpr double kSigmaMax = 5;
  if (!pair || !(pair->first >= 1 && pair->first <= static_cast<double>(kTokensMax)) ||
      !(pair->second >= 0 && pair->second <= kSigmaMax)) {
    return wrong(fmt::format("lognormal needs the median in tokens (1 to {}) and the sigma of the "
                             "log (0 to {}), not {}",
                             kTokensMax, kSigmaMax, quoted(arguments)),
                 "for example lognormal:512,0.5");
  }
  return LengthSpec{LengthSpec::Kind::kLogNormal, pair->first, pair->second};
}

Parsed<double> read_attainment(std::string_view text) {
  const std::optional<double> percent =
      text.ends_with('%') ? parse_number(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!percent || !(*percent > 0 && *percent <= 100)) {
    return wrong(
        fmt::format("the share {} must be a percentage above 0 and up to 100", quoted(text)),
        "for example ttft=350ms@99%");
  }
  return *percent / 100;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out = "'";
  while (!text.empty() && out.size() < kShown) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0 || is_control(text.front())) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + (text.empty() ? "'" : "…'");
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " and " : ", ";
    out += words[i];
  }
  return out;
}

Parsed<std::int64_t> read_count(std::string_view text, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value || *value < least || *value > most) {
    return wrong(
        fmt::format("must be a whole number from {} to {}, not {}", least, most, quoted(text)));
  }
  return *value;
}

Parsed<std::uint64_t> read_seed(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, value);
  if (text.empty() || ec != std::errc() || rest != end) {
    return wrong(fmt::format("must be a whole number from 0 to {}, not {}",
                             std::numeric_limits<std::uint64_t>::max(), quoted(text)));
  }
  return value;
}

Parsed<double> read_rate(std::string_view text) {
  constexpr double kRateMax = 1e7;
  constexpr double kRateMin = 1e-9;  // one request in thirty years
  const std::optional<double> value = parse_number(text);
  if (!value || !(*value >= kRateMin && *value <= kRateMax)) {
    return wrong(
        fmt::format("must be a number above 0 and up to {}, not {}", kRateMax, quoted(text)),
        "requests per second, for example 20");
  }
  return *value;
}

Parsed<bool> read_switch(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return wrong(fmt::format("must be true or false, not {}", quoted(text)));
}

Parsed<Duration> read_duration(std::string_view text, Zero zero) {
  const std::optional<Duration> value = parse_duration(text);
  if (!value) {
    if (parse_number(text) && !text.starts_with('-')) {
      return wrong(fmt::format("the duration {} needs a unit", quoted(text)),
                   fmt::format("us, ms, s, m or h: for example {}s", text));
    }
    return wrong(fmt::format("{} is not a duration", quoted(text)),
                 "a number with us, ms, s, m or h, for example 250ms or 1.5s");
  }
  if (*value == Duration(0) && zero == Zero::kRefused) return wrong("must be above 0");
  if (*value > kDurationMax) {
    return wrong(fmt::format("{} is longer than the {} that this version takes", quoted(text),
                             format_duration(kDurationMax)));
  }
  return *value;
}

Parsed<Extent> read_extent(std::string_view text, std::string_view noun) {
  if (text == "0") return Extent{};
  if (const std::optional<std::int64_t> count = parse_int(text)) {
    constexpr std::int64_t kCountMax = 1'000'000'000'000;
    if (*count < 0 || *count > kCountMax) {
      return wrong(fmt::format("must be from 0 to {} {}, not {}", kCountMax, noun, quoted(text)));
    }
    return Extent{std::nullopt, count};
  }
  const Parsed<Duration> time = read_duration(text, Zero::kAllowed);
  if (!time) {
    return wrong(fmt::format("{} is neither a duration nor a number of {}", quoted(text), noun),
                 "for example 5s, or 20, or 0 for none");
  }
  if (*time == Duration(0)) return Extent{};
  return Extent{*time, std::nullopt};
}

std::string show_extent(const Extent& extent) {
  if (extent.time) return format_duration(*extent.time);
  return fmt::format("{}", extent.requests.value_or(0));
}

Parsed<LengthSpec> read_length(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view arguments = text.substr(colon + 1);
    if (kind == "uniform") return read_uniform(arguments);
    if (kind == "lognormal") return read_lognormal(arguments);
    const Parsed<std::string> known = read_choice(kind, {"uniform", "lognormal"}, {"file"});
    return Failed(known.error());
  }
  const std::optional<std::int64_t> tokens = parse_int(text);
  if (!tokens || *tokens < 1 || *tokens > kTokensMax) {
    return wrong(fmt::format("{} is not a length from 1 to {} tokens", quoted(text), kTokensMax),
                 "for example 512, uniform:1,2048 or lognormal:512,0.5");
  }
  return LengthSpec{LengthSpec::Kind::kFixed, static_cast<double>(*tokens), 0};
}

std::string show_length(const LengthSpec& length) {
  switch (length.kind) {
    case LengthSpec::Kind::kFixed:
      return fmt::format("{}", static_cast<std::int64_t>(length.a));
    case LengthSpec::Kind::kUniform:
      return fmt::format("uniform:{},{}", length.a, length.b);
    case LengthSpec::Kind::kLogNormal:
      return fmt::format("lognormal:{},{}", length.a, length.b);
  }
  CHECK(false, "unknown kind of length {}", static_cast<int>(length.kind));
}

Parsed<SloItem> read_slo(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return wrong(fmt::format("{} is not an SLO", quoted(text)),
                 "metric=limit@share, for example ttft=350ms@99%");
  }
  std::vector<std::string_view> names;
  names.reserve(kSloMetrics.size());
  for (const SloMetric metric : kSloMetrics) names.push_back(slo_metric_name(metric));
  const Parsed<std::string> name = read_choice(trim(text.substr(0, equals)), names, {});
  if (!name) return Failed(name.error());
  SloItem item;
  item.metric =
      kSloMetrics[static_cast<std::size_t>(std::ranges::find(names, *name) - names.begin())];
  const std::string_view rest = trim(text.substr(equals + 1));
  const std::size_t at = rest.find('@');
  const Parsed<Duration> limit = read_duration(rest.substr(0, at), Zero::kRefused);
  if (!limit) {
    return wrong(fmt::format("the limit of {}: {}", *name, limit.error().what), limit.error().hint);
  }
  item.limit = *limit;
  if (at != std::string_view::npos) {
    const Parsed<double> share = read_attainment(rest.substr(at + 1));
    if (!share) return Failed(share.error());
    item.attainment = *share;
  }
  return item;
}

std::string show_slo_limit(const SloItem& item) {
  // 100·(p/100) may miss p by one unit in the last place; a neighbour then reads back exactly.
  const double near = item.attainment * 100;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double percent : {near, std::nextafter(near, 0.0), std::nextafter(near, kInfinity)}) {
    if (percent / 100 != item.attainment) continue;
    const std::string brief = fmt::format("{:.15g}", percent);
    const bool exact = parse_number(brief).value_or(0) / 100 == item.attainment;
    return fmt::format("{}@{}%", format_duration(item.limit),
                       exact ? brief : fmt::format("{}", percent));
  }
  return fmt::format("{}@{}%", format_duration(item.limit), near);
}

Parsed<Header> read_header(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = trim(text.substr(0, colon));
  if (colon == std::string_view::npos || name.empty()) {
    return wrong("is not a header", "name and value with a colon between: 'X-Team: perf'");
  }
  if (!std::ranges::all_of(name, is_token_char)) {
    return wrong(fmt::format("the header name {} has a character that HTTP does not allow in one",
                             quoted(name)),
                 "letters, digits and hyphens");
  }
  for (const std::string_view own :
       {"host", "user-agent", "content-type", "content-length", "accept", "accept-encoding",
        "connection", "transfer-encoding", "x-request-id"}) {
    if (equal_ignoring_case(name, own)) {
      return wrong(fmt::format("the header {} is set by assay itself", own), "leave it out");
    }
  }
  std::string_view value = text.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (std::ranges::any_of(value, [](char c) { return is_control(c) && c != '\t'; })) {
    return wrong(fmt::format("the value of header {} has a line break or control character", name),
                 "one line of plain text");
  }
  return Header{std::string(name), std::string(value)};
}

Parsed<std::string> read_body(std::string_view text) {
  simdjson::dom::parser parser(1 << 20);
  simdjson::dom::element root;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(root)) {
    return wrong(fmt::format("is not JSON: {}", simdjson::error_message(error)),
                 "one object, for example '{\"temperature\": 0.7}'");
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return wrong("must be a JSON object", "for example '{\"temperature\": 0.7}'");
  }
  struct Owned {
    std::string_view field, instead;
  };
  for (const Owned& owned :
       {Owned{"stream", "--no-stream turns streaming off"}, Owned{"model", "use --model"},
        Owned{"messages", "use --prompt or --input"}, Owned{"prompt", "use --prompt or --input"}}) {
    if (object.at_key(owned.field).error() == simdjson::SUCCESS) {
      return wrong(fmt::format("the field \"{}\" is set by assay itself", owned.field),
                   std::string(owned.instead));
    }
  }
  if (object.size() == 0) return std::string();
  // Printed from the parsed values: one value has one text, and reading it again changes nothing.
  return std::string(simdjson::minify(root));
}

Parsed<std::string> read_choice(std::string_view text, const std::vector<std::string_view>& known,
                                const std::vector<std::string_view>& later) {
  if (std::ranges::find(known, text) != known.end()) return std::string(text);
  const std::string list = "this version knows " + joined(known);
  if (std::ranges::find(later, text) != later.end()) {
    return wrong(fmt::format("{} comes with a later version", quoted(text)), list);
  }
  const std::optional<std::string_view> near = nearest_word(text, known);
  return wrong(fmt::format("{} is unknown{}", quoted(text),
                           near ? fmt::format(", did you mean {}?", *near) : std::string()),
               list);
}

}  // namespace assay
