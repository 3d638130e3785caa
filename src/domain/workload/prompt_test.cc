#include "domain/workload/prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/core/text.h"
#include "domain/workload/words.h"

namespace assay {
namespace {

WorkloadSpec with_input(LengthSpec input) {
  WorkloadSpec spec;
  spec.input = input;
  return spec;
}

std::int64_t words_and_stops(std::string_view text) {
  return std::ranges::count(text, ' ') + 1 + std::ranges::count(text, '.');
}

std::string_view first_words(std::string_view text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) end = text.find(' ', end + 1);
  return text.substr(0, end);
}

TEST(Words, AreDistinctAndLowerCase) {
  const std::set<std::string_view> distinct(kWords.begin(), kWords.end());
  EXPECT_EQ(distinct.size(), kWordCount);
  for (const std::string_view word : kWords) {
    EXPECT_FALSE(word.empty());
    EXPECT_TRUE(std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; })) << word;
  }
}

TEST(Workload, PromptsArePureFunctionsOfSeedSaltAndIndex) {
  const Workload a({}, 1, "x");
  const Workload b({}, 1, "x");
  EXPECT_EQ(a.prompt(17).text, b.prompt(17).text);
  EXPECT_EQ(a.prompt(17).item, b.prompt(17).item);
  EXPECT_NE(a.prompt(17).text, a.prompt(18).text);
  EXPECT_NE(a.prompt(17).item, a.prompt(18).item);
}

TEST(Workload, PlannedTokensAreWordsAndStops) {
  for (const double n : {1.0, 2.0, 11.0, 12.0, 13.0, 512.0, 4096.0}) {
    const Prompt prompt = Workload(with_input({LengthSpec::Kind::kFixed, n, 0}), 1, "x").prompt(3);
    EXPECT_EQ(prompt.tokens_planned, static_cast<std::int64_t>(n));
    EXPECT_EQ(words_and_stops(prompt.text), static_cast<std::int64_t>(n));
  }
}

TEST(Workload, ANewSaltChangesTheHeadAndNothingElse) {
  const WorkloadSpec spec = with_input({LengthSpec::Kind::kUniform, 50, 500});
  const Workload a(spec, 1, "monday");
  const Workload b(spec, 1, "tuesday");
  int same_first_word = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Prompt x = a.prompt(i);
    const Prompt y = b.prompt(i);
    EXPECT_NE(first_words(x.text, 3), first_words(y.text, 3)) << i;
    same_first_word += first_words(x.text, 1) == first_words(y.text, 1) ? 1 : 0;
    EXPECT_EQ(x.tokens_planned, y.tokens_planned);
    EXPECT_EQ(x.tokens_output, y.tokens_output);
    EXPECT_EQ(x.item, y.item);
  }
  EXPECT_LE(same_first_word, 6);  // 200/512 expected
}

TEST(Workload, PromptsOfOneRunShareNoHead) {
  const Workload workload({}, 1, "x");
  std::set<std::string> heads;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    heads.insert(std::string(first_words(workload.prompt(i).text, 6)));
  }
  EXPECT_EQ(heads.size(), 1000U);
}

TEST(Workload, SeedsChangeLengths) {
  const WorkloadSpec spec = with_input({LengthSpec::Kind::kUniform, 1, 100000});
  EXPECT_NE(Workload(spec, 1, "x").prompt(0).tokens_planned,
            Workload(spec, 2, "x").prompt(0).tokens_planned);
}

TEST(Workload, AUsersPromptIsSentAsItIs) {
  WorkloadSpec spec;
  spec.prompt = "Why is the sky blue?\n";
  const Prompt a = Workload(spec, 1, "x").prompt(0);
  const Prompt b = Workload(spec, 2, "y").prompt(9);
  EXPECT_EQ(a.text, spec.prompt);
  EXPECT_EQ(a.tokens_planned, std::nullopt);
  EXPECT_EQ(a.item, b.item);
  EXPECT_EQ(a.tokens_output, 128);
}

TEST(DrawLength, UniformReachesBothEndsAndNoFurther) {
  const RandomStream stream(1, "lengths");
  const LengthSpec spec{LengthSpec::Kind::kUniform, 3, 6};
  std::set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < 200; ++i) seen.insert(draw_length(spec, stream.at(i)));
  EXPECT_EQ(seen, (std::set<std::int64_t>{3, 4, 5, 6}));
}

TEST(DrawLength, LogNormalHasItsMedianAndMean) {
  const RandomStream stream(1, "lengths");
  const LengthSpec spec{LengthSpec::Kind::kLogNormal, 512, 0.5};
  constexpr int kCount = 20'000;
  int below = 0;
  double sum = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::int64_t n = draw_length(spec, stream.at(i));
    below += n < 512 ? 1 : 0;
    sum += static_cast<double>(n);
  }
  EXPECT_NEAR(static_cast<double>(below) / kCount, 0.5, 0.02);
  EXPECT_NEAR(sum / kCount, mean_tokens(spec), 10);  // 5 standard errors of 2.2
}

TEST(DrawLength, IsAtLeastOne) {
  const RandomStream stream(1, "lengths");
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_GE(draw_length({LengthSpec::Kind::kLogNormal, 1, 5}, stream.at(i)), 1);
  }
}

}  // namespace
}  // namespace assay
