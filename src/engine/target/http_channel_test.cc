#include "engine/target/http_channel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/core/time.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/sse.h"
#include "engine/net/stamp.h"
#include "engine/net/test_peer.h"
#include "engine/target/openai.h"
#include "engine/target/recording_sink.h"
#include "engine/target/target.h"

namespace assay {
namespace {

std::string chunked(const std::vector<std::string>& pieces) {
  std::string wire =
      "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
      "transfer-encoding: chunked\r\n\r\n";
  for (const std::string& piece : pieces)
    wire += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  return wire + "0\r\n\r\n";
}

std::string with_length(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\n\r\n{}", status,
                     type, body.size(), body);
}

std::string content(std::string_view text) {
  return fmt::format(R"(data: {{"choices":[{{"delta":{{"content":"{}"}}}}]}})", text) + "\n\n";
}

const std::string kFinish =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
const std::string kDone = "data: [DONE]\n\n";

/// What a reply came to, in one line to compare.
std::string decode(const std::vector<std::string_view>& pieces) {
  OpenAiDecoder dialect;
  internal::ReplyDecoder decoder(dialect);
  RecordingSink sink;
  decoder.start(sink);
  bool ok = true;
  for (const std::string_view piece : pieces) {
    std::vector<char> exact(piece.size() + SseDecoder::kPadding);
    if (!piece.empty()) std::memcpy(exact.data(), piece.data(), piece.size());
    ok = ok && decoder.feed({exact.data(), piece.size()}, {});
  }
  if (ok) decoder.finish();
  std::string told = fmt::format("{} {}:", sink.status, sink.server);
  for (const RecordingSink::Heard& e : sink.events) {
    told +=
        fmt::format(" [{}{}{}{}{}{}{}]", e.text, e.reasoning, e.finish_reason,
                    e.error ? " error " + e.error_code + " " + e.error_text : "",
                    e.malformed ? " malformed" : "", e.whole ? " whole" : "", e.end ? " end" : "");
    if (e.usage.output) told += fmt::format(" usage {}", *e.usage.output);
  }
  if (sink.calls.find("error_body") != std::string::npos)
    told += fmt::format(" body {} '{}'", sink.error_code, sink.error_text);
  return told + (decoder.complete() ? "" : " incomplete") +
         (decoder.error().empty() ? "" : " " + decoder.error());
}

/// Whole; and asserts that cut in two anywhere, or fed byte by byte, it comes to the same.
std::string decode(const std::string& wire) {
  const std::string_view all = wire;
  std::string whole = decode(std::vector{all});
  std::vector<std::string_view> bytes;
  for (std::size_t cut = 0; cut < all.size(); ++cut) {
    EXPECT_EQ(decode({all.substr(0, cut), all.substr(cut)}), whole) << "cut at " << cut;
    bytes.push_back(all.substr(cut, 1));
  }
  EXPECT_EQ(decode(bytes), whole) << "byte by byte";
  return whole;
}

TEST(ReplyDecoder, AStreamInChunks) {
  EXPECT_EQ(decode(chunked({content("Hel"), content("lo"), kFinish, kDone})),
            "200 uvicorn: [Hel] [lo] [stop] [] usage 2 [ end]");
}

TEST(ReplyDecoder, AStreamWhoseChunksCutItsEvents) {
  const std::string first = content("Hel");
  EXPECT_EQ(
      decode(chunked({first.substr(0, 11), first.substr(11) + "da", "ta: [DONE]\r\n\r", "\n"})),
      "200 uvicorn: [Hel] [ end]");
}

TEST(ReplyDecoder, AStreamThatEndsWithTheConnection) {
  EXPECT_EQ(decode("HTTP/1.1 200 OK\r\n\r\n" + content("a") + kDone), "200 : [a] [ end]");
}

TEST(ReplyDecoder, AnEndMarkNeedsNoBlankLine) {
  for (const char* mark : {"data: [DONE]", "data: [DONE]\n", "data:[DONE]\r"}) {
    EXPECT_EQ(decode(chunked({content("a") + mark})), "200 uvicorn: [a] [ end]");
    EXPECT_EQ(decode("HTTP/1.1 200 OK\r\n\r\n" + content("a") + mark), "200 : [a] [ end]");
  }
  // Anything else may be torn.
  EXPECT_EQ(decode(chunked({content("a"), content("b").substr(0, content("b").size() - 1)})),
            "200 uvicorn: [a]");
  EXPECT_EQ(decode(chunked({content("a"), "event: error\ndata: half an err"})), "200 uvicorn: [a]");
}

TEST(ReplyDecoder, AStreamThatBeginsWithBlanksOrAMark) {
  EXPECT_EQ(decode(with_length("200 OK", "text/event-stream", "\n\r\n" + content("a") + kDone)),
            "200 : [a] [ end]");
  EXPECT_EQ(decode(with_length("200 OK", "text/event-stream", "\xef\xbb\xbf" + content("a"))),
            "200 : [a]");
  EXPECT_EQ(decode(with_length("200 OK", "text/event-stream", ": busy\n\n" + content("a"))),
            "200 : [a]");
}

TEST(ReplyDecoder, AMalformedEventIsSkippedAndTheRestKept) {
  EXPECT_EQ(decode(chunked({content("a") + "data: {\"choices\":[{\"del\n\n" + content("b")})),
            "200 uvicorn: [a] [ malformed] [b]");
}

TEST(ReplyDecoder, AnErrorInsideTheStream) {
  EXPECT_EQ(
      decode(chunked({content("a"),
                      "event: error\ndata: {\"error\":{\"code\":500,\"message\":\"oom\"}}\n\n"})),
      "200 uvicorn: [a] [ error 500 oom]");
}

TEST(ReplyDecoder, AWholeReplyWhateverItsContentTypeSays) {
  const std::string body = R"({"choices":[{"message":{"content":"all"},"finish_reason":"stop"}],)"
                           R"("usage":{"completion_tokens":4}})";
  for (const char* type : {"application/json", "text/event-stream", "text/html"}) {
    EXPECT_EQ(decode(with_length("200 OK", type, body)), "200 : [allstop whole end] usage 4");
    EXPECT_EQ(decode(with_length("200 OK", type, " \n" + body + "\n")),
              "200 : [allstop whole end] usage 4");
  }
}

TEST(ReplyDecoder, AWholeReplyThatIsAnErrorOrBroken) {
  EXPECT_EQ(decode(with_length("200 OK", "x", R"({"error":{"message":"no","code":"c"}})")),
            "200 : [ error c no whole]");
  EXPECT_EQ(decode(with_length("200 OK", "x", R"({"choices":[)")), "200 : [ malformed whole]");
  EXPECT_EQ(decode(with_length("200 OK", "x", "[]")), "200 : [ malformed whole]");
}

TEST(ReplyDecoder, AStreamThatClaimsToBeJson) {
  EXPECT_EQ(decode(with_length("200 OK", "application/json", content("a") + kDone)),
            "200 : [a] [ end]");
}

TEST(ReplyDecoder, A200WithoutAStreamHasNoEvents) {
  EXPECT_EQ(decode(with_length("200 OK", "text/html", "<html>busy</html>")), "200 :");
  EXPECT_EQ(decode(with_length("200 OK", "text/event-stream", "")), "200 :");
  EXPECT_EQ(decode("HTTP/1.1 204 No Content\r\n\r\n"), "204 :");
}

TEST(ReplyDecoder, ErrorBodiesOfAllShapes) {
  EXPECT_EQ(decode(with_length("404 Not Found", "application/json", R"({"detail":"Not Found"})")),
            "404 : body  'Not Found'");
  EXPECT_EQ(decode(with_length(
                "400 Bad", "application/json",
                R"({"error":{"message":"too long","type":"BadRequestError","code":400}})")),
            "400 : body 400 'too long'");
  EXPECT_EQ(decode(with_length("502 Bad Gateway", "text/html", "<html>\n502\n</html>\n")),
            "502 : body  '<html>\n502\n</html>'");
  EXPECT_EQ(decode(with_length("503 Busy", "text/event-stream", "")), "503 : body  ''");
  EXPECT_EQ(decode("HTTP/1.1 500 Oops\r\n\r\nclosed after this"),
            "500 : body  'closed after this'");
}

TEST(ReplyDecoder, AHugeErrorBodyIsCut) {
  const std::string told = decode(std::vector<std::string_view>{
      with_length("500 Oops", "text/plain", std::string(1U << 20U, 'x'))});
  EXPECT_EQ(told, "500 : body  '" + std::string(200, 'x') + "'");
}

TEST(ReplyDecoder, ARedirectSaysWhereToGoInstead) {
  EXPECT_EQ(decode("HTTP/1.1 307 Moved\r\nlocation: http://b:1/v1\r\ncontent-length: 13\r\n\r\n"
                   "<html></html>"),
            "307 : body  'a redirect, which is not followed: give this URL instead: "
            "http://b:1/v1'");
  EXPECT_EQ(decode(with_length("300 Many", "text/plain", "choose")), "300 : body  'choose'");
}

TEST(ReplyDecoder, AReplyThatIsCutIsIncomplete) {
  EXPECT_EQ(decode("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n" + content("a")),
            "200 : [a] incomplete the connection closed inside the response");
}

TEST(ReplyDecoder, AnEventOverTheBoundBreaksTheReply) {
  const std::string wire =
      "HTTP/1.1 200 OK\r\n\r\ndata: " + std::string(SseDecoder::kEventMax, 'x');
  EXPECT_EQ(decode(std::vector<std::string_view>{wire}),
            "200 : incomplete an event of the stream has over 16777216 bytes");
}

TEST(ReplyDecoder, StartsAfreshForTheNextReply) {
  OpenAiDecoder dialect;
  internal::ReplyDecoder decoder(dialect);
  const auto reply = [&](std::string wire) {
    RecordingSink sink;
    decoder.start(sink);
    const std::size_t size = wire.size();
    wire.append(SseDecoder::kPadding, ' ');
    EXPECT_TRUE(decoder.feed(std::string_view(wire).substr(0, size), {}));
    EXPECT_TRUE(decoder.complete());
    return std::pair(sink.text + sink.error_text, decoder.end_seen());
  };
  EXPECT_EQ(reply(chunked({content("a"), kDone})), std::pair(std::string("a"), true));
  EXPECT_EQ(reply(with_length("500 x", "x", "bad")), std::pair(std::string("bad"), false));
  EXPECT_EQ(reply(chunked({content("b")})), std::pair(std::string("b"), false));
}

constexpr std::string_view kRequest = "POST / HTTP/1.1\r\n\r\n";

class HttpChannelTest : public testing::Test {
 protected:
  void open() {
    channel_.open([this](const OpenResult& result) {
      opened_ = result;
      loop_.stop();
    });
    loop_.run();
  }
  /// Sends one request to a peer that answers with `wire`; ends with the reply.
  void exchange(TestPeer& peer, std::string_view wire, const std::function<void()>& then = {}) {
    sink_ = RecordingSink();
    sink_.at_end = [this] { loop_.stop(); };
    const std::jthread server([&] {
      EXPECT_EQ(peer.read(kRequest.size()), kRequest);
      peer.write(wire);
      if (then) then();
    });
    channel_.send(kRequest, sink_);
    loop_.run();
  }

