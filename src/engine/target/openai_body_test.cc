#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/result.h"
#include "engine/target/openai.h"

namespace assay {
namespace {

OpenAiRequestOptions options(std::string body = {}) {
  OpenAiRequestOptions o;
  o.model = "m";
  o.body = std::move(body);
  return o;
}

std::string filled(const OpenAiRequestOptions& o, std::string_view prompt = "hi") {
  const Result<OpenAiBody> body = OpenAiBody::create(o);
  EXPECT_TRUE(body) << (body ? "" : body.error().text());
  return body ? body->fill(prompt, 16) : "";
}

TEST(OpenAiBody, OfAChat) {
  EXPECT_EQ(filled(options()),
            R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":16,)"
            R"("temperature":0,"ignore_eos":true,"min_tokens":16,"stream":true,)"
            R"("stream_options":{"include_usage":true}})");
}

TEST(OpenAiBody, OfACompletionUnstreamedAndOfAnyLength) {
  OpenAiRequestOptions o = options();
  o.chat = o.stream = o.exact_output = false;
  EXPECT_EQ(filled(o),
            R"({"model":"m","prompt":"hi","max_tokens":16,"temperature":0,"stream":false})");
}

OpenAiRequestOptions short_options(std::string body) {
  OpenAiRequestOptions o = options(std::move(body));
  o.chat = o.stream = o.exact_output = false;
  return o;
}

TEST(OpenAiBody, TheUsersKeysWinInTheirPlaceAndNewOnesFollow) {
  EXPECT_EQ(filled(short_options(R"( {"temperature": 0.7, "top_p": 0.9, "stop": ["a", "b"]} )")),
            R"({"model":"m","prompt":"hi","max_tokens":16,"temperature":0.7,"stream":false,)"
            R"("top_p":0.9,"stop":["a","b"]})");
}

TEST(OpenAiBody, NullTakesAKeyAway) {
  EXPECT_EQ(filled(short_options(R"({"temperature":null,"max_tokens":null,"no_such":null})")),
            R"({"model":"m","prompt":"hi","stream":false})");
  EXPECT_EQ(filled(short_options(R"({"model":null,"prompt":null,"max_tokens":null,)"
                                 R"("temperature":null,"stream":null})")),
            "{}");
}

TEST(OpenAiBody, AHoleThatTheUserFillsStaysFilled) {
  EXPECT_EQ(filled(short_options(R"({"prompt":"mine","max_tokens":5})"), "theirs"),
            R"({"model":"m","prompt":"mine","max_tokens":5,"temperature":0,"stream":false})");
}

TEST(OpenAiBody, AStreamTurnedOffByTheUserTakesItsOptionsAlong) {
  EXPECT_EQ(filled(options(R"({"stream":false})")).find("stream_options"), std::string::npos);
  EXPECT_EQ(filled(options(R"({"stream":null})")).find("stream_options"), std::string::npos);
  EXPECT_NE(filled(options(R"({"stream":true})")).find("stream_options"), std::string::npos);
  EXPECT_NE(filled(options(R"({"stream":false,"stream_options":{"x":1}})")).find(R"({"x":1})"),
            std::string::npos);
}

TEST(OpenAiBody, KnowsHowManyChoicesAReplyHas) {
  const auto choices = [](std::string body) {
    const Result<OpenAiBody> made = OpenAiBody::create(options(std::move(body)));
    return made ? made->choices() : -1;
  };
  EXPECT_EQ(choices(""), 1);
  EXPECT_EQ(choices(R"({"n":3})"), 3);
  EXPECT_EQ(choices(R"({"n":0})"), 1);
  EXPECT_EQ(choices(R"({"n":null})"), 1);
  EXPECT_EQ(choices(R"({"n":"2"})"), 1);
  EXPECT_EQ(choices(R"({"n":4294967296})"), 2147483647);
}

TEST(OpenAiBody, AnyPromptMakesValidJson) {
  std::string controls;
  for (int c = 0; c < 128; ++c) controls += static_cast<char>(c);
  const Result<OpenAiBody> body = OpenAiBody::create(options());
  ASSERT_TRUE(body);
  for (const std::string& prompt :
       {std::string(), controls, std::string(R"("}],"x":[{"\)"), std::string("\0p\0t", 4),
        std::string("caf\xc3\xa9 \xf0\x9f\x98\x80"), std::string(100'000, '"')}) {
    const std::string json = body->fill(prompt, 1);
    simdjson::dom::parser parser;
    std::string_view content;
    ASSERT_EQ(parser.parse(json)["messages"].at(0)["content"].get(content), simdjson::SUCCESS);
    EXPECT_EQ(content, prompt);
  }
  // What is not UTF-8 can't pass through JSON; the rest of the request must.
  simdjson::dom::parser parser;
  EXPECT_EQ(parser.parse(body->fill("a\xff\xc3", 1)).error(), simdjson::SUCCESS);
}

TEST(OpenAiBody, HostileModelAndKeysMakeValidJson) {
  OpenAiRequestOptions o = options(R"({"a\"b\u0000p":"x\u0000t\u0000p\n"})");
  o.model = std::string("m\"\0p\0t\n", 7);
  const std::string json = filled(o);
  simdjson::dom::parser parser;
  std::string_view model;
  std::string_view value;
  const auto document = parser.parse(json);
  ASSERT_EQ(document["model"].get(model), simdjson::SUCCESS) << json;
  EXPECT_EQ(model, o.model);
  ASSERT_EQ(document[std::string_view("a\"b\0p", 5)].get(value), simdjson::SUCCESS) << json;
  EXPECT_EQ(value, std::string_view("x\0t\0p\n", 6));
}

TEST(OpenAiBody, TheLongestOutputFits) {
  const Result<OpenAiBody> body = OpenAiBody::create(short_options(""));
  ASSERT_TRUE(body);
  EXPECT_NE(body->fill("", INT64_MAX).find(R"("max_tokens":9223372036854775807,)"),
            std::string::npos);
}

TEST(OpenAiBody, WhatIsNoObjectIsRefused) {
  for (const char* bad : {"[]", "1", "\"x\"", "{", "{]", "temperature=1", R"({"a":1} x)"}) {
    const Result<OpenAiBody> body = OpenAiBody::create(options(bad));
    ASSERT_FALSE(body) << bad;
    EXPECT_EQ(body.error().code, ExitCode::kUsage);
    EXPECT_EQ(body.error().where, "--body");
    EXPECT_EQ(body.error().what, "the extra body is no JSON object");
  }
  EXPECT_TRUE(OpenAiBody::create(options(" \n")));
}

}  // namespace
}  // namespace assay
