#include "base/core/time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/random.h"

namespace assay {
namespace {

TEST(ParseDuration, Units) {
  EXPECT_EQ(parse_duration("100ns"), 100ns);
  EXPECT_EQ(parse_duration("10us"), 10us);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("2m"), 120s);
  EXPECT_EQ(parse_duration("1h"), 3600s);
  EXPECT_EQ(parse_duration("0"), 0ns);
  EXPECT_EQ(parse_duration("0s"), 0ns);
  EXPECT_EQ(parse_duration("0.0000000004s"), 0ns);  // rounds to the nearest nanosecond
  EXPECT_EQ(parse_duration("0.0000000006s"), 1ns);
  EXPECT_EQ(parse_duration(".5s"), 500ms);
  EXPECT_EQ(parse_duration("0.33333333333333333333333h"), 20min);
  EXPECT_EQ(parse_duration("315360000.123456789012345678s"), 315'360'000'123'456'789ns);
  EXPECT_EQ(parse_duration("0.00000000000000000000000001s"), 0ns);
  EXPECT_EQ(parse_duration("00000000000000000000000001s"), 1s);
}

TEST(ParseDuration, Refusals) {
  for (const std::string_view bad :
       {"",    "5",     "-1s", "-0s",  "1e3s",         "nan s", "nans", "infs",
        "s",   "1 s",   " 1s", "1s ",  "1S",           "+1s",   "1d",   "1.2.3s",
        "1s2", "1m30s", "00",  "0x1s", "99999999999h", "1min"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << "'" << bad << "'";
  }
}

TEST(FormatDuration, ShortestExactForm) {
  EXPECT_EQ(format_duration(0ns), "0");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(350ms), "350ms");
  EXPECT_EQ(format_duration(90s), "1.5m");
  EXPECT_EQ(format_duration(600s), "10m");
  EXPECT_EQ(format_duration(5400s), "1.5h");
  EXPECT_EQ(format_duration(100s), "100s");
  EXPECT_EQ(format_duration(1ns), "1ns");
  EXPECT_EQ(format_duration(1234567ns), "1234.567us");
  EXPECT_EQ(format_duration(1234567891ns), "1234567.891us");
}

TEST(FormatDuration, ReadsBackExactly) {
  Draws draws = RandomStream(1, "durations").at(0);
  constexpr std::int64_t kTenYears = 315'360'000'000'000'000;
  for (int i = 0; i < 200'000; ++i) {
    // All magnitudes; every second one a round number of some unit.
    std::int64_t ns = static_cast<std::int64_t>(draws.next_u64() >> (6 + draws.below(58)));
    if (i % 2 == 0) ns = ns / 1'000'000 * 1'000'000;
    if (ns > kTenYears) continue;
    const std::string text = format_duration(Duration(ns));
    const auto back = parse_duration(text);
    ASSERT_TRUE(back) << text;
    ASSERT_EQ(back->count(), ns) << text;
  }
}

TEST(Time, Conversions) {
  EXPECT_EQ(to_ms(1500us), 1.5);
  EXPECT_EQ(to_us(1500ns), 1.5);
  EXPECT_EQ(to_seconds(1500ms), 1.5);
  EXPECT_EQ(from_seconds(1.5), 1500ms);
  EXPECT_EQ(from_seconds(1e-9 * 0.6), 1ns);
  EXPECT_EQ(from_seconds(-1), -1s);
}

TEST(Time, FormatUtc) {
  EXPECT_EQ(format_utc(WallTime{0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_utc(WallTime{1'709'210'096'999'999'999}), "2024-02-29T12:34:56Z");
}

TEST(Clocks, AStepMovesRealTimeAfterItOnly) {
  const Clocks stepped(Clocks::Step{.at_ns = 1000, .by_ns = -400});
  EXPECT_EQ(stepped.shown(999), 999);
  EXPECT_EQ(stepped.shown(1000), 600);
  EXPECT_EQ(stepped.shown(5000), 4600);
  EXPECT_EQ(Clocks().shown(5000), 5000);
}

TEST(Clocks, AStepLeavesMonotonicTimeAlone) {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  const Clocks plain;
  const Clocks stepped(Clocks::Step{.at_ns = 0, .by_ns = kDay});
  const Instant before = plain.now();
  const Instant seen = stepped.now();
  EXPECT_LE(before, seen);
  EXPECT_LE(seen, plain.now());
  EXPECT_GE(stepped.real_now().ns - plain.real_now().ns, kDay / 2);
}

}  // namespace
}  // namespace assay
