#include "engine/load/exchange.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/load/builder.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

constexpr Instant kStart{1000s};

TokenEvent text(std::string_view t) {
  TokenEvent e;
  e.text = t;
  return e;
}
TokenEvent role() { return {}; }
TokenEvent finish(std::uint32_t choices = 1) {
  TokenEvent e;
  e.finish_reason = "stop";
  e.choices_finished = choices;
  return e;
}
TokenEvent done() {
  TokenEvent e;
  e.end = true;
  return e;
}
TokenEvent error(std::string_view code, std::string_view message) {
  TokenEvent e;
  e.error = true;
  e.error_code = code;
  e.error_text = message;
  return e;
}
TokenEvent malformed() {
  TokenEvent e;
  e.malformed = true;
  return e;
}
TokenEvent with_usage(TokenEvent e, std::int64_t output) {
  e.usage.output = output;
  return e;
}

class ExchangeTest : public testing::Test, public ExchangeOwner {
 protected:
  ExchangeTest() { context_.start = kStart; }

  void on_exchange_end(Exchange& exchange, Instant /*at*/) override {
    ++ends_;
    record_ = exchange.take_record();
  }
  bool send_again(Exchange& /*exchange*/, Instant /*at*/) override { return false; }

  /// Scheduled at 10 ms, admitted at 11, sent at 12 and 13, and answered with 200.
  void begin() {
    auto request = std::make_unique<PreparedRequest>();
    request->id = 7;
    request->wire = "bytes";
    request->item = "item";
    exchange_.begin(std::move(request), 10ms, Phase::kSteady, -1);
    exchange_.set_admitted(kStart + 11ms, 3, nullptr);
    exchange_.on_send_start(kStart + 12ms);
    exchange_.on_sent(kStart + 13ms, 5);
  }
  void begin_ok() {
    begin();
    exchange_.on_status(200, "srv");
  }
  static Stamp stamp(std::int64_t ms, StampSource source = StampSource::kKernel) {
    return {kStart + std::chrono::milliseconds(ms), kStart + std::chrono::milliseconds(ms) + 5us,
            source};
  }
  void read(std::int64_t ms, const std::vector<TokenEvent>& events,
            StampSource source = StampSource::kKernel) {
    exchange_.on_read(stamp(ms, source), 10);
    for (const TokenEvent& e : events) exchange_.on_event(e, stamp(ms, source));
  }
  const RequestRecord& end(ReplyEnd how = ReplyEnd::kComplete, std::string_view detail = {}) {
    exchange_.on_end(how, kStart + 900ms, detail);
    return *record_;
  }
  [[nodiscard]] std::vector<Chunk> chunks() const {
    std::vector<Chunk> all;
    ChunkReader reader(record_->chunks, record_->scheduled);
    while (const auto chunk = reader.next()) all.push_back(*chunk);
    EXPECT_FALSE(reader.damaged());
    return all;
  }

  ExchangeContext context_;
  Exchange exchange_{context_, *this};
  std::unique_ptr<RequestRecord> record_;
  int ends_ = 0;
};

TEST_F(ExchangeTest, ARoleIsAnEventAndNoToken) {
  begin_ok();
  read(20, {role()});
  read(30, {text("a")});
  read(40, {text("b")});
  read(45, {finish(), done()});
  const RequestRecord& r = end();
  EXPECT_EQ(r.first_byte, 20ms);
  EXPECT_EQ(r.first_event, 20ms);
  EXPECT_EQ(r.first_token, 30ms);
  EXPECT_EQ(r.first_output, 30ms);
  EXPECT_EQ(r.last_token, 40ms);
  EXPECT_EQ(r.done, 900ms);
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.finish_reason, "stop");
  EXPECT_EQ(r.events, 5);
  EXPECT_EQ(r.reads, 4);
  EXPECT_EQ(r.bytes_in, 40);
  EXPECT_EQ(r.bytes_out, 5);
  EXPECT_EQ(r.http_status, 200);
  EXPECT_EQ(chunks().size(), 2U);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(context_.server, "srv");
}

TEST_F(ExchangeTest, ReasoningIsATokenAndNoOutput) {
  begin_ok();
  TokenEvent thought;
  thought.reasoning = "hm";
  read(20, {thought});
  read(30, {text("a"), done()});
  const RequestRecord& r = end();
  EXPECT_EQ(r.first_token, 20ms);
  EXPECT_EQ(r.first_output, 30ms);
  ASSERT_EQ(chunks().size(), 2U);
  EXPECT_TRUE(chunks()[0].flags & kChunkReasoning);
  EXPECT_FALSE(chunks()[1].flags & kChunkReasoning);
}

