#include "base/core/time.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace assay {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
// Largest first: format_duration takes the first that divides evenly.
constexpr std::array<Unit, 6> kUnits{{{"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};

// Ten years is beyond any run, and far from overflow.
constexpr std::int64_t kLongestNs = 320'000'000'000'000'000;

/// A decimal number as digits · 10^-decimals, exactly: doubles lose nanoseconds after 104 days.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t scale = 1;  // 10^decimals
};

/// Takes "12", "1.5" or ".5" off the front of `text`. Decimals that can't matter to a nanosecond
/// are dropped.
std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr std::int64_t kScaleMax = 1'000'000'000'000'000'000;
  Decimal number;
  bool any = false;
  bool point = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    const bool full = number.digits > kLongestNs;
    if (full && !point) return std::nullopt;
    if (full || number.scale == kScaleMax) continue;
    number.digits = number.digits * 10 + (c - '0');
    if (point) number.scale *= 10;
  }
  if (!any) return std::nullopt;
  return number;
}

}  // namespace

Duration from_seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

Instant Clocks::now() const { return Instant(Duration(read_clock(CLOCK_MONOTONIC))); }

WallTime Clocks::real_now() const { return WallTime{shown(read_clock(CLOCK_REALTIME))}; }

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration(0);
  const auto number = take_decimal(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    __extension__ using Wide = __int128;
    const Wide scaled = static_cast<Wide>(number->digits) * unit.ns;
    const Wide ns = (scaled + number->scale / 2) / number->scale;
    if (ns > kLongestNs) return std::nullopt;
    return Duration(static_cast<std::int64_t>(ns));
  }
  return std::nullopt;
}

std::string format_duration(Duration d) {
  if (d.count() == 0) return "0";
  for (const Unit& unit : kUnits) {
    // Up to three decimals and only if exact: "1.5s" rather than "1500ms".
    const std::int64_t thousandth = unit.ns / 1000;
    if (thousandth == 0 || d.count() < unit.ns || d.count() % thousandth != 0) continue;
    std::string number =
        fmt::format("{}.{:03}", d.count() / unit.ns, d.count() % unit.ns / thousandth);
    number.erase(number.find_last_not_of('0') + 1);
    if (number.ends_with('.')) number.pop_back();
    return number.append(unit.name);
  }
  return fmt::format("{}ns", d.count());
}

std::string format_utc(WallTime t) {
  const std::time_t seconds = t.ns / 1'000'000'000;
  std::tm tm{};
  gmtime_r(&seconds, &tm);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

}  // namespace assay
