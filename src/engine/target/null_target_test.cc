#include "engine/target/null_target.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "engine/net/virtual_loop.h"
#include "engine/target/recording_sink.h"
#include "engine/target/target.h"

namespace assay {
namespace {

constexpr Instant kStart{10s};

class NullTargetTest : public testing::Test {
 protected:
  std::unique_ptr<Channel> opened(const NullTarget& target) {
    std::unique_ptr<Channel> channel = target_channel(target);
    channel->open([this](const OpenResult& result) {
      open_result_ = result;
      opened_at_ = loop_.now();
    });
    loop_.run();
    return channel;
  }
  std::unique_ptr<Channel> target_channel(NullTarget target) { return target.channel(loop_); }

  VirtualLoop loop_{kStart};
  RecordingSink sink_;
  OpenResult open_result_;
  Instant opened_at_{};
};

TEST_F(NullTargetTest, KeepsItsTimingToTheNanosecond) {
  const NullTarget target({.connect = 3ms, .first = 50ms, .gap = 7'000'001ns});
  const auto channel = opened(target);
  EXPECT_TRUE(open_result_.ok && channel->reusable());
  EXPECT_EQ(opened_at_, kStart + 3ms);
  EXPECT_EQ(open_result_.tcp, 3ms);

  const std::string wire = target.encode({.prompt = "p", .tokens_output = 4, .request_id = "r"});
  channel->send(wire, sink_);
  EXPECT_EQ(sink_.calls, "start sent ");
  loop_.run();
  const Instant sent = kStart + 3ms;
  ASSERT_EQ(sink_.events.size(), 5U);  // four tokens and the end
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(sink_.events[static_cast<std::size_t>(i)].at, sent + 50ms + i * 7'000'001ns);
  }
  EXPECT_EQ(sink_.send_start, sent);
  EXPECT_EQ(sink_.sent, sent);
  EXPECT_EQ(sink_.text, "xxxx");
  EXPECT_EQ(sink_.status, 200);
  EXPECT_EQ(sink_.events.back().finish_reason, "length");
  EXPECT_EQ(sink_.events.back().usage.output, 4);
  EXPECT_TRUE(sink_.events.back().end);
  EXPECT_EQ(sink_.ended, sent + 50ms + 3 * 7'000'001ns);
  EXPECT_EQ(sink_.end, ReplyEnd::kComplete);
}

TEST_F(NullTargetTest, AnswersAtOnceByDefaultButNotInsideSend) {
  const NullTarget target;
  const auto channel = opened(target);
  channel->send(target.encode({.prompt = "", .tokens_output = 1'000, .request_id = ""}), sink_);
  EXPECT_EQ(sink_.calls, "start sent ");
  loop_.run();
  EXPECT_EQ(sink_.text.size(), 1'000U);
  EXPECT_EQ(sink_.ended, kStart);
}

TEST_F(NullTargetTest, CarriesOneRequestAfterTheOther) {
  const NullTarget target;
  const auto channel = opened(target);
  RecordingSink second;
  sink_.at_end = [&] { channel->send("2", second); };
  channel->send("1", sink_);
  loop_.run();
  EXPECT_EQ(sink_.text, "x");
  EXPECT_EQ(second.text, "xx");
  EXPECT_TRUE(channel->reusable());
}

TEST_F(NullTargetTest, IsSilentAfterCancel) {
  const NullTarget target({.connect = {}, .first = 5ms, .gap = 5ms});
  const auto channel = opened(target);
  channel->send("3", sink_);
  loop_.at(kStart + 7ms, [&] { channel->cancel(); });
  loop_.run();
  EXPECT_EQ(sink_.calls, "start sent status read event ");
  EXPECT_FALSE(channel->reusable());
}

TEST_F(NullTargetTest, MayBeCancelledInsideAnEvent) {
  const NullTarget target;
  const auto channel = opened(target);
  sink_.at_event = [&] { channel->cancel(); };
  channel->send("3", sink_);
  loop_.run();
  EXPECT_EQ(sink_.text, "x");
  EXPECT_EQ(sink_.calls, "start sent status read event ");
}

TEST_F(NullTargetTest, AChannelMayGoWhileItsTimersRun) {
  const NullTarget target({.connect = {}, .first = 5ms, .gap = 5ms});
  auto channel = opened(target);
  channel->send("3", sink_);
  channel.reset();
  loop_.run();
  EXPECT_EQ(sink_.calls, "start sent ");
}

}  // namespace
}  // namespace assay
