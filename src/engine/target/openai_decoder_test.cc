#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/target/event.h"
#include "engine/target/openai.h"

namespace assay {
namespace {

using Count = std::optional<std::int64_t>;

class OpenAiDecoderTest : public testing::Test {
 protected:
  /// The event's views live as long as `wire_` and the next call.
  TokenEvent decode(std::string_view json, std::string_view type = {}) {
    wire_ = std::string(json) + std::string(64, ' ');
    return decoder_.decode(type, std::string_view(wire_).substr(0, json.size()));
  }
  TokenEvent delta(const std::string& fields) {
    return decode(R"({"choices":[{"index":0,"delta":{)" + fields + "}}]}");
  }
  TokenEvent choice(const std::string& fields) {
    return decode(R"({"choices":[{"index":0,)" + fields + "}]}");
  }

  OpenAiDecoder decoder_;
  std::string wire_;
};

TEST_F(OpenAiDecoderTest, ContentIsText) {
  const TokenEvent event = delta(R"("content":"Hi \u00e9\n\ud83d\ude00")");
  EXPECT_EQ(event.text, "Hi \xc3\xa9\n\xf0\x9f\x98\x80");
  EXPECT_TRUE(event.has_output());
  EXPECT_FALSE(event.malformed || event.error || event.end || event.whole);
  EXPECT_EQ(event.tokens, std::nullopt);
}

TEST_F(OpenAiDecoderTest, ADeltaWithoutOutputIsNoToken) {
  for (const char* fields : {R"("role":"assistant")", R"("role":"assistant","content":"")",
                             R"("content":null)", R"("content":[])", R"("tool_calls":[])",
                             R"("reasoning_content":null,"refusal":null,"function_call":null)"}) {
    const TokenEvent event = delta(fields);
    EXPECT_FALSE(event.has_output()) << fields;
    EXPECT_FALSE(event.malformed || event.error) << fields;
  }
}

TEST_F(OpenAiDecoderTest, ContentMayComeInParts) {
  EXPECT_EQ(delta(R"("content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}])").text,
            "ab");
}

TEST_F(OpenAiDecoderTest, ReasoningHasTwoNamesAndCountsOnce) {
  EXPECT_EQ(delta(R"("reasoning_content":"hm")").reasoning, "hm");
  EXPECT_EQ(delta(R"("reasoning":"hm")").reasoning, "hm");
  const TokenEvent both = delta(R"("reasoning":"hm","content":null,"reasoning_content":"hm")");
  EXPECT_EQ(both.reasoning, "hm");
  EXPECT_EQ(both.text, "");
  EXPECT_TRUE(both.has_output());
}

TEST_F(OpenAiDecoderTest, ARefusalIsVisibleOutput) {
  EXPECT_EQ(delta(R"("refusal":"No.")").text, "No.");
}

TEST_F(OpenAiDecoderTest, ToolCallsCountTheirNamesAndArguments) {
  const TokenEvent named = delta(
      R"("tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"get","arguments":""}}])");
  EXPECT_TRUE(named.tool && named.has_output());
  EXPECT_EQ(named.tool_bytes, 3U);
  const TokenEvent more = delta(
      R"("tool_calls":[{"function":{"arguments":"{\"a\""}},{"function":{"arguments":":1}"}}])");
  EXPECT_EQ(more.tool_bytes, 7U);
  EXPECT_FALSE(delta(R"("tool_calls":[{"index":0,"function":{"arguments":""}}])").has_output());
  EXPECT_EQ(delta(R"("function_call":{"name":"f","arguments":"{}"})").tool_bytes, 3U);
}

TEST_F(OpenAiDecoderTest, CompletionsHaveTheirTextInTheChoice) {
  EXPECT_EQ(choice(R"("text":" world","logprobs":null,"finish_reason":null)").text, " world");
}

TEST_F(OpenAiDecoderTest, AnUnstreamedReplyHasAMessage) {
  const TokenEvent event = decode(
      R"({"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"all",)"
      R"("reasoning_content":"why"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}})");
  EXPECT_EQ(event.text, "all");
  EXPECT_EQ(event.reasoning, "why");
  EXPECT_EQ(event.finish_reason, "stop");
  EXPECT_EQ(event.usage.output, 2);
}

