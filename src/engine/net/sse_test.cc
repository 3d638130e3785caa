#include "engine/net/sse.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {
namespace {

using Event = std::pair<std::string, std::string>;  // type, data
using Events = std::vector<Event>;

class Collector final : public SseSink {
 public:
  void on_sse_event(std::string_view type, std::string_view data) override {
    events.emplace_back(type, data);
    // The promise of readable bytes: a sanitizer or an allocator speaks up where it is broken.
    for (std::size_t i = 0; i < SseDecoder::kPadding; ++i)
      padding_sum += data.data()[data.size() + i];
  }
  Events events;
  int padding_sum = 0;
};

/// Feeds a copy that ends with its padding and not a byte later.
bool feed(SseDecoder& decoder, std::string_view piece, SseSink& sink) {
  std::vector<char> exact(piece.size() + SseDecoder::kPadding, '\0');
  if (!piece.empty()) std::memcpy(exact.data(), piece.data(), piece.size());
  return decoder.feed({exact.data(), piece.size()}, sink);
}

Events decode(const std::vector<std::string_view>& pieces) {
  SseDecoder decoder;
  Collector collector;
  for (const std::string_view piece : pieces) EXPECT_TRUE(feed(decoder, piece, collector));
  return collector.events;
}

/// Whole; and asserts that cut in two anywhere, or fed byte by byte, the events are the same.
Events decode(std::string_view stream) {
  Events whole = decode(std::vector{stream});
  std::vector<std::string_view> bytes;
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    EXPECT_EQ(decode({stream.substr(0, cut), stream.substr(cut)}), whole) << "cut at " << cut;
    bytes.push_back(stream.substr(cut, 1));
  }
  EXPECT_EQ(decode(bytes), whole) << "byte by byte";
  return whole;
}

TEST(Sse, AnEventIsItsData) { EXPECT_EQ(decode("data: hello\n\n"), (Events{{"", "hello"}})); }

TEST(Sse, LinesEndInThreeWaysMixedAtWill) {
  const Events two = {{"", "a"}, {"", "b"}};
  EXPECT_EQ(decode("data: a\n\ndata: b\n\n"), two);
  EXPECT_EQ(decode("data: a\r\n\r\ndata: b\r\n\r\n"), two);
  EXPECT_EQ(decode("data: a\r\rdata: b\r\r"), two);
  EXPECT_EQ(decode("data: a\r\n\ndata: b\n\r\n"), two);
  EXPECT_EQ(decode("data: a\n\rdata: b\r\n\r"), two);
}

TEST(Sse, ACarriageReturnEndsAnEventWithoutWaitingForALineFeed) {
  SseDecoder decoder;
  Collector collector;
  EXPECT_TRUE(feed(decoder, "data: a\r\r", collector));
  EXPECT_EQ(collector.events.size(), 1U);
  EXPECT_TRUE(feed(decoder, "\ndata: b\r\n\r", collector));
  EXPECT_EQ(collector.events, (Events{{"", "a"}, {"", "b"}}));
}

TEST(Sse, OnlyOneBlankAfterTheColonIsDropped) {
  EXPECT_EQ(decode("data:a\n\ndata:  b\n\ndata:\tc\n\ndata: d \n\n"),
            (Events{{"", "a"}, {"", " b"}, {"", "\tc"}, {"", "d "}}));
}

TEST(Sse, SeveralDataLinesAreOneTextOfLines) {
  EXPECT_EQ(decode("data: a\ndata: b\ndata:\ndata: c\n\n"), (Events{{"", "a\nb\n\nc"}}));
  EXPECT_EQ(decode("data\ndata\n\n"), (Events{{"", "\n"}}));
}

TEST(Sse, AFieldWithoutAColonHasAnEmptyValue) {
  EXPECT_EQ(decode("data\n\n"), (Events{{"", ""}}));
  EXPECT_EQ(decode("data:\n\n"), (Events{{"", ""}}));
  EXPECT_EQ(decode("event: x\nevent\ndata: a\n\n"), (Events{{"", "a"}}));
}

TEST(Sse, CommentsMayStandAnywhere) {
  EXPECT_EQ(decode(": hi\n\n:\n: ping: 1\ndata: a\n: between\ndata: b\n:\n\n"),
            (Events{{"", "a\nb"}}));
}

TEST(Sse, IdRetryAndUnknownFieldsAreIgnored) {
  EXPECT_EQ(decode("id: 7\nretry: 3000\nfoo: bar\n data: no\nDATA: no\ndata: a\nid\n\n"),
            (Events{{"", "a"}}));
}

TEST(Sse, TheTypeBelongsToOneEvent) {
  EXPECT_EQ(decode("event: delta\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n"),
            (Events{{"delta", "a"}, {"", "b"}, {"", "c"}}));
}

TEST(Sse, WithoutDataOnlyAnErrorIsAnEvent) {
  EXPECT_EQ(decode("event: ping\n\n\n\nevent: error\n\n"), (Events{{"error", ""}}));
}

