// Histogram of whole numbers (nanoseconds, say) with a bounded relative error, after Gil Tene's
// HdrHistogram (hdrhistogram.org): buckets of doubling width, each cut into enough equal cells for
// the asked number of significant decimal digits. Recording is a few nanoseconds and never
// allocates; merging is exact: the merge of two is the histogram of all their values. Everything
// that is read back (percentile, mean, max) comes from the cells, so it is the same before and
// after encoding, and right to one cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace assay {

/// Two histograms can be merged when these are equal.
struct HistogramLimits {
  std::int64_t lowest = 1;                   // values below are told apart no further; ≥ 1
  std::int64_t highest = 3'600'000'000'000;  // one hour in nanoseconds; ≥ 2 · lowest
  int digits = 2;                            // significant decimal digits, 0 to 5
  bool operator==(const HistogramLimits&) const = default;
};

class Histogram {
 public:
  /// The limits must be valid: see HistogramLimits. 37 KB with the defaults.
  explicit Histogram(HistogramLimits limits = {});

  /// Values below 0 count as 0, those above the highest as the highest.
  void record(std::int64_t value, std::int64_t times = 1);
  /// Adds what `other`, of the same limits, has recorded.
  void merge(const Histogram& other);

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Nearest rank, the ⌈p/100·n⌉-th value, as the largest value of its cell; p in [0, 100]. Null
  /// when nothing was recorded, as are the next two.
  [[nodiscard]] std::optional<std::int64_t> value_at_percentile(double percentile) const;
  /// Of the middles of the cells.
  [[nodiscard]] std::optional<double> mean() const;
  /// Largest value of the highest cell in use.
  [[nodiscard]] std::optional<std::int64_t> max() const;
  [[nodiscard]] const HistogramLimits& limits() const { return limits_; }
  bool operator==(const Histogram&) const = default;

  /// HdrHistogram's V2 encoding without compression: cookie 0x1c849313, a header of 40 bytes in
  /// all, then the cells as zigzag LEB128 with runs of zeros as one negative number.
  [[nodiscard]] std::string encode_v2() const;
  /// Also reads other limits than the defaults, but no shifted histograms (normalizing offset not
  /// 0). Anything else is an error that says what is wrong.
  static Result<Histogram> decode_v2(std::string_view bytes);

 private:
  [[nodiscard]] std::size_t cell_of(std::int64_t value) const;
  [[nodiscard]] std::int64_t least_of(std::size_t cell) const;
  [[nodiscard]] std::int64_t width_of(std::size_t cell) const;
  Result<> fill_cells(std::string_view payload);

  HistogramLimits limits_;
  int unit_magnitude_;  // the lowest value is at least 2^this
  int half_magnitude_;  // half of a bucket's cells, as a power of two
  std::vector<std::int64_t> cells_;
  std::int64_t count_ = 0;
};

}  // namespace assay
