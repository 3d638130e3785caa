#include "base/stats/mean.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/stats/distribution.h"
#include "base/stats/interval.h"

namespace assay {
namespace {

constexpr std::size_t kLeastSpans = 5;

/// Student's t interval of the mean of independent values; at least two.
Interval t_interval(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += v;
  const double mean = sum / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  const double half = student_t_quantile((1 + kConfidence) / 2, n - 1) * error;
  return {mean - half, mean + half};
}

template <typename T>
std::optional<Interval> batch_means(std::span<const T> values) {
  const std::size_t n = values.size();
  if (n < 2) return std::nullopt;
  const std::size_t batches = n < 2 * kMeanBatches ? n : kMeanBatches;
  std::array<double, 2 * kMeanBatches> means{};
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t from = n * b / batches;
    const std::size_t to = n * (b + 1) / batches;
    double sum = 0;
    for (const T v : values.subspan(from, to - from)) sum += static_cast<double>(v);
    means.at(b) = sum / static_cast<double>(to - from);
  }
  return t_interval(std::span<const double>(means).first(batches));
}

}  // namespace

std::optional<Interval> mean_interval(std::span<const double> in_time_order) {
  return batch_means(in_time_order);
}

std::optional<Interval> mean_interval(std::span<const std::int64_t> in_time_order) {
  return batch_means(in_time_order);
}

std::optional<Interval> rate_interval(std::span<const double> amounts, double span_seconds) {
  if (amounts.size() < kLeastSpans) return std::nullopt;
  const Interval per_span = t_interval(amounts);
  return Interval{std::max(0.0, per_span.low / span_seconds), per_span.high / span_seconds};
}

}  // namespace assay
