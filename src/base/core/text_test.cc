#include "base/core/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim(" \t"), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (Parts{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
  EXPECT_EQ(split("abc", ','), (Parts{"abc"}));
}

TEST(Text, IgnoringCase) {
  EXPECT_TRUE(equal_ignoring_case("Content-Length", "content-LENGTH"));
  EXPECT_FALSE(equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(equal_ignoring_case("[", "{")) << "only letters have case";
  EXPECT_TRUE(starts_with_ignoring_case("Text/Event-Stream; x", "text/event-stream"));
  EXPECT_TRUE(starts_with_ignoring_case("a", ""));
  EXPECT_FALSE(starts_with_ignoring_case("tex", "text"));
}

TEST(Text, ParseInt) {
  EXPECT_EQ(parse_int("0"), 0);
  EXPECT_EQ(parse_int("-12"), -12);
  EXPECT_EQ(parse_int("007"), 7);
  EXPECT_EQ(parse_int("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const std::string_view bad : {"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1_000",
                                     "9223372036854775808", "--1", "a"}) {
    EXPECT_EQ(parse_int(bad), std::nullopt) << "'" << bad << "'";
  }
}

TEST(Text, ParseNumber) {
  EXPECT_EQ(parse_number("0"), 0.0);
  EXPECT_EQ(parse_number("-1.5"), -1.5);
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_EQ(parse_number("5e-324"), 5e-324);
  for (const std::string_view bad : {"", "-", "+1", " 1", "1 ", "nan", "inf", "-inf", "infinity",
                                     "1e400", "0x10", "1,5", "1..2", "e3", "NaN"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << "'" << bad << "'";
  }
}

TEST(Text, Utf8SequenceLength) {
  EXPECT_EQ(utf8_sequence_length(""), 0U);
  EXPECT_EQ(utf8_sequence_length("a"), 1U);
  EXPECT_EQ(utf8_sequence_length(std::string_view("\0", 1)), 1U);
  EXPECT_EQ(utf8_sequence_length("éa"), 2U);
  EXPECT_EQ(utf8_sequence_length("€"), 3U);
  EXPECT_EQ(utf8_sequence_length("😀"), 4U);
  EXPECT_EQ(utf8_sequence_length("\xf4\x8f\xbf\xbf"), 4U);  // U+10FFFF, the last one
  EXPECT_EQ(utf8_sequence_length("\xed\x9f\xbf"), 3U);      // U+D7FF, before the surrogates
}

TEST(Text, Utf8RefusesWhatIsNot) {
  for (const std::string_view bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe2\x82", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98",
        "\xff", "\xfe"}) {
    EXPECT_EQ(utf8_sequence_length(bad), 0U) << ::testing::PrintToString(std::string(bad));
  }
}

TEST(Text, ReplaceAllGoesOnBehindWhatItPut) {
  const auto replaced = [](std::string text, std::string_view from, std::string_view to) {
    replace_all(text, from, to);
    return text;
  };
  EXPECT_EQ(replaced("a key, a key", "key", "***"), "a ***, a ***");
  EXPECT_EQ(replaced("aaa", "a", "aa"), "aaaaaa");
  EXPECT_EQ(replaced("aaa", "aa", ""), "a");
  EXPECT_EQ(replaced("", "a", "b"), "");
  EXPECT_EQ(replaced("abc", "x", "y"), "abc");
}

TEST(TextDeathTest, ReplaceAllOfNothingIsABug) {
  std::string text = "abc";
  EXPECT_DEATH(replace_all(text, "", "x"), "nothing to look for");
}

TEST(Text, NearestWordFindsTyposOnly) {
  const Parts words{"concurrency", "connections", "rate", "requests"};
  EXPECT_EQ(nearest_word("concurency", words), "concurrency");
  EXPECT_EQ(nearest_word("conections", words), "connections");
  EXPECT_EQ(nearest_word("rates", words), "rate");
  EXPECT_EQ(nearest_word("rate", words), "rate");
  EXPECT_EQ(nearest_word("warmup", words), std::nullopt);
  EXPECT_EQ(nearest_word("rate", {}), std::nullopt);
  EXPECT_EQ(nearest_word("", words), std::nullopt);
  EXPECT_EQ(nearest_word("ab", Parts{"cd"}), std::nullopt);
}

}  // namespace
}  // namespace assay
