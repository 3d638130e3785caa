#include "engine/net/http_response.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay {
namespace {

/// All that a response said, in one value to compare.
struct Told final : HttpResponseSink {
  std::string head;
  std::string body;
  int heads = 0;
  int ends = 0;
  bool complete = false;
  bool keep_alive = false;
  std::string error;

  void on_head(const HttpHead& h) override {
    ++heads;
    head = fmt::format("{}|{}|{}|{}", h.status, h.content_type, h.server, h.location);
  }
  void on_body(std::string_view bytes) override {
    EXPECT_EQ(ends, 0);
    EXPECT_FALSE(bytes.empty());
    body += bytes;
  }
  void on_message_end() override { ++ends; }

  bool operator==(const Told& other) const {
    return std::tie(head, body, heads, ends, complete, keep_alive, error) ==
           std::tie(other.head, other.body, other.heads, other.ends, other.complete,
                    other.keep_alive, other.error);
  }
  friend void PrintTo(const Told& told, std::ostream* out) {
    *out << fmt::format("head {} x{}, body '{}', ends {}, complete {}, keep_alive {}, error '{}'",
                        told.head, told.heads, told.body, told.ends, told.complete, told.keep_alive,
                        told.error);
  }
};

enum class Peer { kStays, kCloses };

Told decode(const std::vector<std::string_view>& pieces, Peer peer) {
  Told told;
  HttpResponseDecoder decoder;
  bool ok = true;
  for (const std::string_view piece : pieces) ok = ok && decoder.feed(piece, told);
  if (ok && peer == Peer::kCloses) decoder.finish(told);
  told.complete = decoder.complete();
  told.keep_alive = decoder.keep_alive();
  told.error = decoder.error();
  return told;
}

/// Whole; and asserts that cut in two anywhere, or fed byte by byte, it says the same.
Told decode(std::string_view wire, Peer peer = Peer::kStays) {
  Told whole = decode(std::vector{wire}, peer);
  std::vector<std::string_view> bytes;
  for (std::size_t cut = 0; cut < wire.size(); ++cut) {
    EXPECT_EQ(decode({wire.substr(0, cut), wire.substr(cut)}, peer), whole) << "cut at " << cut;
    bytes.push_back(wire.substr(cut, 1));
  }
  EXPECT_EQ(decode(bytes, peer), whole) << "byte by byte";
  return whole;
}

TEST(HttpResponse, ContentLength) {
  const Told told = decode(
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nSERVER: uvicorn\r\n\r\n"
      "hello");
  EXPECT_EQ(told.head, "200|text/plain|uvicorn|");
  EXPECT_EQ(told.body, "hello");
  EXPECT_EQ(told.ends, 1);
  EXPECT_TRUE(told.complete);
  EXPECT_TRUE(told.keep_alive);
}

TEST(HttpResponse, Chunked) {
  const Told told = decode(
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n");
  EXPECT_EQ(told.body, "hello 0123456789");
  EXPECT_TRUE(told.complete);
  EXPECT_TRUE(told.keep_alive);
}

TEST(HttpResponse, ChunkExtensionsAndTrailersAreSkipped) {
  const Told told = decode(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "005;name=value;q=\"a b\"\r\nhello\r\n0 ; last\r\nx-checksum: 12\r\nx-more: 1\r\n\r\n");
  EXPECT_EQ(told.body, "hello");
  EXPECT_EQ(told.ends, 1);
  EXPECT_TRUE(told.complete);
}

TEST(HttpResponse, ABareLineFeedEndsALineToo) {
  const Told told = decode("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n3\nabc\n0\n\n");
  EXPECT_EQ(told.body, "abc");
  EXPECT_TRUE(told.complete);
}

TEST(HttpResponse, ABodyThatEndsWithTheConnection) {
  constexpr std::string_view kWire = "HTTP/1.1 200 OK\r\nserver: x\r\n\r\nall that comes";
  const Told open = decode(kWire);
  EXPECT_EQ(open.body, "all that comes");
  EXPECT_FALSE(open.complete);
  const Told closed = decode(kWire, Peer::kCloses);
  EXPECT_EQ(closed.ends, 1);
  EXPECT_TRUE(closed.complete);
  EXPECT_FALSE(closed.keep_alive);
  EXPECT_EQ(closed.error, "");
}

TEST(HttpResponse, NoBodyAtAll) {
  for (const std::string_view wire : {"HTTP/1.1 204 No Content\r\n\r\n",
                                      "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
                                      "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"}) {
    const Told told = decode(wire);
    EXPECT_EQ(told.heads, 1) << wire;
    EXPECT_EQ(told.ends, 1) << wire;
    EXPECT_TRUE(told.complete) << wire;
    EXPECT_TRUE(told.keep_alive) << wire;
  }
}

TEST(HttpResponse, InterimResponsesComeBeforeTheRealOne) {
  const Told told = decode(
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 103 Early Hints\r\nserver: hint\r\nconnection: close\r\n\r\n"
      "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  EXPECT_EQ(told.head, "200|||");
  EXPECT_EQ(told.heads, 1);
  EXPECT_EQ(told.body, "ok");
  EXPECT_TRUE(told.keep_alive);
}

TEST(HttpResponse, OneEmptyLineBeforeTheStatusLineIsForgiven) {
  EXPECT_TRUE(decode("\r\nHTTP/1.1 204 No Content\r\n\r\n").complete);
  EXPECT_EQ(decode("\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n").error, "no HTTP/1.1 status line: ''");
}

TEST(HttpResponse, ChunkedWinsOverALength) {
  const Told told = decode(
      "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: identity, chunked\r\n\r\n"
      "5\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(told.body, "hello");
  EXPECT_TRUE(told.complete);
}

TEST(HttpResponse, ABlankBeforeTheColonHidesNoHeader) {
  EXPECT_TRUE(decode("HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok").complete);
}

TEST(HttpResponse, ARedirectNamesItsPlace) {
  EXPECT_EQ(decode("HTTP/1.1 308 R\r\nlocation: http://b/v1\r\ncontent-length: 0\r\n\r\n").head,
            "308|||http://b/v1");
}

TEST(HttpResponse, WhoMayKeepTheConnection) {
  const std::vector<std::pair<std::string, bool>> rules = {
      {"HTTP/1.1 200 OK\r\n", true},
      {"HTTP/1.1 200 OK\r\nconnection: close\r\n", false},
      {"HTTP/1.1 200 OK\r\nConnection: Upgrade, CLOSE\r\n", false},
      {"HTTP/1.1 200 OK\r\nconnection: close, keep-alive\r\n", false},
      {"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nconnection: close\r\n", false},
      {"HTTP/1.0 200 OK\r\n", false},
      {"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n", true},
      {"HTTP/1.0 200 OK\r\nconnection: close, keep-alive\r\n", false},
  };
  for (const auto& [head, keeps] : rules) {
    const Told told = decode(head + "content-length: 2\r\n\r\nok");
    EXPECT_TRUE(told.complete) << head;
    EXPECT_EQ(told.keep_alive, keeps) << head;
  }
}

TEST(HttpResponse, BytesBehindTheEndSpoilTheConnectionNotTheResponse) {
  for (const std::string_view wire : {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokX",
                                      "HTTP/1.1 200 OK\r\ntransfer-encoding: "
                                      "chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK"}) {
    const Told told = decode(wire);
    EXPECT_EQ(told.body, "ok");
    EXPECT_EQ(told.ends, 1);
    EXPECT_TRUE(told.complete);
    EXPECT_FALSE(told.keep_alive);
    EXPECT_EQ(told.error, "bytes after the end of the response");
  }
}

TEST(HttpResponse, WhatIsNotHttpIsRefusedWithASentence) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = head + "transfer-encoding: chunked\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP/1.1 status line: 'SSH-2.0-OpenSSH_9.2'"},
      {"HTTP/2 200\r\n", "no HTTP/1.1 status line: 'HTTP/2 200'"},
      {"\x16\x03\n", "no HTTP/1.1 status line: '\?\?'"},
      {"HTTP/1.1 20\r\n", "no status code in 'HTTP/1.1 20'"},
      {"HTTP/1.1 099 Low\r\n", "no status code in 'HTTP/1.1 099 Low'"},
      {"HTTP/1.1 -10 Odd\r\n", "no status code in 'HTTP/1.1 -10 Odd'"},
      {"HTTP/1.1 2000 OK\r\n", "no status code in 'HTTP/1.1 2000 OK'"},
      {"HTTP/1.1 101 Switching\r\n\r\n", "the server switches protocols, which nobody asked for"},
      {head + "no colon here\r\n", "no header line: 'no colon here'"},
      {head + ": nameless\r\n", "no header line: ': nameless'"},
      {head + "content-length: ten\r\n", "content-length 'ten' is no single number"},
      {head + "content-length: -1\r\n", "content-length '-1' is no single number"},
      {head + "content-length:\r\n", "content-length '' is no single number"},
      {head + "content-length: 5, 5\r\n", "content-length '5, 5' is no single number"},
      {head + "content-length: 99999999999999999999\r\n",
       "content-length '99999999999999999999' is no single number"},
      {head + "content-length: 5\r\ncontent-length: 6\r\n",
       "content-length '6' is no single number"},
      {head + "transfer-encoding: gzip, chunked\r\n",
       "transfer-encoding 'gzip, chunked' is not known"},
      {head + "content-encoding: br\r\n", "content-encoding 'br' although identity was asked for"},
      {chunked + "zz\r\n", "no chunk size: 'zz'"},
      {chunked + "\r\n", "no chunk size: ''"},
      {chunked + "-5\r\n", "no chunk size: '-5'"},
      {chunked + "0x5\r\n", "no chunk size: '0x5'"},
      {chunked + "fffffffffffffffff\r\n", "no chunk size: 'fffffffffffffffff'"},
      {chunked + "2\r\nabc\r\n", "a chunk is longer than its size says: 'c'"},
      {chunked + "2\r\nab\r\r\n", "a chunk is longer than its size says: '?'"},
  };
  for (const auto& [wire, sentence] : cases) {
    const Told told = decode(wire);
    EXPECT_EQ(told.error, sentence);
    EXPECT_FALSE(told.complete);
    EXPECT_FALSE(told.keep_alive);
    EXPECT_EQ(told.ends, 0);
  }
}

TEST(HttpResponse, TheSameLengthTwiceIsOneLength) {
  EXPECT_TRUE(
      decode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok").complete);
}

TEST(HttpResponse, AClosedConnectionCutsWhatWasNotAtItsEnd) {
  const std::string whole =
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n";
  EXPECT_EQ(decode(std::vector<std::string_view>{}, Peer::kCloses).error,
            "the connection closed before a response");
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    const Told told = decode(std::vector{std::string_view(whole).substr(0, cut)}, Peer::kCloses);
    EXPECT_EQ(told.error, "the connection closed inside the response") << "cut at " << cut;
    EXPECT_FALSE(told.complete);
    EXPECT_EQ(told.ends, 0);
  }
  const Told told = decode(whole, Peer::kCloses);
  EXPECT_TRUE(told.complete);
  EXPECT_EQ(told.ends, 1);
  const Told short_body = decode("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok", Peer::kCloses);
  EXPECT_EQ(short_body.error, "the connection closed inside the response");
}

TEST(HttpResponse, FinishAfterAFailureKeepsItsSentence) {
  HttpResponseDecoder decoder;
  Told told;
  EXPECT_FALSE(decoder.feed("junk\n", told));
  EXPECT_FALSE(decoder.feed("HTTP/1.1 204 x\r\n\r\n", told));
  EXPECT_FALSE(decoder.finish(told));
  EXPECT_EQ(decoder.error(), "no HTTP/1.1 status line: 'junk'");
}

TEST(HttpResponse, HeadersHaveABoundHoweverTheyCome) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string sentence = "the header lines are over 65536 bytes";
  const std::string fits = "x: " + std::string(60'000, 'v') + "\r\n";
  Told told;
  HttpResponseDecoder decoder;
  EXPECT_TRUE(decoder.feed(head + fits, told));
  EXPECT_FALSE(decoder.feed(fits, told));
  EXPECT_EQ(decoder.error(), sentence);

  decoder.reset();
  EXPECT_TRUE(decoder.feed(head, told));
  int fed = 0;
  while (decoder.feed("endless", told)) ++fed;  // a line that never ends
  EXPECT_EQ(decoder.error(), sentence);
  EXPECT_LE(fed * 7, 65'536);
}

TEST(HttpResponse, TrailersAndChunkLinesHaveABoundToo) {
  const std::string chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  Told told;
  HttpResponseDecoder decoder;
  EXPECT_TRUE(decoder.feed(chunked + "0\r\n", told));
  while (decoder.feed("trailer: value\r\n", told)) {
  }
  EXPECT_EQ(decoder.error(), "the header lines are over 65536 bytes");

  decoder.reset();
  EXPECT_TRUE(decoder.feed(chunked + "5;", told));
  while (decoder.feed("extension", told)) {
  }
  EXPECT_EQ(decoder.error(), "the line of a chunk size is over 65536 bytes");
}

TEST(HttpResponse, ALongBodyCountsTowardsNoBound) {
  HttpResponseDecoder decoder;
  Told told;
  EXPECT_TRUE(decoder.feed("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", told));
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(decoder.feed(chunk, told));
  EXPECT_TRUE(decoder.feed("0\r\n\r\n", told));
  EXPECT_EQ(told.body.size(), 64U * 0x4000U);
  EXPECT_TRUE(decoder.complete());
}

TEST(HttpResponse, IsReadyForTheNextResponseAfterReset) {
  HttpResponseDecoder decoder;
  Told first;
  EXPECT_FALSE(decoder.started());
  EXPECT_TRUE(decoder.feed("HTTP/1.0 503 No\r\nserver: a\r\ncontent-length: 1\r\n\r\nx", first));
  EXPECT_TRUE(decoder.started());
  decoder.reset();
  EXPECT_FALSE(decoder.started());
  Told second;
  EXPECT_TRUE(decoder.feed("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", second));
  EXPECT_EQ(second.head, "200|||");
  EXPECT_TRUE(decoder.keep_alive());
}

}  // namespace
}  // namespace assay
