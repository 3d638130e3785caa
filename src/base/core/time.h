// Time as assay sees it. Instant and Duration are monotonic nanoseconds; durations are never taken
// from a wall clock. WallTime exists once per run, for people. Clocks is the one door to the
// kernel's clocks: a test double steps `real` to show that a step of the wall clock changes no
// latency.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// Nanoseconds since 1970 on the wall clock.
struct WallTime {
  std::int64_t ns = 0;
};

using namespace std::chrono_literals;

constexpr double to_ms(Duration d) { return static_cast<double>(d.count()) / 1e6; }
constexpr double to_us(Duration d) { return static_cast<double>(d.count()) / 1e3; }
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) / 1e9; }
/// Rounds to the nearest nanosecond.
Duration from_seconds(double seconds);

/// Reads CLOCK_MONOTONIC and CLOCK_REALTIME. The optional step models a wall clock that is set in
/// mid-run: every real-time value at or after `at_ns` (readings and kernel stamps alike) is moved
/// by `by_ns`.
class Clocks {
 public:
  struct Step {
    std::int64_t at_ns = 0;
    std::int64_t by_ns = 0;
  };

  Clocks() = default;
  explicit Clocks(Step step) : step_(step) {}
  /// The same clocks with a deliberate fault: whoever stamps a read tells it late by so much. The
  /// audit must notice.
  [[nodiscard]] Clocks with_late_stamps(Duration late) const {
    Clocks faulty = *this;
    faulty.late_stamps_ = late;
    return faulty;
  }

  [[nodiscard]] Instant now() const;
  /// Wall clock in nanoseconds.
  [[nodiscard]] WallTime real_now() const;
  /// What a kernel stamp reads on this wall clock: itself, unless a test steps the clock.
  [[nodiscard]] std::int64_t shown(std::int64_t real_ns) const {
    return step_ && real_ns >= step_->at_ns ? real_ns + step_->by_ns : real_ns;
  }
  [[nodiscard]] Duration late_stamps() const { return late_stamps_; }

 private:
  std::optional<Step> step_;
  Duration late_stamps_{0};
};

/// Parses "250ms", "1.5s", "2m", "1h", "10us", "100ns" and bare "0". Null for anything else,
/// negatives included.
std::optional<Duration> parse_duration(std::string_view text);
/// The shortest exact form that parse_duration reads back: "1.5s", "350ms", "0".
std::string format_duration(Duration d);
/// "2026-12-01T16:07:08Z".
std::string format_utc(WallTime t);

}  // namespace assay
