#include "engine/sim/sim_target.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "engine/net/virtual_loop.h"
#include "engine/sim/distribution.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/sim_text.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

/// Writes down what it is told, one word per call.
struct Sink final : ReplySink {
  explicit Sink(VirtualLoop& l) : loop(l) {}
  VirtualLoop& loop;
  std::vector<std::string> told;
  std::string text;
  Usage usage;

  void note(const std::string& what) {
    const auto ms = loop.now().time_since_epoch().count() / 1'000'000;
    told.push_back(std::to_string(ms) + " " + what);
  }
  void on_send_start(Instant) override { note("start"); }
  void on_sent(Instant, std::int64_t) override {}
  void on_read(const Stamp&, std::int64_t) override {}
  void on_status(int status, std::string_view) override { note(std::to_string(status)); }
  void on_event(const TokenEvent& event, const Stamp&) override {
    text += event.text;
    text += event.reasoning;
    if (event.usage.any()) usage = event.usage;
    note(event.malformed                ? "malformed"
         : event.error                  ? "error"
         : event.end                    ? "done"
         : !event.finish_reason.empty() ? "finish"
         : !event.reasoning.empty()     ? "reasoning"
         : event.has_output()           ? "text"
         : event.usage.any()            ? "usage"
                                        : "role");
  }
  void on_error_body(std::string_view code, std::string_view) override { note(std::string(code)); }
  void on_end(ReplyEnd end, Instant, std::string_view) override {
    constexpr std::string_view kNames[] = {"complete", "closed", "reset", "protocol"};
    note(std::string(kNames[static_cast<int>(end)]));
  }
};

using Told = std::vector<std::string>;

struct Seat {
  explicit Seat(const SimSpec& spec) : target(spec, 1), channel(target.channel(loop)), sink(loop) {
    channel->open([](const OpenResult& opened) { EXPECT_TRUE(opened.ok); });
    loop.run();
  }
  Told ask(std::int64_t tokens) {
    sink.told.clear();
    wire =
        target.encode({.prompt = "Three words here.", .tokens_output = tokens, .request_id = {}});
    channel->send(wire, sink);
    loop.run();
    return sink.told;
  }

  VirtualLoop loop;
  SimTarget target;
  std::unique_ptr<Channel> channel;
  Sink sink;
  std::string wire;
};

TEST(SimTargetTest, AReplyIsToldInOrder) {
  SimSpec spec;
  spec.tokens.reasoning = 1;
  Seat seat(spec);
  EXPECT_EQ(seat.ask(3), (Told{"0 start", "50 200", "50 role", "50 reasoning", "60 text", "70 text",
                               "70 finish", "70 usage", "70 done", "70 complete"}));
  EXPECT_EQ(seat.sink.usage.prompt, 4);
  EXPECT_EQ(seat.sink.usage.output, 3);
  EXPECT_EQ(seat.sink.usage.reasoning, 1);
  EXPECT_EQ(count_sim_tokens(seat.sink.text), 3) << seat.sink.text;
  EXPECT_TRUE(seat.channel->reusable());
  EXPECT_EQ(seat.ask(1).front(), "70 start");
}

TEST(SimTargetTest, FaultsBecomeWhatAClientWouldSee) {
  const struct {
    FaultKind kind;
    Told told;
    bool reusable;
  } cases[] = {
      {FaultKind::kHttpError, {"0 start", "0 503", "0 unavailable", "0 complete"}, true},
      {FaultKind::kErrorEvent,
       {"0 start", "50 200", "50 role", "50 text", "60 error", "60 complete"},
       true},
      {FaultKind::kReset, {"0 start", "50 200", "50 role", "50 text", "60 reset"}, false},
      {FaultKind::kClose, {"0 start", "50 200", "50 role", "50 text", "60 closed"}, false},
      {FaultKind::kHalfOpen, {"0 start", "50 200", "50 role", "50 text"}, true},
      {FaultKind::kMissingEnd,
       {"0 start", "50 200", "50 role", "50 text", "60 text", "60 complete"},
       true},
      {FaultKind::kMalformed,
       {"0 start", "50 200", "50 role", "50 text", "60 malformed", "60 text", "60 finish",
        "60 usage", "60 done", "60 complete"},
       true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fault_name(c.kind));
    SimSpec spec;
    spec.faults.resize(1);
    spec.faults[0].kind = c.kind;
    spec.faults[0].nth = 1;
    spec.faults[0].after = 1;
    Seat seat(spec);
    EXPECT_EQ(seat.ask(2), c.told);
    EXPECT_EQ(seat.channel->reusable(), c.reusable);
  }
}

TEST(SimTargetTest, ACancelledRequestIsHeardOfNoMore) {
  Seat seat{SimSpec{}};
  seat.loop.at(Instant(55ms), [&] { seat.channel->cancel(); });
  EXPECT_EQ(seat.ask(5), (Told{"0 start", "50 200", "50 role", "50 text"}));
  EXPECT_FALSE(seat.channel->reusable());
}

TEST(SimTextTest, CountsWordsAndMarks) {
  EXPECT_EQ(count_sim_tokens(""), 1);
  EXPECT_EQ(count_sim_tokens("one two,three"), 4);
  EXPECT_EQ(count_sim_tokens("caf\xc3\xa9 au lait!"), 4);
  std::string text;
  append_sim_tokens(text, 7, 0, 5);
  std::string torn;
  append_sim_tokens(torn, 7, 0, 2);
  append_sim_tokens(torn, 7, 2, 3);
  EXPECT_EQ(text, torn);
  EXPECT_EQ(count_sim_tokens(text), 5);
}

}  // namespace
}  // namespace assay
