#include "base/core/time.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace assay {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

struct Unit {
  std::string_view name;
  double ns;
};
// Largest first: format_duration takes the first that divides evenly.
constexpr std::array<Unit, 6> kUnits{
    {{"h", 3.6e12}, {"m", 6e10}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}};

}  // namespace

Duration from_seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

Instant Clocks::now() const { return Instant(Duration(read_clock(CLOCK_MONOTONIC))); }

WallTime Clocks::real_now() const { return WallTime{shown(read_clock(CLOCK_REALTIME))}; }

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration(0);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (ec != std::errc() || !(value >= 0)) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name) continue;
    const double ns = value * unit.ns;
    // Ten years is beyond any run, and far from overflow.
    if (ns > 3.2e17) return std::nullopt;
    return Duration(std::llround(ns));
  }
  return std::nullopt;
}

std::string format_duration(Duration d) {
  if (d.count() == 0) return "0";
  for (const Unit& unit : kUnits) {
    // Up to three decimals and only if exact: "1.5s" rather than "1500ms".
    const auto unit_ns = static_cast<std::int64_t>(unit.ns);
    const std::int64_t whole = d.count() / unit_ns;
    const std::int64_t rest = d.count() % unit_ns * 1000;
    if (whole < 1 || rest % unit_ns != 0) continue;
    std::string decimals = rest == 0 ? std::string() : fmt::format(".{:03}", rest / unit_ns);
    while (decimals.ends_with('0')) decimals.pop_back();
    return fmt::format("{}{}{}", whole, decimals, unit.name);
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
