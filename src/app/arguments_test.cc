#include "app/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "app/run_arguments.h"
#include "base/core/text.h"

namespace assay {
namespace {

constexpr std::array kFlags = std::to_array<Flag>({
    {"--rate", "R", "Load", "none", "how fast"},
    {"--precise", "", "Load", "off", "spin"},
    {"--help", "", "Other", "", "this text"},
});

using Given = std::vector<std::pair<std::string, std::string>>;

Arguments split_words(const std::vector<std::string>& words) {
  return split_arguments(words, kFlags);
}

TEST(Arguments, FlagsAndBareWordsComeApartInOrder) {
  const Arguments out = split_words({"u", "--rate", "5", "--precise", "v", "--rate=6"});
  EXPECT_TRUE(out.errors.empty());
  EXPECT_EQ(out.flags, (Given{{"--rate", "5"}, {"--precise", ""}, {"--rate", "6"}}));
  EXPECT_EQ(out.bare, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(out.value("--rate"), "6");
  EXPECT_EQ(out.value("--other", "none"), "none");
  EXPECT_TRUE(out.has("--precise"));
  EXPECT_FALSE(out.has("--help"));
}

TEST(Arguments, ValuesMayLookLikeFlagsOrHoldEqualSigns) {
  EXPECT_EQ(split_words({"--rate", "-3"}).flags, (Given{{"--rate", "-3"}}));
  EXPECT_EQ(split_words({"--rate=a=b"}).flags, (Given{{"--rate", "a=b"}}));
  EXPECT_EQ(split_words({"--rate="}).flags, (Given{{"--rate", ""}}));
}

TEST(Arguments, TwoHyphensEndTheFlags) {
  EXPECT_EQ(split_words({"--", "--rate", "-"}).bare, (std::vector<std::string>{"--rate", "-"}));
}

TEST(Arguments, EveryProblemIsListed) {
  const Arguments out = split_words({"--rat", "5", "-x", "--precise=1", "--rate"});
  ASSERT_EQ(out.errors.size(), 4U);
  EXPECT_EQ(out.errors[0].text(), "--rat: is not a flag of this command (did you mean --rate?)");
  EXPECT_EQ(out.errors[1].text(), "-x: is not a flag of this command (--help lists them)");
  EXPECT_EQ(out.errors[2].text(), "--precise: takes no value");
  EXPECT_EQ(out.errors[3].text(), "--rate: needs a value: --rate R");
  EXPECT_TRUE(out.bare.empty());
}

TEST(Arguments, AFlagIsNoValue) {
  const Arguments out = split_words({"--rate", "--precise"});
  ASSERT_EQ(out.errors.size(), 1U);
  EXPECT_TRUE(out.has("--precise"));
}

TEST(Help, StaysWithinItsColumns) {
  const std::string help = help_text(run_flags());
  for (const std::string_view line : split(help, '\n')) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace assay
