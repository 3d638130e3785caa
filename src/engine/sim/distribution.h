// Durations drawn at random, as values: service times, times to first token, gaps. A draw is whole
// nanoseconds, never negative, and the same bits on every machine: only IEEE arithmetic, our own
// logarithm and exponential, and Draws. Text forms: "det:50ms" (or a bare "50ms"), "exp:50ms"
// (mean), "lognormal:50ms,0.5" (median, sigma of the logarithm) or "lognormal:mean=50ms,0.5",
// "gamma:50ms,0.7" (mean, coefficient of variation), "table:FILE" (one duration per line, each as
// likely).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/random.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/spec/value.h"

namespace assay {

class SimDistribution {
 public:
  enum class Kind : std::uint8_t { kFixed, kExponential, kLogNormal, kGamma, kTable };

  /// Always 0.
  SimDistribution() = default;
  static SimDistribution fixed(Duration value);
  static SimDistribution exponential(Duration mean);
  static SimDistribution log_normal(Duration median, double sigma);
  static SimDistribution log_normal_of_mean(Duration mean, double sigma);
  /// `cv` is the standard deviation over the mean, > 0. Marsaglia and Tsang (2000),
  /// doi:10.1145/358407.358414.
  static SimDistribution gamma(Duration mean, double cv);
  /// `values` must not be empty.
  static SimDistribution table(std::vector<Duration> values, std::string name);

  [[nodiscard]] Duration draw(Draws& draws) const;
  [[nodiscard]] double mean_seconds() const;
  /// The text that read_distribution takes.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_zero() const { return kind_ == Kind::kFixed && a_ == 0; }

 private:
  Kind kind_ = Kind::kFixed;
  double a_ = 0;  // ns: value, mean or median
  double b_ = 0;  // sigma or cv
  double shape_ = 0;
  std::vector<Duration> values_;
  std::string name_;
};

/// The content of a named file; app hands it in, so that this room opens none.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

Parsed<SimDistribution> read_distribution(std::string_view text, const ReadFile& read_file);

}  // namespace assay
