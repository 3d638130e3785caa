#include "domain/workload/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/check.h"
#include "base/core/math.h"
#include "base/core/random.h"
#include "domain/spec/spec.h"
#include "domain/spec/value.h"
#include "domain/workload/words.h"

namespace assay {
namespace {

// 20 words of 9 bits: the heads of two runs, or of two prompts of one run, agree by accident once
// in 2^180; the first word alone differs in 511 of 512 cases.
constexpr std::int64_t kHeadWords = 20;
constexpr std::int64_t kSentence = 12;  // words, its full stop counted

constexpr int kWordBits = std::countr_zero(kWordCount);
static_assert(std::has_single_bit(kWordCount));

/// Words of one stream, seven to a draw.
class WordDraws {
 public:
  explicit WordDraws(Draws draws) : draws_(draws) {}
  std::string_view next() {
    if (left_ == 0) {
      bits_ = draws_.next_u64();
      left_ = 64 / kWordBits;
    }
    const std::string_view word = kWords[bits_ & (kWordCount - 1)];
    bits_ >>= kWordBits;
    --left_;
    return word;
  }

 private:
  Draws draws_;
  std::uint64_t bits_ = 0;
  int left_ = 0;
};

}  // namespace

std::int64_t draw_length(const LengthSpec& length, Draws draws) {
  const auto whole = [](double tokens) {
    return static_cast<std::int64_t>(
        std::llround(std::clamp(tokens, 1.0, static_cast<double>(kTokensMax))));
  };
  switch (length.kind) {
    case LengthSpec::Kind::kFixed:
      return whole(length.a);
    case LengthSpec::Kind::kUniform: {
      const std::int64_t least = whole(length.a);
      const std::int64_t most = whole(length.b);
      CHECK(least <= most, "uniform:{},{}", length.a, length.b);
      return least +
             static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(most - least) + 1));
    }
    case LengthSpec::Kind::kLogNormal:
      return whole(length.a * exact_exp(length.b * draws.normal()));
  }
  CHECK(false, "unknown kind of length {}", static_cast<int>(length.kind));
}

Workload::Workload(const WorkloadSpec& spec, std::uint64_t seed, const std::string& salt)
    : spec_(spec),
      seed_(seed),
      input_lengths_(seed, "input lengths"),
      output_lengths_(seed, "output lengths"),
      head_(seed, "prompt head " + salt),
      body_(seed, "prompt body") {}

Prompt Workload::prompt(std::uint64_t index) const {
  Prompt prompt;
  prompt.tokens_output = draw_length(spec_.output, output_lengths_.at(index));
  if (!spec_.prompt.empty()) {
    prompt.item = fmt::format("{:016x}", hash64(spec_.prompt));
    prompt.text = spec_.prompt;
    return prompt;
  }
  const std::int64_t tokens = draw_length(spec_.input, input_lengths_.at(index));
  prompt.item =
      fmt::format("{:016x}", hash64(fmt::format("synthetic {} {} {}", seed_, index, tokens)));
  prompt.tokens_planned = tokens;
  prompt.text = synthetic_text(index, tokens);
  return prompt;
}

std::string Workload::synthetic_text(std::uint64_t index, std::int64_t tokens) const {
  WordDraws head(head_.at(index));
  WordDraws body(body_.at(index));
  constexpr std::size_t kBytesPerToken = 6;
  std::string text;
  text.reserve(static_cast<std::size_t>(tokens) * kBytesPerToken);
  std::int64_t in_sentence = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (++in_sentence == kSentence) {
      text += '.';
      in_sentence = 0;
      continue;
    }
    if (i > 0) text += ' ';
    text += i < kHeadWords ? head.next() : body.next();
  }
  return text;
}

}  // namespace assay
