#include "base/stats/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/random.h"

namespace assay {
namespace {

constexpr HistogramLimits kThreeDigits{1, 3'600'000'000'000, 3};

TEST(Histogram, EmptyKnowsNothing) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0);
  EXPECT_FALSE(empty.value_at_percentile(50));
  EXPECT_FALSE(empty.mean());
  EXPECT_FALSE(empty.max());
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (int v = 1; v <= 100; ++v) h.record(v);
  EXPECT_EQ(h.count(), 100);
  EXPECT_EQ(h.value_at_percentile(0), 1);
  EXPECT_EQ(h.value_at_percentile(1), 1);
  EXPECT_EQ(h.value_at_percentile(1.001), 2);
  EXPECT_EQ(h.value_at_percentile(50), 50);
  EXPECT_EQ(h.value_at_percentile(99), 99);
  EXPECT_EQ(h.value_at_percentile(100), 100);
  EXPECT_EQ(h.max(), 100);
  EXPECT_DOUBLE_EQ(*h.mean(), 50.5);
}

TEST(Histogram, RankIsNotPushedUpByRounding) {
  Histogram h(kThreeDigits);
  for (int v = 1; v <= 1000; ++v) h.record(v);
  for (int tenths = 1; tenths <= 1000; ++tenths) {
    EXPECT_EQ(h.value_at_percentile(tenths / 10.0), tenths);
  }
}

TEST(Histogram, CellsOfKnownWidth) {
  // Two digits: 256 cells of width 1, then 128 of width 2 up to 511, 128 of width 4 up to 1023, …
  const auto top_of = [](std::int64_t v) {
    Histogram h;
    h.record(v);
    return *h.max();
  };
  EXPECT_EQ(top_of(0), 0);
  EXPECT_EQ(top_of(255), 255);
  EXPECT_EQ(top_of(256), 257);
  EXPECT_EQ(top_of(257), 257);
  EXPECT_EQ(top_of(511), 511);
  EXPECT_EQ(top_of(512), 515);
  EXPECT_EQ(top_of(1'000'000), 1'003'519);  // 2^19 < 10^6: cells of 2^12, the 244th ends here
}