  EpollLoop loop_;
  TestListener listener_;
  std::vector<Address> addresses_{listener_.address()};
  OpenAiDecoder dialect_;
  internal::HttpChannel channel_{loop_, addresses_, dialect_};
  OpenResult opened_;
  RecordingSink sink_;
};

TEST_F(HttpChannelTest, CarriesOneRequestAfterTheOther) {
  open();
  ASSERT_TRUE(opened_.ok);
  TestPeer peer = listener_.accept();
  for (int i = 0; i < 3; ++i) {
    exchange(peer, chunked({content("a"), kDone}));
    EXPECT_EQ(sink_.calls, "start sent read status event event end ");
    EXPECT_EQ(sink_.end, ReplyEnd::kComplete);
    EXPECT_EQ(sink_.bytes_sent, static_cast<std::int64_t>(kRequest.size()));
    EXPECT_TRUE(channel_.reusable());
  }
}

TEST_F(HttpChannelTest, TriesTheNextAddressWhereOneRefuses) {
  addresses_.insert(addresses_.begin(), refusing_address());
  open();
  EXPECT_TRUE(opened_.ok);
}

TEST_F(HttpChannelTest, SaysWhichAddressRefused) {
  addresses_ = {refusing_address()};
  open();
  EXPECT_FALSE(opened_.ok);
  EXPECT_EQ(opened_.error, addresses_[0].text + ": Connection refused");
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, IsNotReusedWhereTheServerCloses) {
  open();
  TestPeer peer = listener_.accept();
  exchange(peer, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  EXPECT_EQ(sink_.end, ReplyEnd::kComplete);
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, ACutReplyIsClosedAndOneThatNeverBeganIsReset) {
  open();
  TestPeer peer = listener_.accept();
  exchange(peer, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", [&] { peer.close(); });
  EXPECT_EQ(sink_.end, ReplyEnd::kClosed);
  EXPECT_EQ(sink_.detail, "the connection closed inside the response");
  open();
  TestPeer second = listener_.accept();
  exchange(second, "", [&] { second.close(); });
  EXPECT_EQ(sink_.end, ReplyEnd::kReset);
  EXPECT_EQ(sink_.detail, "the connection closed before a response");
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, WhatIsNotHttpIsAProtocolError) {
  open();
  TestPeer peer = listener_.accept();
  exchange(peer, "SSH-2.0\r\n");
  EXPECT_EQ(sink_.end, ReplyEnd::kProtocol);
  EXPECT_EQ(sink_.detail, "no HTTP/1.1 status line: 'SSH-2.0'");
}

TEST_F(HttpChannelTest, BytesBehindTheReplySpoilTheConnectionOnly) {
  open();
  TestPeer peer = listener_.accept();
  exchange(peer, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 surprise\r\n");
  EXPECT_EQ(sink_.end, ReplyEnd::kComplete);
  EXPECT_EQ(sink_.status, 200);
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, AfterDoneTheBodyHasItsTimeToEnd) {
  open();
  TestPeer peer = listener_.accept();
  exchange(peer, "HTTP/1.1 200 OK\r\n\r\n" + content("a") + kDone);  // and the body goes on
  EXPECT_EQ(sink_.end, ReplyEnd::kComplete);
  EXPECT_EQ(sink_.detail, "no end of the body within 100 ms after [DONE]");
  EXPECT_EQ(sink_.ended, sink_.events.back().at);
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, CancelInsideAnEventIsTheLastThatIsHeard) {
  open();
  TestPeer peer = listener_.accept();
  sink_.at_event = [&] {
    channel_.cancel();
    loop_.post([&] { loop_.stop(); });
  };
  channel_.send(kRequest, sink_);
  peer.write(chunked({content("a"), content("b"), kDone}));
  loop_.run();
  EXPECT_EQ(sink_.calls, "start sent read status event ");
  EXPECT_FALSE(channel_.reusable());
  EXPECT_EQ(peer.read(kRequest.size() + 1), kRequest);  // and the connection is closed
}

TEST_F(HttpChannelTest, AnIdleConnectionThatIsClosedIsReported) {
  open();
  int closed = 0;
  channel_.on_idle_closed([&] {
    ++closed;
    loop_.stop();
  });
  {
    TestPeer peer = listener_.accept();
    exchange(peer, chunked({kDone}));
    EXPECT_TRUE(channel_.reusable());
  }
  loop_.run();
  EXPECT_EQ(closed, 1);
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, BytesThatNobodyAskedForCloseAnIdleConnection) {
  open();
  const TestPeer peer = listener_.accept();
  int closed = 0;
  channel_.on_idle_closed([&] {
    ++closed;
    loop_.stop();
  });
  peer.write("HTTP/1.1 408 Timeout\r\n\r\n");
  loop_.run();
  EXPECT_EQ(closed, 1);
  EXPECT_FALSE(channel_.reusable());
}

TEST_F(HttpChannelTest, MaySendAgainFromInsideTheEnd) {
  open();
  TestPeer peer = listener_.accept();
  const std::jthread server([&] {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(peer.read(kRequest.size()), kRequest);
      peer.write(chunked({content("a"), kDone}));
    }
  });
  RecordingSink second;
  second.at_end = [&] { loop_.stop(); };
  sink_.at_end = [&] { channel_.send(kRequest, second); };
  channel_.send(kRequest, sink_);
  loop_.run();
  EXPECT_EQ(second.text, "a");
  EXPECT_EQ(second.end, ReplyEnd::kComplete);
}

}  // namespace
}  // namespace assay
