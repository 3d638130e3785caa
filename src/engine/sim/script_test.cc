#include "engine/sim/script.h"

#include <gtest/gtest.h>

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/sim/yaml_reader.h"

namespace assay {
namespace {

Script must_parse(std::string_view yaml) {
  std::expected<Script, Errors> script = parse_script(yaml, "s.yaml");
  if (script) return *script;
  for (const Error& error : script.error()) ADD_FAILURE() << error.text();
  return {};
}

std::string problems(std::string_view yaml) {
  const std::expected<Script, Errors> script = parse_script(yaml, "s.yaml");
  if (script) return "none";
  std::string all;
  for (const Error& error : script.error()) all += error.text() + "\n";
  return all;
}

TEST(Script, ReadsEveryStep) {
  const Script script = must_parse(R"(
script: 1
model: m
connections:
  - {every: 3, do: reset}
replies:
  - match: {request_every: 2, path: /v1/completions, contains: hello}
    style: {line_end: crlf, blank: no, event_name: message, id: 7, comment: hi}
    steps:
      - head: {status: 201, framing: length, length: 10, headers: {x-a: b}}
      - bytes: 'a\xF0\r\n'
      - wait: 5ms
      - event: {choices: [{delta: {content: "a", n: 1, f: 1.5, t: true, z: null, q: "1"}}]}
      - event: {name: error, data: boom}
      - delta: {content: a}
      - finish: stop
      - usage: {completion_tokens: 3}
      - comment: keep-alive
      - repeat: {times: 2, steps: [{body: x}]}
      - tokens: {count: asked, first: 300ms, gap: 20ms, usage: always}
      - done
      - end: {trailers: {x-t: y}}
      - close
)");
  ASSERT_EQ(script.replies.size(), 1u);
  const Reply& reply = script.replies[0];
  EXPECT_EQ(reply.match.request_every, 2);
  EXPECT_EQ(reply.match.contains, "hello");
  EXPECT_EQ(reply.style.line_end, SseStyle::LineEnd::kCrLf);
  EXPECT_EQ(reply.style.after_colon, "");
  ASSERT_EQ(reply.steps.size(), 14u);
  EXPECT_EQ(std::get<HeadStep>(reply.steps[0]).length, 10);
  EXPECT_EQ(std::get<BytesStep>(reply.steps[1]).bytes, "a\xF0\r\n");
  EXPECT_EQ(std::get<WaitStep>(reply.steps[2]).wait, 5ms);
  EXPECT_EQ(std::get<EventStep>(reply.steps[3]).data,
            R"({"choices":[{"delta":{"content":"a","n":1,"f":1.5,"t":true,"z":null,"q":"1"}}]})");
  EXPECT_EQ(std::get<EventStep>(reply.steps[4]).name, "error");
  EXPECT_NE(std::get<EventStep>(reply.steps[7]).data.find(R"("choices":[],"usage":{"completion)"),
            std::string::npos);
  EXPECT_EQ(std::get<RepeatStep>(reply.steps[9]).times, 2);
  EXPECT_EQ(std::get<TokensStep>(reply.steps[10]).count, std::nullopt);
  EXPECT_EQ(std::get<TokensStep>(reply.steps[10]).usage, TokensStep::Usage::kAlways);
  EXPECT_EQ(std::get<EventStep>(reply.steps[11]).data, "[DONE]");
  EXPECT_EQ(std::get<EndStep>(reply.steps[12]).trailers.size(), 1u);
  EXPECT_EQ(std::get<LastStep>(reply.steps[13]), LastStep::kClose);
  EXPECT_EQ(script.connections[0].every, 3);
}

TEST(Script, ReadsJsonWrittenAsYaml) {
  const Script script = must_parse(
      "script: 1\nreplies: [{steps: [{event: {\"a\":[1,\"x\"],\"b\":{\"c\":null}}}]}]\n");
  ASSERT_EQ(script.replies.size(), 1u);
  EXPECT_EQ(std::get<EventStep>(script.replies[0].steps[0]).data,
            R"({"a":[1,"x"],"b":{"c":null}})");
}

TEST(Script, ListsEveryProblemWithItsLine) {
  EXPECT_EQ(
      problems(R"(script: 1
modl: x
replies:
  - match: {request_evry: 2}
    steps:
      - wait: 5
      - wat: 5ms
      - bytes: 'a\q'
      - tokens: {count: -1, gap: soon}
      - close
      - done
  - {}
)"),
      "s.yaml:2: a script knows no key \"modl\" (did you mean model?)\n"
      "s.yaml:4: match knows no key \"request_evry\" (did you mean request_every?)\n"
      "s.yaml:6: wait must be a time, not \"5\" (a number with us, ms, s, m or h, such as "
      "250ms, or a bare 0)\n"
      "s.yaml:7: there is no step \"wat\" (did you mean wait?)\n"
      "s.yaml:8: bytes has a backslash that starts no escape (the escapes are \\r \\n \\t \\0 "
      "\\\\ and \\xNN, and single quotes keep YAML's own out)\n"
      "s.yaml:9: count must be a whole number of at least 0, not \"-1\"\n"
      "s.yaml:9: gap must be a time, not \"soon\" (a number with us, ms, s, m or h, such as "
      "250ms, or a bare 0)\n"
      "s.yaml:11: no step can follow close, reset or hang (leave it out)\n"
      "s.yaml:12: a reply needs steps (to answer nothing, write \"steps: [hang]\")\n");
}

TEST(Script, RefusesWhatIsNoScript) {
  EXPECT_NE(problems("").find("a script must be a map"), std::string::npos);
  EXPECT_NE(problems("- a\n").find("a script must be a map"), std::string::npos);
  EXPECT_NE(problems("replies: [{steps: []}]").find("no script of version 1"), std::string::npos);
  EXPECT_NE(problems("script: 2\nreplies: [{steps: []}]").find("version 1"), std::string::npos);
  EXPECT_NE(problems("script: 1\n").find("at least one reply"), std::string::npos);
  EXPECT_NE(problems("script: [1\n").find("this is not YAML"), std::string::npos);
  EXPECT_NE(problems("script: 1\nconnections: [{do: reset}]\nreplies: [{steps: []}]")
                .find("either nth or every"),
            std::string::npos);
  EXPECT_NE(problems("script: 1\nreplies: [{steps: [{head: {length: 5}}]}]")
                .find("needs \"framing: length\""),
            std::string::npos);
}

TEST(Script, BoundsRepetition) {
  std::string deep = "{body: x}";
  for (int i = 0; i < 5; ++i) deep = "{repeat: {times: 2, steps: [" + deep + "]}}";
  EXPECT_NE(problems("script: 1\nreplies: [{steps: [" + deep + "]}]").find("at most 4 deep"),
            std::string::npos);
  EXPECT_NE(problems("script: 1\nreplies: [{steps: [{repeat: {times: 1000001, steps: []}}]}]")
                .find("times must be at most"),
            std::string::npos);
}

TEST(UnescapeBytes, KnowsItsEscapesAndNoOthers) {
  EXPECT_EQ(unescape_bytes(R"(a\r\n\t\\\x00\xfF)"), std::string("a\r\n\t\\\0\xff", 7));
  EXPECT_EQ(unescape_bytes(R"(\0)"), std::string(1, '\0'));
  for (const char* bad : {"\\", "a\\q", "\\x", "\\x1", "\\xg0", "\\x0g"}) {
    EXPECT_EQ(unescape_bytes(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace assay