TEST_F(OpenAiDecoderTest, TheWholeReplySoFarBesideADeltaCountsNotAgain) {
  const TokenEvent event =
      decode(R"({"object":"chat.completion.chunk","choices":[{"message":{"content":"all so far"},)"
             R"("delta":{"content":"far"}}]})");
  EXPECT_EQ(event.text, "far");
}

TEST_F(OpenAiDecoderTest, AReplyThatFailedInsideIsAnError) {
  for (const char* reason : {"error", "abort"}) {
    const TokenEvent event =
        choice(R"("delta":{"content":"a"},"finish_reason":")" + std::string(reason) + '"');
    EXPECT_TRUE(event.error) << reason;
    EXPECT_EQ(event.error_code, reason);
    EXPECT_EQ(event.error_text, "the server ended the reply with this finish_reason");
    EXPECT_EQ(event.text, "a");
  }
  const TokenEvent told = decode(
      R"({"error":{"message":"no blocks","code":500},"choices":[{"finish_reason":"error"}]})");
  EXPECT_EQ(told.error_text, "no blocks");
  EXPECT_EQ(told.error_code, "500");
}

TEST_F(OpenAiDecoderTest, AFinishReasonEndsAChoice) {
  const TokenEvent event = choice(R"("delta":{},"finish_reason":"length")");
  EXPECT_EQ(event.finish_reason, "length");
  EXPECT_EQ(event.choices_finished, 1U);
  EXPECT_EQ(choice(R"("delta":{},"finish_reason":null)").choices_finished, 0U);
  EXPECT_EQ(choice(R"("delta":{},"finish_reason":"")").choices_finished, 0U);
}

TEST_F(OpenAiDecoderTest, SeveralChoicesAreJoined) {
  const TokenEvent event = decode(
      R"({"choices":[{"delta":{"content":"a"},"finish_reason":"stop"},{"delta":{"content":"b"}},)"
      R"({"delta":{"content":"c"},"finish_reason":"length"}]})");
  EXPECT_EQ(event.text, "abc");
  EXPECT_EQ(event.choices_finished, 2U);
  EXPECT_EQ(event.finish_reason, "length");
  EXPECT_EQ(delta(R"("content":"d")").text, "d");  // nothing is left of the event before
}

struct UsageCase {
  const char* json;
  Count prompt, cached, output, reasoning;
};

TEST_F(OpenAiDecoderTest, UsageIsFoundWhereverServersPutIt) {
  const std::vector<UsageCase> cases = {
      {R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}})",
       5,
       {},
       7,
       {}},
      {R"({"usage":{"prompt_tokens":5,"completion_tokens":7,)"
       R"("prompt_tokens_details":{"cached_tokens":3},)"
       R"("completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0}}})",
       5, 3, 7, 2},
      {R"({"usage":{"input_tokens":5,"output_tokens":7,"input_tokens_details":{"cached_tokens":3},)"
       R"("output_tokens_details":{"reasoning_tokens":2}}})",
       5, 3, 7, 2},
      {R"({"usage":{"prompt_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":1}})",
       5,
       4,
       {},
       {}},
      {R"({"choices":[{"delta":{},"usage":{"prompt_tokens":5,"cached_tokens":1}}]})", 5, 1, {}, {}},
      {R"({"choices":[{"delta":{"usage":{"completion_tokens":9}}}]})", {}, {}, 9, {}},
      {R"({"usage":{"prompt_tokens":5,"completion_tokens":7,"reasoning_tokens":6,)"
       R"("prompt_tokens_details":null}})",
       5,
       {},
       7,
       6},
      {R"({"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":7}}})", 5, {}, 7, {}},
      {R"({"timings":{"cache_n":3,"prompt_n":2,"predicted_n":7,"predicted_ms":1.5}})", 5, 3, 7, {}},
      {R"({"timings":{"prompt_n":2,"predicted_n":7}})", 2, {}, 7, {}},
      {R"({"timings":{"prompt_n":9,"predicted_n":9},"usage":{"prompt_tokens":5}})", 5, {}, 9, {}},
      {R"({"usage":{"prompt_tokens":"5","completion_tokens":7.0,"reasoning_tokens":0}})",
       5,
       {},
       7,
       0},
      {R"({"usage":{"prompt_tokens":-1,"completion_tokens":null,"cached_tokens":"many"}})",
       {},
       {},
       {},
       {}},
      {R"({"usage":null,"timings":null,"x_groq":null})", {}, {}, {}, {}},
      {R"({"usage":[1],"timings":"fast","x_groq":7})", {}, {}, {}, {}},
  };
  for (const UsageCase& c : cases) {
    const TokenEvent event = decode(c.json);
    EXPECT_FALSE(event.malformed || event.error) << c.json;
    EXPECT_EQ(event.usage.prompt, c.prompt) << c.json;
    EXPECT_EQ(event.usage.cached, c.cached) << c.json;
    EXPECT_EQ(event.usage.output, c.output) << c.json;
    EXPECT_EQ(event.usage.reasoning, c.reasoning) << c.json;
    EXPECT_EQ(event.usage.any(), c.prompt || c.cached || c.output || c.reasoning) << c.json;
  }
}

