// The cases of cases/stream without a socket: the bytes of each reply go through the HTTP, SSE and
// dialect decoders into a record, as the script sends them, torn at every byte boundary, and byte
// by byte. Instants are the script's own, so they must agree to the nanosecond.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "case_file.h"
#include "domain/ledger/record.h"
#include "engine/load/builder.h"
#include "engine/load/exchange.h"
#include "engine/net/sse.h"
#include "engine/net/stamp.h"
#include "engine/sim/playback.h"
#include "engine/target/http_channel.h"
#include "engine/target/openai.h"
#include "engine/target/target.h"

namespace assay {
namespace {

using Sends = std::vector<Playback::Send>;

class Owner final : public ExchangeOwner {
 public:
  void on_exchange_end(Exchange& exchange, Instant /*at*/) override {
    record = exchange.take_record();
  }
  bool send_again(Exchange& /*exchange*/, Instant /*at*/) override { return false; }
  std::unique_ptr<RequestRecord> record;
};

/// One reply through decoders and exchange, as HttpChannel would feed them.
class OneReply {
 public:
  OneReply() : decoder_(dialect_), exchange_(context_, owner_) {
    context_.keep_text = true;
    exchange_.begin(std::make_unique<PreparedRequest>(), 0ns, Phase::kSteady, 0);
    exchange_.on_send_start(origin());
    exchange_.on_sent(origin(), 0);
    decoder_.start(exchange_);
  }

  RequestRecord play(const Sends& sends, const Playback& playback) {
    for (const Playback::Send& send : sends) {
      if (over()) break;
      read(send);
    }
    if (!over()) close(playback);
    return *owner_.record;
  }
  [[nodiscard]] std::int64_t malformed() const { return context_.counts.malformed; }

 private:
  [[nodiscard]] Instant origin() const { return context_.start; }
  [[nodiscard]] bool over() const { return owner_.record != nullptr; }

  void read(const Playback::Send& send) {
    // An exact copy with padding behind it, so that a sanitizer sees every byte read too far.
    std::string buffer = send.bytes + std::string(SseDecoder::kPadding, '#');
    const Instant at = origin() + send.at;
    const Stamp stamp{at, at, StampSource::kKernel};
    const std::string_view bytes = std::string_view(buffer).substr(0, send.bytes.size());
    exchange_.on_read(stamp, static_cast<std::int64_t>(bytes.size()));
    const bool fed = decoder_.feed(bytes, stamp);
    // Views into a read must not outlive it.
    std::ranges::fill(buffer, '!');
    if (!fed) return exchange_.on_end(ReplyEnd::kProtocol, at, decoder_.error());
    if (decoder_.complete()) exchange_.on_end(ReplyEnd::kComplete, at, {});
  }

  void close(const Playback& playback) {
    const Instant at = origin() + playback.last_at;
    if (playback.last == LastStep::kReset) {
      return exchange_.on_end(ReplyEnd::kReset, at, "reset");
    }
    const bool started = decoder_.started();
    if (decoder_.finish()) return exchange_.on_end(ReplyEnd::kComplete, at, {});
    exchange_.on_end(started ? ReplyEnd::kClosed : ReplyEnd::kReset, at, decoder_.error());
  }

  OpenAiDecoder dialect_;
  ExchangeContext context_;
  Owner owner_;
  internal::ReplyDecoder decoder_;
  Exchange exchange_;
};

/// `sends` with one of them cut in two at byte `cut` of the whole.
Sends cut_at(const Sends& sends, std::size_t cut) {
  Sends out;
  std::size_t behind = 0;
  for (const Playback::Send& send : sends) {
    const std::size_t end = behind + send.bytes.size();
    if (cut > behind && cut < end) {
      out.push_back({send.at, send.bytes.substr(0, cut - behind)});
      out.push_back({send.at, send.bytes.substr(cut - behind)});
    } else {
      out.push_back(send);
    }
    behind = end;
  }
  return out;
}

Sends bytewise(const Sends& sends) {
  Sends out;
  for (const Playback::Send& send : sends) {
    for (const char c : send.bytes) out.push_back({send.at, std::string(1, c)});
  }
  return out;
}

Playback playback_of(const Case& one) {
  AskedReply asked;
  asked.include_usage = true;
  return compose(one.script.replies.front(), asked);
}

class MemoryCase : public testing::TestWithParam<Case> {
 protected:
  /// What differs when the reply comes as `sends`; reads are not compared where we tore them.
  enum class Reads { kAsSent, kTorn };
  std::string played(const Sends& sends, Reads reads) {
    Case expected = GetParam();
    if (reads == Reads::kTorn) expected.expect.erase("shared");
    OneReply run;
    const RequestRecord record = run.play(sends, playback_);
    std::string all;
    for (const std::string& difference :
         differences(expected, record, run.malformed(), Instants::kExact)) {
      all += difference + "\n";
    }
    return all;
  }
  Playback playback_ = playback_of(GetParam());
};

TEST_P(MemoryCase, GivesTheExpectedRecord) {
  EXPECT_EQ(played(playback_.sends, Reads::kAsSent), "");
}

TEST_P(MemoryCase, GivesTheSameRecordTornAnywhere) {
  const std::size_t size = playback_.wire().size();
  EXPECT_EQ(played(bytewise(playback_.sends), Reads::kTorn), "") << "byte by byte";
  // Long streams repeat themselves: the cuts are spread then, with a step that shares no factor
  // with the length of an event.
  const std::size_t step = size > 4096 ? 37 : 1;
  for (std::size_t cut = 1; cut < size; cut += step) {
    ASSERT_EQ(played(cut_at(playback_.sends, cut), Reads::kTorn), "") << "cut at byte " << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MemoryCase, testing::ValuesIn(read_cases("cases/stream")),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay
