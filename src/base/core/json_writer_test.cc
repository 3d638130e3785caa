#include "base/core/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace assay {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, NestsWithCommasWhereTheyBelong) {
  JsonWriter json;
  json.begin_object();
  json.field("a", 1).field("b", "x").key("c").begin_array().value(1).value(2);
  json.begin_object().end_object().begin_array().end_array().end_array();
  json.key("d").begin_object().field("e", true).end_object().field("f", false).end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":"x","c":[1,2,{},[]],"d":{"e":true},"f":false})");
}

TEST(JsonWriter, PrettyKeepsEmptyOnesOnOneLine) {
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("a", 1).key("b").begin_array().value(1).value(2).end_array();
  json.key("c").begin_array().end_array().key("d").begin_object().end_object().end_object();
  EXPECT_EQ(json.take(), R"({
  "a": 1,
  "b": [
    1,
    2
  ],
  "c": [],
  "d": {}
})");
}

TEST(JsonWriter, NumbersAreShortestAndReadBack) {
  const auto number = [](auto v) { return JsonWriter().value(v).take(); };
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(-0.0), "-0");
  EXPECT_EQ(number(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number(5e-324), "5e-324");
  EXPECT_EQ(number(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(number(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(number(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(JsonWriter, WhatJsonCannotSayIsNull) {
  JsonWriter json;
  json.begin_array().value(std::numeric_limits<double>::quiet_NaN());
  json.value(-std::numeric_limits<double>::infinity()).value(std::optional<double>());
  json.value(std::optional<double>(2.5)).value(std::optional<std::string>("x")).null().end_array();
  EXPECT_EQ(json.text(), R"([null,null,null,2.5,"x",null])");
}

TEST(JsonWriter, RawStandsWhereAValueStands) {
  JsonWriter json;
  json.begin_array().raw(R"({"a":1})").raw("2").end_array();
  EXPECT_EQ(json.text(), R"([{"a":1},2])");
}

TEST(JsonString, Escapes) {
  EXPECT_EQ(quoted("a\"b\\c/\n\r\t"), R"("a\"b\\c/\n\r\t")");
  EXPECT_EQ(quoted(std::string_view("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
}

TEST(JsonString, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(quoted("é€😀"), "\"é€😀\"");
  EXPECT_EQ(quoted("a\xff"
                   "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(quoted("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");  // torn
  EXPECT_EQ(quoted("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");  // overlong
}

}  // namespace
}  // namespace assay