TEST(Histogram, OutOfRangeIsClamped) {
  Histogram h;
  h.record(-5);
  EXPECT_EQ(h.max(), 0);
  h.record(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(h.count(), 2);
  EXPECT_GE(*h.max(), h.limits().highest);
  EXPECT_LT(static_cast<double>(*h.max()), static_cast<double>(h.limits().highest) * 1.01);
}

TEST(Histogram, StaysWithinItsDigitsOfTheTruth) {
  Draws draws = RandomStream(1, "histogram").at(0);
  for (int digits = 1; digits <= 4; ++digits) {
    Histogram h({1, 3'600'000'000'000, digits});
    std::vector<std::int64_t> values(20'000);
    for (auto& v : values) {
      v = static_cast<std::int64_t>(1e6 * std::exp(2 * draws.normal())) + 1;
      h.record(v);
    }
    std::ranges::sort(values);
    const double error = std::pow(10.0, -digits);
    double sum = 0;
    for (const auto v : values) sum += static_cast<double>(v);
    EXPECT_NEAR(*h.mean(), sum / 20'000, error * sum / 20'000);
    for (const double p : {0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto rank = static_cast<std::size_t>(std::ceil(p * 200 - 1e-9));
      const auto truth = static_cast<double>(values[rank - 1]);
      EXPECT_NEAR(static_cast<double>(*h.value_at_percentile(p)), truth, error * truth) << p;
    }
  }
}

TEST(Histogram, MergeIsRecordingAll) {
  Draws draws = RandomStream(2, "histogram").at(0);
  Histogram a;
  Histogram b;
  Histogram all;
  for (int i = 0; i < 10'000; ++i) {
    const auto v = static_cast<std::int64_t>(draws.exponential() * 1e7);
    (i % 3 == 0 ? a : b).record(v);
    all.record(v);
  }
  a.merge(b);
  EXPECT_EQ(a, all);
  a.merge(Histogram());
  EXPECT_EQ(a, all);
}

TEST(HistogramDeathTest, MergeOfDifferentLimitsIsABug) {
  Histogram a;
  EXPECT_DEATH(a.merge(Histogram(kThreeDigits)), "histograms of different limits");
}

std::string bytes(std::string_view hex) {
  std::string out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return out;
}

// Cookie, payload size, offset, digits, lowest, highest, ratio.
constexpr std::string_view kHeaderHead = "1c849313";
constexpr std::string_view kHeaderTail =
    "0000000000000002000000000000000100000346"
    "30b8a0003ff0000000000000";

std::string encoded(std::string_view payload_hex) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t size = payload_hex.size() / 2;
  std::string hex(kHeaderHead);
  hex += "000000";
  hex += kDigits[size / 16];
  hex += kDigits[size % 16];
  return bytes(hex + std::string(kHeaderTail) + std::string(payload_hex));
}

TEST(HistogramV2, KnownBytes) {
  Histogram h;
  EXPECT_EQ(h.encode_v2(), encoded("00"));
  h.record(1);
  h.record(3, 2);
  // Cells 0…3: one zero, 1, one zero, 2; zigzag doubles.
  EXPECT_EQ(h.encode_v2(), encoded("00020004"));
  h.record(300, 64);
  // Value 300 is cell 256 + 22: 274 zeros lie between, −274 → 547 = 0xa3 0x04; 64 → 128.
  EXPECT_EQ(h.encode_v2(), encoded("00020004a3048001"));
}

TEST(HistogramV2, NumbersOfNineBytes) {
  Histogram h;
  h.record(1, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(h.encode_v2(), encoded("00feffffffffffffffff"));
  EXPECT_EQ(*Histogram::decode_v2(h.encode_v2()), h);
}

TEST(HistogramV2, RoundTrip) {
  Draws draws = RandomStream(3, "histogram").at(0);
  for (const HistogramLimits limits :
       {HistogramLimits{}, kThreeDigits, HistogramLimits{1, 2, 0},
        HistogramLimits{1000, 60'000'000, 5},
        HistogramLimits{1, std::numeric_limits<std::int64_t>::max(), 2}}) {
    Histogram h(limits);
    EXPECT_EQ(*Histogram::decode_v2(h.encode_v2()), h);
    for (int i = 0; i < 5'000; ++i) {
      h.record(static_cast<std::int64_t>(std::exp(43 * draws.uniform())));
    }
    h.record(limits.highest);
    const auto back = Histogram::decode_v2(h.encode_v2());
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, h);
    EXPECT_EQ(back->count(), 5'001);
  }
}

std::string problem(std::string_view data) {
  const auto decoded = Histogram::decode_v2(data);
  return decoded ? "was read" : decoded.error().what;
}

TEST(HistogramV2, GarbageIsRefusedInWords) {
  const std::string start = "this is not an HDR histogram (V2): ";
  EXPECT_EQ(problem(""), start + "0 bytes, and its header alone takes 40");
  EXPECT_EQ(problem(std::string(40, 'x')), start + "it begins with 0x78787878");
  EXPECT_EQ(problem(encoded("00") + "x"), start + "it announces 1 bytes of cells and has 2");
  EXPECT_EQ(problem(encoded("80")), start + "its last number is torn");
  EXPECT_EQ(problem(encoded("ffffffffffffffffff")), start + "it has more cells than its range");
  EXPECT_EQ(problem(encoded("feffffffffffffffff02")), start + "its counts add up beyond 64 bits");
  const auto with = [](std::size_t at, std::string_view hex) {
    std::string data = encoded("00");
    const std::string patch = bytes(hex);
    return data.replace(at, patch.size(), patch);
  };
  EXPECT_EQ(problem(with(8, "00000001")), start + "it is shifted");
  EXPECT_EQ(problem(with(12, "00000006")), start + "6 significant digits, not 0 to 5");
  EXPECT_EQ(problem(with(12, "ffffffff")), start + "-1 significant digits, not 0 to 5");
  EXPECT_EQ(problem(with(16, "0000000000000000")), start + "the lowest value is 0, not at least 1");
  EXPECT_EQ(problem(with(24, "0000000000000001")),
            start + "the highest value, 1, is less than twice the lowest, 1");
  EXPECT_EQ(problem(with(16, "3fffffffffffffff7fffffffffffffff")),
            start + "2 digits from 4611686018427387903 upwards are beyond 64 bits");
}

}  // namespace
}  // namespace assay
