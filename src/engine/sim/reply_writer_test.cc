#include "engine/sim/reply_writer.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/text.h"
#include "engine/sim/emission.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/sim_text.h"

namespace assay {
namespace {

constexpr StreamId kStream = (StreamId{1} << 32) | 7;

ReplyWriter writer(ReplyWriter::Reply reply) {
  reply.id = "1";
  reply.model = "a \"model\"";
  reply.request_id = "r-1";
  reply.created = 5;
  reply.prompt_tokens = 3;
  ReplyWriter made;
  made.begin(reply);
  return made;
}

/// What the HTTP chunks hold; each size must be right.
std::string unchunked(std::string_view wire) {
  std::string body;
  while (!wire.empty()) {
    const std::size_t line = wire.find("\r\n");
    std::size_t size = 0;
    std::from_chars(wire.data(), wire.data() + line, size, 16);
    EXPECT_GE(wire.size(), line + 2 + size + 2);
    body += wire.substr(line + 2, size);
    EXPECT_EQ(wire.substr(line + 2 + size, 2), "\r\n");
    wire.remove_prefix(line + 2 + size + 2);
  }
  return body;
}

std::string text_of(StreamId stream, std::int64_t first, std::int64_t count) {
  std::string text;
  append_sim_tokens(text, stream, first, count);
  return text;
}

TEST(ReplyWriter, ChatEventsAreChunksOfTheirOwn) {
  const ReplyWriter chat = writer({.usage = ReplyWriter::Usage::kEnd});
  std::string out;
  EXPECT_TRUE(chat.role(out));
  const std::size_t text = chat.tokens(out, {kStream, 0, 2, false});
  EXPECT_EQ(text, text_of(kStream, 0, 2).size());
  chat.tokens(out, {kStream, 2, 1, true});
  EXPECT_EQ(chat.finish(out, {"length", 3, 1}), 2);
  EXPECT_TRUE(chat.done(out));
  const std::string start =
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,)"
      R"("model":"a \"model\"",)";
  const std::string tail = R"(},"logprobs":null,"finish_reason":null}],"usage":null})"
                           "\n\n";
  const std::string delta = start + R"("choices":[{"index":0,"delta":{)";
  EXPECT_EQ(unchunked(out),
            delta + R"("role":"assistant","content":"")" + tail +                            //
                delta + R"("content":")" + text_of(kStream, 0, 2) + "\"" + tail +            //
                delta + R"("reasoning_content":")" + text_of(kStream, 2, 1) + "\"" + tail +  //
                delta + R"(},"logprobs":null,"finish_reason":"length"}],"usage":null})" + "\n\n" +
                start + R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,)" +
                R"("total_tokens":6,"completion_tokens_details":{"reasoning_tokens":1}}})" +
                "\n\ndata: [DONE]\n\n");
}

TEST(ReplyWriter, UsageComesAsItIsAskedFor) {
  std::string none;
  const ReplyWriter silent = writer({.usage = ReplyWriter::Usage::kNone});
  silent.tokens(none, {kStream, 0, 1, false});
  EXPECT_EQ(silent.finish(none, {"length", 1, 0}), 1);
  EXPECT_EQ(none.find("usage"), std::string::npos);
  std::string each;
  writer({.usage = ReplyWriter::Usage::kEach}).tokens(each, {kStream, 4, 2, false});
  EXPECT_NE(each.find(R"("usage":{"prompt_tokens":3,"completion_tokens":6,"total_tokens":9})"),
            std::string::npos);
}

TEST(ReplyWriter, OtherDialectsHaveNoRoleAndTheirOwnEnds) {
  std::string out;
  const ReplyWriter text = writer({.dialect = ServeDialect::kCompletions});
  EXPECT_FALSE(text.role(out));
  text.tokens(out, {kStream, 0, 1, false});
  EXPECT_NE(out.find(R"("choices":[{"index":0,"text":")" + text_of(kStream, 0, 1) + "\""),
            std::string::npos);
  std::string native;
  const ReplyWriter llama =
      writer({.dialect = ServeDialect::kLlamaCpp, .usage = ReplyWriter::Usage::kEnd});
  EXPECT_FALSE(llama.role(native));
  EXPECT_EQ(llama.finish(native, {"stop", 8, 0}), 1);
  EXPECT_FALSE(llama.done(native));
  EXPECT_EQ(unchunked(native),
            R"(data: {"index":0,"content":"","tokens":[],"stop":true,"id_slot":-1,)"
            R"("stop_type":"eos","tokens_predicted":8,"tokens_evaluated":3,)"
            R"("timings":{"prompt_n":3,"predicted_n":8}})"
            "\n\n");
}

