#include "base/stats/select.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/core/check.h"

namespace assay {
namespace {

constexpr std::size_t kSortBelow = 4096;
constexpr int kBucketBits = 16;

struct Want {
  std::size_t rank = 0;  // 0-based, among the values of its job
  std::size_t slot = 0;  // where the answer goes
};

struct Job {
  std::vector<std::int64_t> values;
  std::vector<Want> wants;
};

/// Distance that can't overflow.
std::uint64_t offset(std::int64_t value, std::int64_t low) {
  return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(low);
}

class Buckets {
 public:
  Buckets(std::span<const std::int64_t> values, std::int64_t low, std::int64_t high)
      : low_(low),
        shift_(std::max(0, static_cast<int>(std::bit_width(offset(high, low))) - kBucketBits)),
        counts_((offset(high, low) >> shift_) + 1) {
    for (const std::int64_t v : values) ++counts_[index(v)];
  }

  [[nodiscard]] std::size_t index(std::int64_t v) const { return offset(v, low_) >> shift_; }

  /// One job per bucket that holds a wanted rank, with its values still to be gathered. `wants` is
  /// in order of rank. `job_of` maps a bucket to its job + 1.
  std::vector<Job> split(std::span<const Want> wants, std::vector<std::uint32_t>& job_of) const {
    std::vector<Job> jobs;
    job_of.assign(counts_.size(), 0);
    std::size_t before = 0;
    std::size_t bucket = 0;
    for (const Want& want : wants) {
      while (before + counts_[bucket] <= want.rank) before += counts_[bucket++];
      if (job_of[bucket] == 0) {
        jobs.emplace_back().values.reserve(counts_[bucket]);
        job_of[bucket] = static_cast<std::uint32_t>(jobs.size());
      }
      jobs.back().wants.push_back({want.rank - before, want.slot});
    }
    return jobs;
  }

 private:
  std::int64_t low_;
  int shift_;
  std::vector<std::size_t> counts_;
};

/// Answers the wants of one series, or adds jobs on parts of it to `todo`.
void narrow(std::span<const std::int64_t> values, std::span<const Want> wants,
            std::vector<Job>& todo, std::vector<std::int64_t>& answers) {
  const auto [low, high] = std::ranges::minmax(values);
  if (low == high) {
    for (const Want& want : wants) answers[want.slot] = low;
    return;
  }
  if (values.size() <= kSortBelow) {
    std::vector<std::int64_t> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    for (const Want& want : wants) answers[want.slot] = sorted[want.rank];
    return;
  }
  const Buckets buckets(values, low, high);
  std::vector<std::uint32_t> job_of;
  std::vector<Job> jobs = buckets.split(wants, job_of);
  for (const std::int64_t v : values) {
    const std::uint32_t job = job_of[buckets.index(v)];
    if (job != 0) jobs[job - 1].values.push_back(v);
  }
  for (Job& job : jobs) todo.push_back(std::move(job));
}

}  // namespace

std::vector<std::int64_t> select_ranks(std::span<const std::int64_t> values,
                                       std::span<const std::size_t> ranks) {
  std::vector<Want> wants;
  wants.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    CHECK(ranks[i] >= 1 && ranks[i] <= values.size(), "rank {} of {} values", ranks[i],
          values.size());
    wants.push_back({ranks[i] - 1, i});
  }
  std::ranges::sort(wants, {}, &Want::rank);
  std::vector<std::int64_t> answers(ranks.size());
  if (wants.empty()) return answers;
  std::vector<Job> todo;
  narrow(values, wants, todo, answers);
  while (!todo.empty()) {
    const Job job = std::move(todo.back());
    todo.pop_back();
    narrow(job.values, job.wants, todo, answers);
  }
  return answers;
}

}  // namespace assay
