// Prompts by index: prompt i of a workload is a pure function of (seed, salt, i), so any worker can
// make any prompt, a repeated run makes the same ones, and a fresh salt never meets a warm prefix
// cache. Lengths and arrivals don't depend on the salt. Yields text and counts, not request bytes.
// A synthetic prompt of n planned tokens is n common words and full stops: near n by any common
// tokenizer, exactly n only by design. Thread-safe: all state is set once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/core/random.h"
#include "domain/spec/spec.h"

namespace assay {

struct Prompt {
  std::string item;  // identity across runs: a hash of its source, salt left out
  std::string text;
  std::optional<std::int64_t> tokens_planned;  // null for a text given by the user
  std::int64_t tokens_output = 0;              // asked for
};

/// One draw of `length`, rounded to whole tokens and at least 1.
std::int64_t draw_length(const LengthSpec& length, Draws draws);

class Workload {
 public:
  /// `salt` is the drawn one, never "auto".
  Workload(const WorkloadSpec& spec, std::uint64_t seed, const std::string& salt);
  /// `index` counts from 0 over the whole run, warm-up included.
  [[nodiscard]] Prompt prompt(std::uint64_t index) const;

 private:
  [[nodiscard]] std::string synthetic_text(std::uint64_t index, std::int64_t tokens) const;

  WorkloadSpec spec_;
  std::uint64_t seed_;
  RandomStream input_lengths_, output_lengths_;
  RandomStream head_;  // words that tell one run from another: keyed by the salt
  RandomStream body_;
};

}  // namespace assay