TEST_F(ExchangeTest, ReasoningAloneLeavesFirstOutputNull) {
  begin_ok();
  TokenEvent thought;
  thought.reasoning = "hm";
  read(20, {thought, done()});
  const RequestRecord& r = end();
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.first_token, 20ms);
  EXPECT_EQ(r.first_output, std::nullopt);
}

TEST_F(ExchangeTest, AToolCallIsOutput) {
  begin_ok();
  TokenEvent tool;
  tool.tool = true;
  tool.tool_bytes = 12;
  read(20, {tool, done()});
  EXPECT_EQ(end().first_output, 20ms);
  ASSERT_EQ(chunks().size(), 1U);
  EXPECT_EQ(chunks()[0].bytes, 12U);
  EXPECT_TRUE(chunks()[0].flags & kChunkTool);
}

TEST_F(ExchangeTest, UsageAtTheEndCountsTheReplyAndNoChunk) {
  begin_ok();
  read(20, {text("a")});
  TokenEvent usage = with_usage({}, 17);
  usage.usage.prompt = 100;
  usage.usage.cached = 64;
  usage.usage.reasoning = 3;
  read(30, {finish(), usage, done()});
  const RequestRecord& r = end();
  EXPECT_EQ(r.tokens_server_output, 17);
  EXPECT_EQ(r.tokens_server_prompt, 100);
  EXPECT_EQ(r.tokens_server_cached, 64);
  EXPECT_EQ(r.tokens_server_reasoning, 3);
  EXPECT_FALSE(chunks()[0].flags & kChunkTokensKnown);
}

TEST_F(ExchangeTest, UsageOnEveryChunkTellsItsTokens) {
  begin_ok();
  read(20, {with_usage(text("a"), 1)});
  read(30, {with_usage(text("bcd"), 4)});
  read(40, {with_usage(text("e"), 5), done()});
  EXPECT_EQ(end().tokens_server_output, 5);
  ASSERT_EQ(chunks().size(), 3U);
  const std::uint32_t tokens[] = {1, 3, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(chunks()[i].tokens, tokens[i]);
    EXPECT_TRUE(chunks()[i].flags & kChunkTokensKnown);
  }
}

TEST_F(ExchangeTest, UsageOnTheLastChunkAloneTellsNothingOfThatChunk) {
  begin_ok();
  read(20, {text("a")});
  read(30, {with_usage(text("b"), 2), done()});
  EXPECT_EQ(end().tokens_server_output, 2);
  for (const Chunk& chunk : chunks()) EXPECT_FALSE(chunk.flags & kChunkTokensKnown);
}

TEST_F(ExchangeTest, TokenIdsTellTheTokensOfAChunk) {
  begin_ok();
  TokenEvent ids = text("abc");
  ids.tokens = 3;
  TokenEvent silent;  // a token whose text is held back
  silent.tokens = 1;
  read(20, {ids, silent, done()});
  EXPECT_EQ(end().outcome, Outcome::kOk);
  ASSERT_EQ(chunks().size(), 2U);
  EXPECT_EQ(chunks()[0].tokens, 3U);
  EXPECT_EQ(chunks()[1].tokens, 1U);
  EXPECT_TRUE(chunks()[1].flags & kChunkTokensKnown);
}

TEST_F(ExchangeTest, FlagsSayWhichChunksShareARead) {
  begin_ok();
  read(20, {role(), text("a"), text("b")});
  read(30, {text("c")}, StampSource::kUser);
  end(ReplyEnd::kClosed);
  ASSERT_EQ(chunks().size(), 3U);
  EXPECT_TRUE(chunks()[0].flags & kChunkNewRead);
  EXPECT_FALSE(chunks()[1].flags & kChunkNewRead);
  EXPECT_EQ(chunks()[1].at, chunks()[0].at);
  EXPECT_TRUE(chunks()[2].flags & kChunkNewRead);
  EXPECT_FALSE(chunks()[0].flags & kChunkUserStamp);
  EXPECT_TRUE(chunks()[2].flags & kChunkUserStamp);
  EXPECT_EQ(context_.counts.kernel_stamps, 1);
  EXPECT_EQ(context_.counts.user_stamps, 1);
  // Only a kernel stamp says how late user space was.
  EXPECT_EQ(context_.receive_lag[1].count(), 1);
}

TEST_F(ExchangeTest, SendLagRunsFromAdmission) {
  begin();
  EXPECT_EQ(context_.send_lag[1].count(), 1);
  EXPECT_NEAR(static_cast<double>(*context_.send_lag[1].max()), 1e6, 1e4);
}

TEST_F(ExchangeTest, EveryChoiceMustFinish) {
  context_.choices = 2;
  begin_ok();
  read(20, {text("a"), finish()});
  EXPECT_EQ(end().outcome, Outcome::kTruncated);
  begin_ok();
  read(20, {text("a"), finish(), finish()});
  EXPECT_EQ(end().outcome, Outcome::kOk);
}