TEST_F(OpenAiDecoderTest, TokensAreCountedByIdsElseByLogprobs) {
  EXPECT_EQ(choice(R"("delta":{"content":"ab"},"token_ids":[1,2,3])").tokens, 3U);
  EXPECT_EQ(delta(R"("content":"ab","token_ids":[1,2])").tokens, 2U);
  EXPECT_EQ(choice(R"("delta":{"content":"a"},"logprobs":{"content":[{"token":"a"}],)"
                   R"("refusal":null})")
                .tokens,
            1U);
  EXPECT_EQ(
      choice(R"("text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[-1,-2]})").tokens, 2U);
  EXPECT_EQ(
      choice(R"("logprobs":{"content":[1]},"token_ids":[1,2],"delta":{"content":"a"})").tokens, 2U);
  for (const char* none : {R"("token_ids":null)", R"("token_ids":[])", R"("logprobs":null)",
                           R"("logprobs":{"content":null})", R"("logprobs":{"content":[]})"}) {
    EXPECT_EQ(choice(none).tokens, std::nullopt) << none;
  }
  EXPECT_TRUE(choice(R"("delta":{"content":""},"token_ids":[5])").has_output());
}

struct ErrorCase {
  const char* json;
  const char* code;
  const char* text;
};

TEST_F(OpenAiDecoderTest, ErrorsComeInManyForms) {
  const std::vector<ErrorCase> cases = {
      {R"({"error":{"message":"no room","type":"BadRequestError","param":null,"code":400}})", "400",
       "no room"},
      {R"({"error":{"message":"no","type":"invalid_request_error","code":"too_long"}})", "too_long",
       "no"},
      {R"({"error":{"message":"no","type":"server_error","code":null}})", "server_error", "no"},
      {R"({"error":"it broke"})", "", "it broke"},
      {R"({"error":"it broke","code":503})", "503", "it broke"},
      {R"({"error":{"message":"inner","code":50000},"code":4,"message":"outer"})", "50000",
       "inner"},
      {R"({"code":4,"message":"outer","error":{"message":"inner","code":50000}})", "50000",
       "inner"},
      {R"({"object":"error","message":"too long","type":"BadRequestError","code":400})", "400",
       "too long"},
      {R"({"type":"error","error":{"type":"overloaded_error","message":"busy"}})",
       "overloaded_error", "busy"},
      {R"({"error":true,"message":"odd"})", "", "odd"},
      {R"({"error":{}})", "", R"({"error":{}})"},
      {R"({"error":500})", "", R"({"error":500})"},
      {R"({"choices":[{"error":{"code":502,"message":"upstream"}}]})", "502", "upstream"},
      {R"({"x_groq":{"error":"over capacity"}})", "", "over capacity"},
  };
  for (const ErrorCase& c : cases) {
    const TokenEvent event = decode(c.json);
    EXPECT_TRUE(event.error) << c.json;
    EXPECT_FALSE(event.malformed) << c.json;
    EXPECT_EQ(event.error_code, c.code) << c.json;
    EXPECT_EQ(event.error_text, c.text) << c.json;
  }
}

