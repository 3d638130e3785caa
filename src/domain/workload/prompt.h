// Prompts by index: prompt i of a workload is a pure function of (seed, salt, i), so any worker can
// make any prompt, a repeated run makes the same ones, and a fresh salt never meets a warm prefix
// cache. Lengths and arrivals don't depend on the salt. Yields text and counts, not request bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "domain/spec/spec.h"

namespace assay {

struct Prompt {
  std::string item;  // identity across runs: a hash of its source, salt left out
  std::string text;
  std::optional<std::int64_t> tokens_planned;  // null for a text given by the user
  std::int64_t tokens_output = 0;              // asked for
};

class Workload {
 public:
  /// `salt` is the drawn one, never "auto".
  Workload(const WorkloadSpec& spec, std::uint64_t seed, std::string salt);
  /// `index` counts from 0 over the whole run, warm-up included.
  [[nodiscard]] Prompt prompt(std::uint64_t index) const;

 private:
  WorkloadSpec spec_;
  std::uint64_t seed_;
  std::string salt_;
};

}  // namespace assay