struct OutcomeCase {
  const char* name;
  int status;
  std::vector<TokenEvent> events;
  ReplyEnd end;
  Outcome outcome;
};

TEST_F(ExchangeTest, OutcomesAreThoseOfTheDefinitions) {
  TokenEvent whole = text("all");
  whole.whole = whole.end = true;
  TokenEvent broken = malformed();
  broken.whole = true;
  const OutcomeCase cases[] = {
      {"done", 200, {text("a"), done()}, ReplyEnd::kComplete, Outcome::kOk},
      {"finish without done", 200, {text("a"), finish()}, ReplyEnd::kComplete, Outcome::kOk},
      {"reset after finish", 200, {text("a"), finish()}, ReplyEnd::kReset, Outcome::kOk},
      {"closed after done", 200, {text("a"), done()}, ReplyEnd::kClosed, Outcome::kOk},
      {"whole", 200, {whole}, ReplyEnd::kComplete, Outcome::kOk},
      {"whole, no object", 200, {broken}, ReplyEnd::kComplete, Outcome::kProtocol},
      {"no end", 200, {text("a")}, ReplyEnd::kComplete, Outcome::kTruncated},
      {"closed", 200, {text("a")}, ReplyEnd::kClosed, Outcome::kTruncated},
      {"nothing at all", 200, {}, ReplyEnd::kComplete, Outcome::kTruncated},
      {"reset", 200, {text("a")}, ReplyEnd::kReset, Outcome::kReset},
      {"protocol", 200, {text("a")}, ReplyEnd::kProtocol, Outcome::kProtocol},
      {"empty", 200, {role(), finish(), done()}, ReplyEnd::kComplete, Outcome::kEmpty},
      {"error, then done",
       200,
       {error("", "x"), done()},
       ReplyEnd::kComplete,
       Outcome::kStreamError},
      {"error amid tokens",
       200,
       {text("a"), error("", "x"), finish()},
       ReplyEnd::kReset,
       Outcome::kStreamError},
      {"one malformed", 200, {malformed(), text("a"), done()}, ReplyEnd::kComplete, Outcome::kOk},
      {"503", 503, {}, ReplyEnd::kComplete, Outcome::kHttpError},
      {"503, cut", 503, {}, ReplyEnd::kReset, Outcome::kHttpError},
      {"302", 302, {}, ReplyEnd::kComplete, Outcome::kHttpError},
  };
  for (const OutcomeCase& c : cases) {
    begin();
    exchange_.on_status(c.status, "");
    read(20, c.events);
    EXPECT_EQ(outcome_name(end(c.end, "why").outcome), outcome_name(c.outcome)) << c.name;
  }
}

TEST_F(ExchangeTest, AResetBeforeAnyStatusSaysWhy) {
  begin();
  const RequestRecord& r = end(ReplyEnd::kReset, "Connection reset by peer");
  EXPECT_EQ(r.outcome, Outcome::kReset);
  EXPECT_EQ(r.error_text, "Connection reset by peer");
  EXPECT_EQ(r.http_status, std::nullopt);
  EXPECT_EQ(r.first_byte, std::nullopt);
}

TEST_F(ExchangeTest, TheFirstErrorIsKept) {
  begin_ok();
  read(20, {error("429", "slow down"), error("500", "later")});
  const RequestRecord& r = end(ReplyEnd::kReset, "reset");
  EXPECT_EQ(r.error_code, "429");
  EXPECT_EQ(r.error_text, "slow down");
}

TEST_F(ExchangeTest, SecretsAreTakenOutOfWhatAServerSendsBack) {
  context_.secrets = {"sk-12345"};
  context_.keep_text = true;
  begin();
  exchange_.on_status(200, "sk-12345/1");
  read(20, {text("my sk-1"), text("2345 it is"), error("sk-12345", "bad key sk-12345, sk-12345!")});
  const RequestRecord& r = end();
  EXPECT_EQ(r.error_text, "bad key [redacted], [redacted]!");
  EXPECT_EQ(r.error_code, "[redacted]");
  EXPECT_EQ(r.text, "my [redacted] it is");
  EXPECT_EQ(context_.server, "[redacted]/1");
}

TEST_F(ExchangeTest, ATornSecretIsTakenOutToo) {
  context_.secrets = {"sk-0123456789"};
  begin();
  exchange_.on_status(401, "sk-01234");
  exchange_.on_error_body("", "no: 'sk-0123456' sk-0123");
  const RequestRecord& r = end();
  EXPECT_EQ(r.error_text, "no: '[redacted]' sk-0123");  // seven bytes tell nobody anything
  EXPECT_EQ(context_.server, "[redacted]");
}