TEST_F(OpenAiDecoderTest, TheEventFieldAloneMakesAnError) {
  EXPECT_EQ(decode(R"({"message":"overloaded","code":"x"})", "error").error_text, "overloaded");
  const TokenEvent plain = decode("upstream timed out", "error");
  EXPECT_TRUE(plain.error);
  EXPECT_FALSE(plain.malformed);
  EXPECT_EQ(plain.error_text, "upstream timed out");
  EXPECT_TRUE(decode("", "error").error);
  EXPECT_FALSE(decode(R"({"choices":[]})", "message").error);
}

TEST_F(OpenAiDecoderTest, NoErrorIsNoError) {
  for (const char* json :
       {R"({"error":null,"choices":[]})", R"({"error":false})", R"({"error":"","choices":[]})",
        R"({"choices":[{"error":null,"delta":{"content":"a"}}]})",
        R"({"message":"hello","code":1,"detail":"x"})"}) {
    EXPECT_FALSE(decode(json).error) << json;
    EXPECT_FALSE(decode(json).malformed) << json;
  }
}

TEST_F(OpenAiDecoderTest, DoneIsTheEndAlsoAmongBlanks) {
  for (const char* done : {"[DONE]", " [DONE]", "[DONE] ", "\t[DONE]\n"}) {
    EXPECT_TRUE(decode(done).end) << done;
    EXPECT_FALSE(decode(done).malformed) << done;
  }
  EXPECT_TRUE(decode("[done]").malformed);
}

TEST_F(OpenAiDecoderTest, EmptyDataKeepsTheStreamAlive) {
  for (const char* nothing : {"", " ", "\n"}) {
    const TokenEvent event = decode(nothing);
    EXPECT_FALSE(event.malformed || event.end || event.error || event.has_output());
  }
}

TEST_F(OpenAiDecoderTest, WhatIsNoObjectOfJsonIsMalformedAndNothingOfItBelieved) {
  const std::string good = R"({"choices":[{"delta":{"content":"x"}}]})";
  std::vector<std::string> bad = {"{",
                                  "}",
                                  "[]",
                                  "[1]",
                                  "\"text\"",
                                  "12",
                                  "nu",
                                  R"({"a":1)",
                                  R"({"a":})",
                                  R"({"a" 1})",
                                  R"({"a":1,})",
                                  "<html>busy</html>",
                                  good + "x",
                                  good + good,
                                  good + "}",
                                  R"({"choices":[{"delta":{"content":"x"]}]})",
                                  R"({"choices":[{"delta":{"content":"\q"}}]})",
                                  "{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}",
                                  "{\"choices\":[{\"delta\":{\"content\":\"a\nb\"}}]}"};
  for (std::size_t cut = 1; cut < good.size(); ++cut) bad.push_back(good.substr(0, cut));
  for (const std::string& json : bad) {
    const TokenEvent event = decode(json);
    EXPECT_TRUE(event.malformed) << json;
    EXPECT_FALSE(event.has_output() || event.error || event.end) << json;
  }
  EXPECT_EQ(decode(good).text, "x");  // a decoder survives them all
}

TEST_F(OpenAiDecoderTest, DeepNestingDoesNoHarm) {
  constexpr std::size_t kDepth = 10'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const TokenEvent skipped =
      decode(R"({"unknown":)" + deep + R"(,"choices":[{"delta":{"content":"x"}}]})");
  EXPECT_TRUE(skipped.malformed || skipped.text == "x");
  std::string objects;
  for (std::size_t i = 0; i < kDepth; ++i) objects += R"({"choices":[)";
  EXPECT_TRUE(decode(objects).malformed);
  EXPECT_TRUE(decode(std::string(kDepth, '{')).malformed);
  EXPECT_FALSE(decode(R"({"choices":)" + deep + "}").has_output());
}

TEST_F(OpenAiDecoderTest, UnknownFieldsOfAnyTypeAreNoErrorAnywhere) {
  for (const std::string value :
       {"1", "-1.5e3", "true", "null", "\"s\"", "[]", "{}", R"([1,{"choices":[]},"x"])",
        R"({"content":"no","usage":{"prompt_tokens":1}})"}) {
    const std::string extra = R"("new_field":)" + value;
    const TokenEvent event =
        decode("{" + extra + R"(,"choices":[{)" + extra + R"(,"delta":{)" + extra +
               R"(,"content":"x",)" + extra + "}," + extra + "}]," + extra + R"(,"usage":{)" +
               extra + R"(,"completion_tokens":1}})");
    EXPECT_FALSE(event.malformed || event.error) << value;
    EXPECT_EQ(event.text, "x") << value;
    EXPECT_EQ(event.usage.prompt, std::nullopt) << value;
    EXPECT_EQ(event.usage.output, 1) << value;
  }
}