TEST(Sse, AByteOrderMarkIsSkippedAtTheStartAlone) {
  EXPECT_EQ(decode("\xef\xbb\xbf"
                   "data: a\n\n"),
            (Events{{"", "a"}}));
  EXPECT_EQ(decode("\xef\xbb\xbf\xef\xbb\xbf"
                   "data: a\n\ndata: b\n\n"),
            (Events{{"", "b"}}));
  EXPECT_EQ(decode("data: a\n\n\xef\xbb\xbf"
                   "data: b\n\n"),
            (Events{{"", "a"}}));
  EXPECT_EQ(decode("\xef\xbb"
                   "data: a\n\ndata: b\n\n"),
            (Events{{"", "b"}}));
  EXPECT_EQ(decode("\xef\xbb\xbf"
                   ":\n\ndata: a\n\n"),
            (Events{{"", "a"}}));
}

TEST(Sse, WhatNoBlankLineEndedIsNoEvent) {
  EXPECT_EQ(decode("data: a\n\ndata: b\n"), (Events{{"", "a"}}));
  EXPECT_EQ(decode("data: a"), Events{});
  EXPECT_EQ(decode(""), Events{});
}

TEST(Sse, BytesThatAreNoTextPassUnchanged) {
  const std::string data("\0\xff\xe2\x82", 4);
  EXPECT_EQ(decode("data: " + data + "\n\n"), (Events{{"", data}}));
}

TEST(Sse, TheBoundOfAnEventIsExact) {
  // A line of that many bytes fits, one more does not; in one piece and in many.
  const std::string fits = "data: " + std::string(SseDecoder::kEventMax - 6, 'x');
  for (const std::size_t piece : {fits.size() + 3, std::size_t{1} << 20U}) {
    for (const std::size_t over : {0U, 1U}) {
      const std::string stream = fits + std::string(over, 'x') + "\n\n";
      SseDecoder decoder;
      Collector collector;
      bool ok = true;
      for (std::size_t at = 0; at < stream.size() && ok; at += piece) {
        ok = feed(decoder, std::string_view(stream).substr(at, piece), collector);
      }
      EXPECT_EQ(ok, over == 0) << piece;
      EXPECT_EQ(collector.events.size(), over == 0 ? 1U : 0U) << piece;
    }
  }
}

TEST(Sse, TheBoundHoldsOverManyDataLines) {
  const std::string line = "data: " + std::string(1U << 20U, 'x') + "\n";
  SseDecoder decoder;
  Collector collector;
  int taken = 0;
  while (taken < 100 && feed(decoder, line, collector)) ++taken;
  EXPECT_EQ(taken, 15);
}

TEST(Sse, ALongStreamOfShortEventsHasNoBound) {
  SseDecoder decoder;
  Collector collector;
  std::string piece;
  for (int i = 0; i < 1'000; ++i) piece += "data: " + std::string(100, 'x') + "\n\n";
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(feed(decoder, piece, collector));
  EXPECT_EQ(collector.events.size(), 200'000U);
}

TEST(Sse, AnEventThatLiesWholeInThePieceIsNotCopied) {
  class Place final : public SseSink {
   public:
    void on_sse_event(std::string_view /*type*/, std::string_view data) override {
      at = data.data();
    }
    const char* at = nullptr;
  };
  const std::string piece = "data: a\n\n" + std::string(SseDecoder::kPadding, ' ');
  SseDecoder decoder;
  Place place;
  EXPECT_TRUE(decoder.feed(std::string_view(piece).substr(0, 9), place));
  EXPECT_EQ(place.at, piece.data() + 6);
}

TEST(Sse, StartsAfreshAfterReset) {
  SseDecoder decoder;
  Collector collector;
  EXPECT_TRUE(feed(decoder, "event: x\ndata: old\nda", collector));
  decoder.reset();
  EXPECT_TRUE(feed(decoder,
                   "\xef\xbb\xbf"
                   "data: new\n\n",
                   collector));
  EXPECT_EQ(collector.events, (Events{{"", "new"}}));
}

TEST(Sse, AFieldNamedErrorIsAnErrorEvent) {
  EXPECT_EQ(decode("error: {\"code\":500}\n\ndata: a\n\n"),
            (Events{{"error", "{\"code\":500}"}, {"", "a"}}));
}

TEST(Sse, TheEndHandsOutWhatLacksItsBlankLine) {
  const auto rest = [](std::string_view stream) {
    SseDecoder decoder;
    Collector collector;
    EXPECT_TRUE(feed(decoder, stream, collector));
    collector.events.clear();
    decoder.finish(collector);
    decoder.finish(collector);  // once is enough
    return collector.events;
  };
  EXPECT_EQ(rest("data: a\n\ndata: [DONE]"), (Events{{"", "[DONE]"}}));
  EXPECT_EQ(rest("event: x\r\ndata: [DONE]\r"), (Events{{"x", "[DONE]"}}));
  EXPECT_EQ(rest("data: a\ndata: b"), (Events{{"", "a\nb"}}));
  EXPECT_EQ(rest("data: a\n\n"), Events{});
  EXPECT_EQ(rest(": comment"), Events{});
}

}  // namespace
}  // namespace assay
