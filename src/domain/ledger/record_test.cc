#include "domain/ledger/record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/ledger/test_folder.h"

namespace assay {
namespace {

std::string pack(RunTime scheduled, const std::vector<Chunk>& chunks) {
  ChunkWriter writer;
  writer.start(scheduled);
  for (const Chunk& chunk : chunks) writer.append(chunk);
  EXPECT_EQ(writer.count(), chunks.size());
  return writer.take();
}

void expect_chunks(std::string_view blob, RunTime scheduled, const std::vector<Chunk>& wanted) {
  ChunkReader reader(blob, scheduled);
  for (const Chunk& chunk : wanted) {
    const auto found = reader.next();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->at, chunk.at);
    EXPECT_EQ(found->bytes, chunk.bytes);
    EXPECT_EQ(found->tokens, chunk.tokens);
    EXPECT_EQ(found->flags, chunk.flags);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.damaged());
}

std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!out.empty()) out += ' ';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

TEST(Chunks, TheExampleOfTheFormatPage) {
  const RunTime scheduled = 1ms;
  const std::vector<Chunk> chunks{
      {251ms, 5, 1, kChunkNewRead | kChunkTokensKnown},
      {263ms, 6, 1, kChunkNewRead | kChunkTokensKnown},
      {263ms, 4, 0, 0},
      {262'999us, 9, 2, kChunkNewRead | kChunkUserStamp | kChunkTokensKnown}};
  const std::string blob = pack(scheduled, chunks);
  expect_chunks(blob, scheduled, chunks);
  const std::vector<std::string> rows{"80 ca b5 ee 01 05 01 11", "80 ec b8 0b 06 01 11",
                                      "00 04 00 00", "cf 0f 09 02 13"};
  EXPECT_EQ(hex(blob), rows[0] + " " + rows[1] + " " + rows[2] + " " + rows[3]);
  const std::string page = internal::bytes_of("docs/formats/ledger.md");
  for (const std::string& row : rows) EXPECT_NE(page.find("`" + row + "`"), page.npos) << row;
}

TEST(Chunks, ExtremesComeBack) {
  constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
  const std::vector<Chunk> chunks{
      {-5s, 0, 0, 0xff}, {3600s, kMax, kMax, 0}, {0s, 0, 0, 0}, {24h * 365, 1, 1, 1}};
  expect_chunks(pack(-10s, chunks), -10s, chunks);
  expect_chunks("", 0s, {});
}

TEST(Chunks, WriterStartsAfresh) {
  ChunkWriter writer;
  writer.start(0s);
  writer.append({1s, 1, 1, 1});
  writer.start(5s);
  writer.append({6s, 1, 1, 1});
  EXPECT_EQ(writer.count(), 1U);
  expect_chunks(writer.take(), 5s, {{6s, 1, 1, 1}});
}

TEST(Chunks, TakeAtMostSixteenBytesEach) {
  // The worst that a stream may bring: a gap of an hour, a megabyte of text, 100,000 tokens.
  EXPECT_LE(pack(0s, {{3600s, 1'000'000, 100'000, 0xff}}).size(), 16U);
  EXPECT_LE(pack(3600s, {{0s, 1'000'000, 100'000, 0xff}}).size(), 16U);
  // What streams do bring: about 20 ms and 5 bytes.
  Draws draws = RandomStream(1, "chunks").at(0);
  std::vector<Chunk> chunks;
  RunTime at = 0s;
  for (int i = 0; i < 1000; ++i) {
    at += from_seconds(0.02 * draws.exponential());
    chunks.push_back({at, static_cast<std::uint32_t>(draws.below(10)), 1, kChunkNewRead});
  }
  EXPECT_LE(pack(0s, chunks).size(), 7U * 1000);
}

TEST(Chunks, ATornBlobEndsEarlyAndSaysSo) {
  const std::vector<Chunk> chunks{{251ms, 500, 1, 17}, {263ms, 6, 300, 17}};
  const std::string blob = pack(1ms, chunks);
  const std::size_t first = pack(1ms, {chunks[0]}).size();
  for (std::size_t size = 0; size < blob.size(); ++size) {
    ChunkReader reader(std::string_view(blob).substr(0, size), 1ms);
    std::size_t count = 0;
    while (reader.next()) ++count;
    EXPECT_EQ(count, size < first ? 0U : 1U);
    EXPECT_EQ(reader.damaged(), size != 0 && size != first) << size;
    EXPECT_FALSE(reader.next()) << "goes on after damage";
  }
}

TEST(Chunks, AForeignBlobIsDamage) {
  const auto damaged = [](std::string_view blob) {
    ChunkReader reader(blob, 0s);
    while (reader.next()) {
    }
    return reader.damaged();
  };
  EXPECT_TRUE(damaged(std::string(40, '\xff'))) << "a number that does not end";
  EXPECT_TRUE(damaged(std::string_view("\x00\x80\x80\x80\x80\x10\x01\x00", 8))) << "2^32 bytes";
  EXPECT_TRUE(damaged(std::string_view("\x00\x01\x80\x80\x80\x80\x10\x00", 8))) << "2^32 tokens";
  EXPECT_FALSE(damaged(std::string_view("\x00\xff\xff\xff\xff\x0f\x01\x00", 8))) << "2^32 - 1";
}

TEST(Outcome, NamesGoBothWays) {
  for (int i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(outcome_from_name(outcome_name(outcome)), outcome);
  }
  EXPECT_EQ(outcome_name(Outcome::kRefusedByClient), "refused_by_client");
  EXPECT_EQ(outcome_from_name("OK"), std::nullopt);
  EXPECT_EQ(outcome_from_name(""), std::nullopt);
}

}  // namespace
}  // namespace assay