TEST(ReplyWriter, FaultsChangeTheBytesAndNotWhatTheySay) {
  std::string plain, strange;
  writer({}).tokens(plain, {kStream, 0, 1, false});
  writer({.wire = kWireCrLf | kWireComments}).tokens(strange, {kStream, 0, 1, false});
  std::string mended = unchunked(strange);
  EXPECT_TRUE(mended.starts_with(": keep-alive\r\n\r\n"));
  mended.erase(0, mended.find("data"));
  replace_all(mended, "\r\n", "\n");
  EXPECT_EQ(mended, unchunked(plain));
}

TEST(ReplyWriter, TornTextHasACharacterOfTwoBytesPerToken) {
  std::string text;
  const ReplyWriter torn = writer({.wire = kWireSplitUtf8});
  const std::size_t bytes = torn.append_text(text, {kStream, 0, 2, false});
  EXPECT_EQ(bytes, text.size());
  EXPECT_EQ(text, text_of(kStream, 0, 1) + "é" + text_of(kStream, 1, 1) + "é");
}

TEST(ReplyWriter, ErrorsComeAsObjectAsStringAndAsEvent) {
  const ReplyWriter chat = writer({});
  std::string object, text, event, broken;
  chat.error(object, FaultKind::kErrorObject);
  chat.error(text, FaultKind::kErrorString);
  chat.error(event, FaultKind::kErrorEvent);
  chat.malformed(broken);
  EXPECT_TRUE(unchunked(object).starts_with(R"(data: {"error":{"message":)")) << object;
  EXPECT_TRUE(unchunked(text).starts_with(R"(data: {"error":"the sim)")) << text;
  EXPECT_TRUE(unchunked(event).starts_with("event: error\ndata: {\"error\":{")) << event;
  EXPECT_TRUE(unchunked(broken).ends_with("\"content\":\"\n\n")) << broken;
}

TEST(ReplyWriter, WithoutChunksTheBodyIsBareAndEndsWithTheConnection) {
  const ReplyWriter old = writer({.framing = ReplyWriter::Framing::kUntilClose});
  std::string out;
  old.head(out);
  EXPECT_NE(out.find("connection: close\r\n"), std::string::npos);
  EXPECT_EQ(out.find("chunked"), std::string::npos);
  EXPECT_NE(out.find("x-request-id: r-1\r\n"), std::string::npos);
  out.clear();
  old.done(out);
  old.end(out);
  EXPECT_EQ(out, "data: [DONE]\n\n");
}

TEST(ReplyWriter, AWholeReplyHoldsMessageAndUsage) {
  const ReplyWriter chat = writer({.usage = ReplyWriter::Usage::kEnd});
  EXPECT_EQ(chat.whole({"four", "two", {"length", 2, 1}}),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"a \"model\"",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"four",)"
            R"("reasoning_content":"two"},"logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
            R"("completion_tokens_details":{"reasoning_tokens":1}}})");
}

TEST(SimTokens, CutsWordsAndOtherCharacters) {
  std::string_view rest = "  Hello, wörld!\n\t9a ";
  for (const std::string_view token : {"Hello", ",", "wörld", "!", "9a", ""}) {
    EXPECT_EQ(next_sim_token(rest), token);
  }
  EXPECT_EQ(count_sim_tokens("a b, c"), 4);
  EXPECT_EQ(count_sim_tokens(" "), 1);
  std::string made;
  append_sim_tokens(made, kStream, 0, 1000);
  EXPECT_EQ(count_sim_tokens(made), 1000);
}

}  // namespace
}  // namespace assay
