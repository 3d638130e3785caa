#include "base/stats/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/check.h"
#include "base/core/result.h"

namespace assay {
namespace {

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

constexpr std::uint32_t kCookieV2 = 0x1c849303;
constexpr std::uint32_t kCookieWordSize = 0x10;  // "counts are varints": always set by writers
constexpr std::size_t kHeaderSize = 40;

int bits_of(std::uint64_t v) { return static_cast<int>(std::bit_width(v)); }
int floor_log2(std::int64_t v) { return bits_of(static_cast<std::uint64_t>(v)) - 1; }

/// Cells per bucket are the power of two that is ≥ 2·10^digits; this is the exponent of its half.
int half_magnitude(int digits) {
  std::uint64_t cells = 2;
  for (int i = 0; i < digits; ++i) cells *= 10;
  return bits_of(cells - 1) - 1;
}

/// Empty when the limits are valid.
std::string limits_problem(const HistogramLimits& l) {
  if (l.digits < 0 || l.digits > 5)
    return fmt::format("{} significant digits, not 0 to 5", l.digits);
  if (l.lowest < 1) return fmt::format("the lowest value is {}, not at least 1", l.lowest);
  if (l.highest / 2 < l.lowest) {
    return fmt::format("the highest value, {}, is less than twice the lowest, {}", l.highest,
                       l.lowest);
  }
  if (floor_log2(l.lowest) + half_magnitude(l.digits) > 61) {
    return fmt::format("{} digits from {} upwards are beyond 64 bits", l.digits, l.lowest);
  }
  return {};
}

template <typename T>
void put_big_endian(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift);
  }
}

template <typename T>
T big_endian_at(std::string_view in, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8) | static_cast<unsigned char>(in[at + i]);
  }
  return value;
}

// HdrHistogram's LEB128 takes at most 9 bytes: the ninth carries 8 bits and no continuation flag.
constexpr int kLastShift = 56;

void put_zigzag(std::string& out, std::int64_t number) {
  std::uint64_t rest =
      (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
  for (int shift = 0; shift < kLastShift && rest >= 0x80; shift += 7) {
    out += static_cast<char>(rest | 0x80);
    rest >>= 7;
  }
  out += static_cast<char>(rest);
}

std::optional<std::int64_t> take_zigzag(std::string_view& in) {
  std::uint64_t bits = 0;
  for (int shift = 0; !in.empty(); shift += 7) {
    const std::uint64_t byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    const bool last = shift == kLastShift || byte < 0x80;
    bits |= (shift == kLastShift ? byte : byte & 0x7f) << shift;
    if (last) return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
  }
  return std::nullopt;
}

Unexpected not_a_histogram(std::string_view why) {
  return usage_error(fmt::format("this is not an HDR histogram (V2): {}", why), "",
                     "the data is damaged or of another kind");
}

}  // namespace

Histogram::Histogram(HistogramLimits limits) : limits_(limits) {
  const std::string problem = limits_problem(limits);
  CHECK(problem.empty(), "{}", problem);
  unit_magnitude_ = floor_log2(limits.lowest);
  half_magnitude_ = half_magnitude(limits.digits);
  std::size_t buckets = 1;
  // The first value beyond the buckets so far: doubles with each, and must pass the highest.
  for (int bits = unit_magnitude_ + half_magnitude_ + 1;
       bits < 63 && (std::int64_t{1} << bits) <= limits.highest; ++bits) {
    ++buckets;
  }
  cells_.resize((buckets + 1) << half_magnitude_);
}

std::size_t Histogram::cell_of(std::int64_t value) const {
  // Bucket 0 has a full set of cells of width 2^unit; each later one doubles the width and has the
  // upper half only, its lower half being the bucket before.
  const int top =
      std::max(bits_of(static_cast<std::uint64_t>(value)), unit_magnitude_ + half_magnitude_ + 1);
  const int bucket = top - (unit_magnitude_ + half_magnitude_ + 1);
  const auto in_bucket = static_cast<std::size_t>(value >> (bucket + unit_magnitude_));
  return (static_cast<std::size_t>(bucket) << half_magnitude_) + in_bucket;
}

std::int64_t Histogram::width_of(std::size_t cell) const {
  const std::size_t half = cell >> half_magnitude_;
  const int bucket = half <= 1 ? 0 : static_cast<int>(half) - 1;
  return std::int64_t{1} << (bucket + unit_magnitude_);
}

std::int64_t Histogram::least_of(std::size_t cell) const {
  const std::size_t half = cell >> half_magnitude_;
  const std::size_t bucket = half <= 1 ? 0 : half - 1;
  return static_cast<std::int64_t>(cell - (bucket << half_magnitude_)) * width_of(cell);
}

void Histogram::record(std::int64_t value, std::int64_t times) {
  cells_[cell_of(std::clamp<std::int64_t>(value, 0, limits_.highest))] += times;
  count_ += times;
}