TEST_F(ExchangeTest, SaysWhyWhereNobodyElseDoes) {
  begin();
  exchange_.on_status(200, "");
  EXPECT_EQ(end(ReplyEnd::kComplete, "").error_text, "the reply holds no event of a stream");
  begin();
  exchange_.on_status(200, "");
  read(20, {text("a")});
  EXPECT_EQ(end(ReplyEnd::kComplete, "").error_text,
            "the stream ended with neither [DONE] nor a finish_reason of every choice");
  begin();
  exchange_.on_status(200, "");
  read(20, {role(), done()});
  EXPECT_EQ(end(ReplyEnd::kComplete, "").error_text, "the reply ended well and held no output");
}

TEST_F(ExchangeTest, ASecretAcrossTheCutLeavesNoHead) {
  context_.secrets = {"sk-12345"};
  begin();
  exchange_.on_status(401, "");
  exchange_.on_error_body("", std::string(496, 'x') + "sk-12345 is wrong");
  const RequestRecord& r = end();
  EXPECT_EQ(r.error_text.find("sk-"), std::string::npos);
  EXPECT_LE(r.error_text.size(), 500U);
}

TEST_F(ExchangeTest, ALongErrorIsCutBetweenCharacters) {
  begin();
  exchange_.on_status(400, "");
  exchange_.on_error_body("", std::string(499, 'x') + "éé");
  EXPECT_EQ(end().error_text, std::string(499, 'x'));
}

TEST_F(ExchangeTest, MalformedEventsAreCounted) {
  begin_ok();
  read(20, {malformed(), text("a"), malformed(), done()});
  const RequestRecord& r = end();
  EXPECT_EQ(context_.counts.malformed, 2);
  EXPECT_EQ(context_.counts.events, 4);
  EXPECT_EQ(r.events, 4);
}

TEST_F(ExchangeTest, AWholeReplyHasNoTokenInstants) {
  context_.keep_text = true;
  begin_ok();
  TokenEvent whole = with_usage(text("all"), 9);
  whole.whole = whole.end = true;
  read(20, {whole});
  const RequestRecord& r = end();
  EXPECT_EQ(r.first_byte, 20ms);
  EXPECT_EQ(r.first_event, std::nullopt);
  EXPECT_EQ(r.first_token, std::nullopt);
  EXPECT_EQ(r.last_token, std::nullopt);
  EXPECT_EQ(r.tokens_server_output, 9);
  EXPECT_EQ(r.text, "all");
  EXPECT_TRUE(r.chunks.empty());
}

TEST_F(ExchangeTest, TextIsKeptOnlyWhereAskedFor) {
  begin_ok();
  read(20, {text("a"), done()});
  EXPECT_EQ(end().text, std::nullopt);
  context_.keep_text = true;
  begin_ok();
  read(20, {text("a"), text("b"), done()});
  EXPECT_EQ(end().text, "ab");
}

TEST_F(ExchangeTest, ATimeoutKeepsWhatWasSeen) {
  begin_ok();
  read(20, {text("a")});
  exchange_.end_by_client(Outcome::kTimeout, kStart + 611ms, "timeout", "no end within 600ms");
  const RequestRecord& r = *record_;
  EXPECT_EQ(r.outcome, Outcome::kTimeout);
  EXPECT_EQ(r.error_code, "timeout");
  EXPECT_EQ(r.admitted, 11ms);
  EXPECT_EQ(r.send_start, 12ms);
  EXPECT_EQ(r.sent, 13ms);
  EXPECT_EQ(r.first_token, 20ms);
  EXPECT_EQ(r.last_token, 20ms);
  EXPECT_EQ(r.done, 611ms);
  EXPECT_EQ(chunks().size(), 1U);
}

TEST_F(ExchangeTest, ConnectionSetUpIsRecordedWhereTheRequestMadeOne) {
  begin();
  EXPECT_TRUE(end(ReplyEnd::kReset).reused);
  begin();
  const OpenResult fresh{
      .ok = true, .error = {}, .tls_failed = false, .dns = 1us, .tcp = 2us, .tls = 3us};
  exchange_.set_admitted(kStart + 11ms, 4, &fresh);
  const RequestRecord& r = end(ReplyEnd::kReset);
  EXPECT_FALSE(r.reused);
  EXPECT_EQ(r.tcp, 2us);
  EXPECT_EQ(r.connection, 4);
}

TEST_F(ExchangeTest, NothingLeaksFromOneRequestToTheNext) {
  begin_ok();
  read(20, {text("a"), error("1", "x"), finish(), done()});
  end();
  begin_ok();
  const RequestRecord& r = end();
  EXPECT_EQ(r.outcome, Outcome::kTruncated);
  EXPECT_EQ(r.error_code, "");
  EXPECT_EQ(r.finish_reason, "");
  EXPECT_TRUE(r.chunks.empty());
  EXPECT_EQ(context_.counts.requests, 2);
}

}  // namespace
}  // namespace assay