TEST_F(OpenAiDecoderTest, KnownFieldsOfAnUnexpectedTypeAreLeftOut) {
  for (const std::string value : {"1", "true", "null", "\"s\"", "[]", "{}", "[1]", "[[]]"}) {
    const std::string json = R"({"choices":)" + value + R"(,"usage":)" + value + R"(,"object":)" +
                             value + R"(,"code":)" + value + R"(,"timings":)" + value + "}";
    const TokenEvent event = decode(json);
    EXPECT_FALSE(event.malformed || event.error || event.has_output()) << json;
  }
}

TEST_F(OpenAiDecoderTest, TheOrderOfFieldsDoesNotMatter) {
  std::vector<std::string> fields = {
      R"("choices":[{"finish_reason":"stop","delta":{"content":"a","reasoning":"b"},"index":0}])",
      R"("usage":{"completion_tokens":7,"prompt_tokens":5})", R"("error":{"code":1,"message":"m"})",
      R"("code":22222)", R"("timings":{"predicted_n":8,"cache_n":1,"prompt_n":2})"};
  std::ranges::sort(fields);
  do {
    std::string json = "{";
    for (const std::string& field : fields) json += (json.size() > 1 ? "," : "") + field;
    const TokenEvent event = decode(json + "}");
    EXPECT_EQ(event.text, "a");
    EXPECT_EQ(event.reasoning, "b");
    EXPECT_EQ(event.finish_reason, "stop");
    EXPECT_EQ(event.error_code, "1");
    EXPECT_EQ(event.error_text, "m");
    EXPECT_EQ(event.usage.output, 7);
    EXPECT_EQ(event.usage.prompt, 5);
    EXPECT_EQ(event.usage.cached, 1);
  } while (std::ranges::next_permutation(fields).found);
}

TEST_F(OpenAiDecoderTest, ManyPiecesInOneEventAreJoinedInGoodTime) {
  std::string json = R"({"choices":[)";
  for (int i = 0; i < 50'000; ++i) json += R"({"delta":{"content":"piece"}},)";
  json.back() = ']';
  EXPECT_EQ(decode(json + "}").text.size(), 250'000U);
}

TEST_F(OpenAiDecoderTest, AnErrorBodyOfAnyShapeGivesAText) {
  const std::string html = "<html><body>502 Bad Gateway</body></html>\n";
  const std::vector<std::pair<std::string, std::pair<std::string, std::string>>> cases = {
      {R"({"error":{"message":"gone","type":"NotFoundError","code":404}})", {"404", "gone"}},
      {R"({"detail":"Not Found"})", {"", "Not Found"}},
      {R"({"object":"error","message":"long","type":"T","code":400})", {"400", "long"}},
      {R"({"message":"limit","code":"rate_limit"})", {"rate_limit", "limit"}},
      {R"({"error":"plain"})", {"", "plain"}},
      {R"({"detail":[{"loc":["body"],"msg":"field required"}]})",
       {"", R"({"detail":[{"loc":["body"],"msg":"field required"}]})"}},
      {"{\"error\":", {"", "{\"error\":"}},
      {html, {"", "<html><body>502 Bad Gateway</body></html>"}},
      {"Service Unavailable", {"", "Service Unavailable"}},
      {"", {"", ""}},
      {" \n", {"", ""}},
  };
  for (const auto& [body, told] : cases) {
    const TokenEvent event = decoder_.decode_error_body(body);
    EXPECT_TRUE(event.error) << body;
    EXPECT_EQ(event.error_code, told.first) << body;
    EXPECT_EQ(event.error_text, told.second) << body;
  }
}

TEST_F(OpenAiDecoderTest, ALongErrorBodyIsCutBetweenCharacters) {
  std::string body = "x";
  for (int i = 0; i < 100; ++i) body += "\xe2\x82\xac";
  const TokenEvent event = decoder_.decode_error_body(body);
  EXPECT_EQ(event.error_text, std::string_view(body).substr(0, 199));
}

}  // namespace
}  // namespace assay
