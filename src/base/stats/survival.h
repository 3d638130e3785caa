// Quantiles of durations of which some were cut off: a request that timed out after T took *at
// least* T. Kaplan and Meier's product-limit estimate (JASA 53, 1958) uses what is known of each;
// without cut-off values its quantiles are those by nearest rank. A quantile that the estimate does
// not reach is only known to be at least the longest duration seen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace assay {

struct Lifetime {
  std::int64_t time = 0;
  enum class End : std::uint8_t { kObserved, kCensored } end = End::kObserved;
};

class KaplanMeier {
 public:
  /// At least one lifetime.
  explicit KaplanMeier(std::vector<Lifetime> lifetimes);

  /// The least time at which a share `p` has ended; null when that is beyond what was seen.
  [[nodiscard]] std::optional<std::int64_t> quantile(double p) const;
  /// The longest time seen, ended or cut off: the bound for a quantile that is null.
  [[nodiscard]] std::int64_t longest() const { return longest_; }
  /// The mean up to longest() (restricted mean): the area under the survival curve.
  [[nodiscard]] double restricted_mean() const { return restricted_mean_; }

 private:
  struct Step {
    std::int64_t time;
    double ended;  // share that has ended by `time`
  };
  std::vector<Step> steps_;
  std::int64_t longest_ = 0;
  double restricted_mean_ = 0;
};

}  // namespace assay
