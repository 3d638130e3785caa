#include "base/stats/trend.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/stats/distribution.h"

namespace assay {
namespace {
constexpr std::size_t kBatches = 10;
constexpr std::size_t kLeast = 4 * kBatches;
constexpr double kFalseAlarm = 0.01;
}  // namespace

std::optional<Trend> trend_of(std::span<const std::int64_t> in_time_order) {
  const std::size_t n = in_time_order.size();
  if (n < kLeast) return std::nullopt;
  std::array<double, kBatches> means{};
  double mean = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const std::size_t from = n * b / kBatches;
    const std::size_t to = n * (b + 1) / kBatches;
    for (const std::int64_t v : in_time_order.subspan(from, to - from)) {
      means.at(b) += static_cast<double>(v);
    }
    means.at(b) /= static_cast<double>(to - from);
    mean += means.at(b) / static_cast<double>(kBatches);
  }
  if (mean == 0) return std::nullopt;
  constexpr double kMiddle = (static_cast<double>(kBatches) - 1) / 2;
  double sxy = 0;
  double sxx = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const double x = static_cast<double>(b) - kMiddle;
    sxy += x * (means.at(b) - mean);
    sxx += x * x;
  }
  const double slope = sxy / sxx;
  double residual = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const double off = means.at(b) - mean - slope * (static_cast<double>(b) - kMiddle);
    residual += off * off;
  }
  constexpr double kFreedom = static_cast<double>(kBatches) - 2;
  const double error = std::sqrt(residual / kFreedom / sxx);
  Trend trend;
  trend.change = slope * static_cast<double>(kBatches) / mean;
  trend.critical = student_t_quantile(1 - kFalseAlarm / 2, kFreedom);
  if (slope != 0) {
    trend.t =
        error > 0 ? slope / error : std::copysign(std::numeric_limits<double>::infinity(), slope);
  }
  return trend;
}

}  // namespace assay