void Histogram::merge(const Histogram& other) {
  CHECK(limits_ == other.limits_, "histograms of different limits");
  for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] += other.cells_[i];
  count_ += other.count_;
}

std::optional<std::int64_t> Histogram::value_at_percentile(double percentile) const {
  CHECK(percentile >= 0 && percentile <= 100, "{}", percentile);
  if (count_ == 0) return std::nullopt;
  // 99.9/100·1000 is a hair above 999: the rounding of the product must not cost a rank.
  constexpr double kSlack = 1 - 4 * std::numeric_limits<double>::epsilon();
  const double exact = percentile / 100 * static_cast<double>(count_) * kSlack;
  const auto rank =
      std::clamp(static_cast<std::int64_t>(std::ceil(exact)), std::int64_t{1}, count_);
  std::int64_t seen = 0;
  std::size_t cell = 0;
  while ((seen += cells_[cell]) < rank) ++cell;
  return least_of(cell) + (width_of(cell) - 1);
}

std::optional<double> Histogram::mean() const {
  if (count_ == 0) return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i] == 0) continue;
    const double middle =
        static_cast<double>(least_of(i)) + static_cast<double>(width_of(i) - 1) / 2;
    sum += middle * static_cast<double>(cells_[i]);
  }
  return sum / static_cast<double>(count_);
}

std::optional<std::int64_t> Histogram::max() const { return value_at_percentile(100); }

std::string Histogram::encode_v2() const {
  std::string payload;
  std::size_t end = cells_.size();
  while (end > 1 && cells_[end - 1] == 0) --end;
  for (std::size_t i = 0; i < end;) {
    std::size_t next = i + 1;
    if (cells_[i] == 0) {
      while (next < end && cells_[next] == 0) ++next;
    }
    const auto run = static_cast<std::int64_t>(next - i);
    put_zigzag(payload, run > 1 ? -run : cells_[i]);
    i = next;
  }
  std::string out;
  put_big_endian(out, kCookieV2 | kCookieWordSize);
  put_big_endian(out, static_cast<std::uint32_t>(payload.size()));
  put_big_endian(out, std::uint32_t{0});  // normalizing offset
  put_big_endian(out, static_cast<std::uint32_t>(limits_.digits));
  put_big_endian(out, static_cast<std::uint64_t>(limits_.lowest));
  put_big_endian(out, static_cast<std::uint64_t>(limits_.highest));
  put_big_endian(out, std::bit_cast<std::uint64_t>(1.0));  // integer to double ratio
  return out + payload;
}

Result<Histogram> Histogram::decode_v2(std::string_view bytes) {
  if (bytes.size() < kHeaderSize) {
    return not_a_histogram(
        fmt::format("{} bytes, and its header alone takes {}", bytes.size(), kHeaderSize));
  }
  const auto cookie = big_endian_at<std::uint32_t>(bytes, 0);
  if ((cookie & ~std::uint32_t{0xf0}) != kCookieV2) {
    return not_a_histogram(fmt::format("it begins with {:#010x}", cookie));
  }
  const auto size = big_endian_at<std::uint32_t>(bytes, 4);
  if (size != bytes.size() - kHeaderSize) {
    return not_a_histogram(
        fmt::format("it announces {} bytes of cells and has {}", size, bytes.size() - kHeaderSize));
  }
  if (big_endian_at<std::uint32_t>(bytes, 8) != 0) return not_a_histogram("it is shifted");
  HistogramLimits limits;
  limits.digits = static_cast<int>(big_endian_at<std::uint32_t>(bytes, 12));
  limits.lowest = static_cast<std::int64_t>(big_endian_at<std::uint64_t>(bytes, 16));
  limits.highest = static_cast<std::int64_t>(big_endian_at<std::uint64_t>(bytes, 24));
  if (const std::string problem = limits_problem(limits); !problem.empty()) {
    return not_a_histogram(problem);
  }
  Histogram histogram(limits);
  const Result<> filled = histogram.fill_cells(bytes.substr(kHeaderSize));
  if (!filled) return fail(filled.error());
  return histogram;
}

Result<> Histogram::fill_cells(std::string_view payload) {
  std::size_t cell = 0;
  while (!payload.empty()) {
    const auto number = take_zigzag(payload);
    if (!number) return not_a_histogram("its last number is torn");
    const std::uint64_t advance = *number < 0 ? 0 - static_cast<std::uint64_t>(*number) : 1;
    if (advance > cells_.size() - cell) return not_a_histogram("it has more cells than its range");
    if (*number > kInt64Max - count_) return not_a_histogram("its counts add up beyond 64 bits");
    if (*number > 0) {
      cells_[cell] = *number;
      count_ += *number;
    }
    cell += advance;
  }
  return {};
}

}  // namespace assay
