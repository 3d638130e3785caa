#include "engine/sim/playback.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/core/time.h"
#include "engine/sim/script.h"

namespace assay {
namespace {

Playback play(std::string_view steps, const AskedReply& asked = {}, std::string_view style = "{}") {
  const auto script = parse_script("script: 1\nreplies:\n  - style: " + std::string(style) +
                                       "\n    steps: " + std::string(steps) + "\n",
                                   "s.yaml");
  if (!script) {
    ADD_FAILURE() << script.error().front().text();
    return {};
  }
  return compose(script->replies[0], asked);
}

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n";

TEST(Playback, WritesTheHeadAndTheEndByItself) {
  const Playback playback = play("[{event: hi}]");
  EXPECT_EQ(playback.wire(), std::string(kHead) + "a\r\ndata: hi\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(playback.sends.size(), 1u);
  EXPECT_FALSE(playback.last);
}

TEST(Playback, ABareStreamOfBytesStaysBare) {
  EXPECT_EQ(play(R"([{bytes: 'HTTP/1.1 200 OK\r\n\r\nhi'}, close])").wire(),
            "HTTP/1.1 200 OK\r\n\r\nhi");
}

TEST(Playback, WaitsPartSendsAndAddUp) {
  const Playback playback = play(
      "[{bytes: a}, {bytes: b}, {wait: 5ms}, {bytes: c}, {wait: 0}, {bytes: d}, {wait: 7ms}, "
      "reset]");
  ASSERT_EQ(playback.sends.size(), 3u);
  EXPECT_EQ(playback.sends[0].bytes, "ab");
  EXPECT_EQ(playback.sends[0].at, 0ns);
  EXPECT_EQ(playback.sends[1].at, 5ms);
  EXPECT_EQ(playback.sends[2].bytes, "d");
  EXPECT_EQ(playback.sends[2].at, 5ms);
  EXPECT_EQ(playback.last, LastStep::kReset);
  EXPECT_EQ(playback.last_at, 12ms);
}

TEST(Playback, FramesByLengthAndByClose) {
  EXPECT_EQ(play("[{head: {framing: length, content_type: t}}, {body: abc}, {body: d}]").wire(),
            "HTTP/1.1 200 OK\r\ncontent-type: t\r\ncontent-length: 4\r\n\r\nabcd");
  EXPECT_EQ(play("[{head: {framing: length, length: 9, content_type: ''}}, {body: abc}]").wire(),
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc");
  const Playback closed = play("[{head: {framing: close, content_type: t}}, {body: abc}]");
  EXPECT_EQ(closed.wire(), "HTTP/1.1 200 OK\r\ncontent-type: t\r\nconnection: close\r\n\r\nabc");
  EXPECT_EQ(closed.last, LastStep::kClose);
}

TEST(Playback, WritesChunksAsTold) {
  const std::string wire = play(
                               "[{head: {chunk_size: 2, chunk_extension: ';a=b'}}, {body: abc}, "
                               "{end: {trailers: {x: y}}}]")
                               .wire();
  EXPECT_TRUE(wire.ends_with("\r\n\r\n2;a=b\r\nab\r\n1;a=b\r\nc\r\n0\r\nx: y\r\n\r\n")) << wire;
}

TEST(Playback, ACutReplyHasNoEnd) {
  EXPECT_TRUE(play("[{body: abc}, close]").wire().ends_with("3\r\nabc\r\n"));
}

TEST(Playback, KnowsTheStylesOfSse) {
  const auto body = [](std::string_view style) {
    return play("[{head: {framing: length, content_type: ''}}, {event: \"a\\nb\"}]", {}, style)
        .wire();
  };
  EXPECT_TRUE(body("{}").ends_with("\r\n\r\ndata: a\ndata: b\n\n"));
  EXPECT_TRUE(body("{line_end: crlf}").ends_with("data: a\r\ndata: b\r\n\r\n"));
  EXPECT_TRUE(body("{line_end: cr, blank: no}").ends_with("\r\n\r\ndata:a\rdata:b\r\r"));
  EXPECT_TRUE(body("{line_end: mixed}").ends_with("data: a\ndata: b\r\n\r"));
  EXPECT_TRUE(body("{event_name: e, id: 1, retry: 2, comment: c}")
                  .ends_with("event: e\nid: 1\nretry: 2\n: c\ndata: a\ndata: b\n\n"));
  // \r then a blank line ended by \n would be one line end.
  EXPECT_TRUE(body("{line_end: mixed, id: 1}").ends_with("id: 1\ndata: a\r\ndata: b\r\r"));
}

int count(std::string_view text, std::string_view what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size())) {
    ++n;
  }
  return n;
}

TEST(Playback, PlaysTokensAsAsked) {
  AskedReply asked;
  asked.max_tokens = 5;
  asked.include_usage = true;
  const Playback playback = play("[{tokens: {first: 30ms, gap: 2ms, reasoning: 2}}]", asked);
  const std::string wire = playback.wire();
  EXPECT_EQ(count(wire, "\"reasoning_content\":\" tok\""), 2);
  EXPECT_EQ(count(wire, "\"content\":\" tok\""), 3);
  EXPECT_EQ(count(wire, "\"role\":\"assistant\""), 1);
  EXPECT_EQ(count(wire, "\"completion_tokens\":5"), 1);
  EXPECT_EQ(count(wire, "\"reasoning_tokens\":2"), 1);
  EXPECT_EQ(count(wire, "data: [DONE]"), 1);
  ASSERT_EQ(playback.sends.size(), 7u);  // head and role, five tokens, the end
  EXPECT_EQ(playback.sends[1].at, 30ms);
  EXPECT_EQ(playback.sends[5].at, 38ms);
  EXPECT_EQ(playback.sends[6].at, 38ms);
}

TEST(Playback, PlaysSeveralTokensPerEvent) {
  AskedReply asked;
  asked.chat = false;
  const std::string wire = play("[{tokens: {count: 5, per_event: 2, text: x}}]", asked).wire();
  EXPECT_EQ(count(wire, "\"text\":\"xx\""), 2);
  EXPECT_EQ(count(wire, "\"text\":\"x\""), 1);
  EXPECT_EQ(count(wire, "usage"), 0);
  EXPECT_EQ(count(wire, "role"), 0);
}

TEST(Playback, AnswersWholeWhereNoStreamIsAsked) {
  AskedReply asked;
  asked.stream = false;
  const Playback playback = play("[{tokens: {count: 3, first: 10ms, gap: 5ms, text: x}}]", asked);
  EXPECT_EQ(playback.sends[0].at, 20ms);
  EXPECT_EQ(count(playback.wire(), "\"content\":\"xxx\""), 1);
  EXPECT_EQ(count(playback.wire(), "content-length: "), 1);
  EXPECT_EQ(count(playback.wire(), "@"), 0);
}

TEST(AskedReply, ReadsWhatTheRequestSays) {
  const AskedReply asked = read_asked_reply(
      "/v1/chat/completions",
      R"({"model":"m","stream":true,"max_tokens":7,"stream_options":{"include_usage":true},)"
      R"("messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]})");
  EXPECT_EQ(asked.max_tokens, 7);
  EXPECT_TRUE(asked.stream);
  EXPECT_TRUE(asked.include_usage);
  EXPECT_TRUE(asked.chat);
  EXPECT_EQ(asked.prompt, "a\nb");
  EXPECT_EQ(read_asked_reply("/v1/completions", R"({"prompt":"p"})").prompt, "p");
  EXPECT_FALSE(read_asked_reply("/v1/completions", "not json").stream);
}

}  // namespace
}  // namespace assay
