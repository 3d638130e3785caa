#include "engine/load/worker.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"
#include "engine/load/worker_harness.h"
#include "engine/net/loop.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/null_target.h"
#include "engine/target/target.h"

namespace assay {
namespace {

using internal::count_of;
using internal::most_at_once;
using internal::Stage;
using Records = std::vector<RequestRecord>;

Spec small() {
  Spec spec;
  spec.workload.input = {LengthSpec::Kind::kFixed, 4, 0};
  spec.workload.output = {LengthSpec::Kind::kFixed, 1, 0};
  spec.load.warmup = {};
  return spec;
}
Spec open(double rate, Arrival arrival = Arrival::kConstant) {
  Spec spec = small();
  spec.load.rate = rate;
  spec.load.arrival = arrival;
  return spec;
}
Spec closed(std::int64_t concurrency) {
  Spec spec = small();
  spec.load.concurrency = concurrency;
  return spec;
}

Records play(const Spec& spec, NullTiming timing) {
  NullTarget target(timing);
  return Stage(spec, target).play();
}

TEST(WorkerOpenTest, PlaysTheDrawnScheduleToTheNanosecond) {
  for (const Arrival arrival : {Arrival::kConstant, Arrival::kPoisson}) {
    Spec spec = open(100, arrival);
    spec.load.requests = 500;
    const Records records = play(spec, {.connect = {}, .first = 30ms, .gap = {}});
    ASSERT_EQ(records.size(), 500U);
    ArrivalWalk walk(arrival, 100, spec.run.seed);
    for (const RequestRecord& r : records) {
      EXPECT_EQ(r.scheduled, walk.next());
      EXPECT_EQ(r.send_start, r.scheduled);
      EXPECT_EQ(r.outcome, Outcome::kOk);
    }
    // No burst at the start.
    EXPECT_GT(records[0].scheduled, 0ns);
    EXPECT_GT(records[1].scheduled, records[0].scheduled);
  }
}

TEST(WorkerOpenTest, AQueueIsSeenByTheUserAndNotByTheServer) {
  Spec spec = open(10);
  spec.load.connections = 1;
  spec.load.requests = 20;
  const Records records = play(spec, {.connect = {}, .first = 500ms, .gap = {}});
  ASSERT_EQ(records.size(), 20U);
  for (const RequestRecord& r : records) {
    EXPECT_EQ(*r.first_token - *r.send_start, 500ms);
    EXPECT_EQ(*r.first_token - r.scheduled, 500ms + r.id * 400ms);
  }
}

TEST(WorkerOpenTest, NoHiddenCapOnStreamsAtOnce) {
  Spec spec = open(500);
  spec.load.requests = 1000;
  const Records records = play(spec, {.connect = {}, .first = 1s, .gap = {}});
  EXPECT_EQ(most_at_once(records), 500);
  for (const RequestRecord& r : records) EXPECT_EQ(*r.first_token - r.scheduled, 1s);
}

TEST(WorkerOpenTest, OneAndFourWorkersPlayTheSame) {
  Spec spec = open(50, Arrival::kPoisson);
  spec.load.duration = 10s;
  spec.load.warmup.time = 2s;
  const Records one = play(spec, {.connect = {}, .first = 20ms, .gap = 1ms});
  spec.load.workers = 4;
  const Records four = play(spec, {.connect = {}, .first = 20ms, .gap = 1ms});
  ASSERT_EQ(one.size(), four.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].id, four[i].id);
    EXPECT_EQ(one[i].scheduled, four[i].scheduled);
    EXPECT_EQ(one[i].item, four[i].item);
    EXPECT_EQ(one[i].phase, four[i].phase);
    EXPECT_EQ(four[i].worker, four[i].id % 4);
  }
}

TEST(WorkerOpenTest, DepthZeroRefusesWithoutSending) {
  Spec spec = open(10);
  spec.load.connections = 1;
  spec.load.queue_depth = 0;
  spec.load.requests = 20;
  const Records records = play(spec, {.connect = {}, .first = 450ms, .gap = {}});
  EXPECT_EQ(count_of(records, Outcome::kOk), 4);
  EXPECT_EQ(count_of(records, Outcome::kRefusedByClient), 16);
  for (const RequestRecord& r : records) {
    if (r.outcome == Outcome::kOk) continue;
    EXPECT_EQ(r.send_start, std::nullopt);
    EXPECT_EQ(r.admitted, std::nullopt);
    EXPECT_EQ(r.done, r.scheduled);
  }
}

TEST(WorkerOpenTest, WorkersShareTheQueueDepth) {
  Spec spec = open(100);
  spec.load.workers = 2;
  spec.load.connections = 2;
  spec.load.queue_depth = 2;
  spec.load.requests = 20;
  const Records records = play(spec, {.connect = {}, .first = 10s, .gap = {}});
  EXPECT_EQ(count_of(records, Outcome::kOk), 4);
  EXPECT_EQ(count_of(records, Outcome::kRefusedByClient), 16);
}

TEST(WorkerOpenTest, ColdConnectsCountInTheLatency) {
  Spec spec = open(10);
  spec.load.cold_connect = true;
  spec.load.requests = 5;
  const Records records = play(spec, {.connect = 30ms, .first = 50ms, .gap = {}});
  for (const RequestRecord& r : records) {
    EXPECT_EQ(*r.first_token - r.scheduled, 80ms);
    EXPECT_EQ(r.tcp, 30ms);
    EXPECT_FALSE(r.reused);
    EXPECT_EQ(r.connection, r.id + 1);  // the first only told that the server is there
  }
}

TEST(WorkerOpenTest, TenThousandTimeOutEachAtItsOwnInstant) {
  Spec spec = open(10'000);
  spec.load.requests = 10'000;
  spec.target.timeout = 5s;
  const Records records = play(spec, {.connect = {}, .first = 1h, .gap = {}});
  EXPECT_EQ(count_of(records, Outcome::kTimeout), 10'000);
  for (const RequestRecord& r : records) EXPECT_EQ(*r.done - *r.admitted, 5s);
}

TEST(WorkerOpenTest, TheQueueHasATimeoutOfItsOwn) {
  Spec spec = open(10);
  spec.load.connections = 1;
  spec.load.requests = 3;
  spec.target.timeout = 5s;
  const Records records = play(spec, {.connect = {}, .first = 1h, .gap = {}});
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].error_code, "timeout");
  EXPECT_EQ(records[0].done, 5050ms);
  // The place of the first comes free before the second's own limit is reached.
  EXPECT_EQ(records[1].error_code, "timeout");
  EXPECT_EQ(records[1].admitted, 5050ms);
  EXPECT_EQ(records[2].error_code, "queue_timeout");
  EXPECT_EQ(records[2].admitted, std::nullopt);
  EXPECT_EQ(records[2].done, 5250ms);
}

TEST(WorkerOpenTest, TheDrainHasADeadline) {
  Spec spec = open(10);
  spec.load.connections = 2;
  spec.load.duration = 1s;
  NullTarget target({.connect = {}, .first = 1h, .gap = {}});
  Stage stage(spec, target);
  const Records records = stage.play();
  EXPECT_EQ(count_of(records, Outcome::kCancelled), 10);
  EXPECT_EQ(stage.ended(), 950ms + 30s);
  for (const RequestRecord& r : records) EXPECT_EQ(r.done, 950ms + 30s);
}

TEST(WorkerClosedTest, NeverMoreInFlightThanAsked) {
  Spec spec = closed(8);
  spec.load.warmup.time = 1s;
  spec.load.duration = 5s;
  spec.workload.output = {LengthSpec::Kind::kUniform, 1, 20};
  const Records records = play(spec, {.connect = {}, .first = 37ms, .gap = 1ms});
  EXPECT_EQ(most_at_once(records), 8);
  EXPECT_GT(count_of(records, Phase::kWarmup), 8);
  for (const RequestRecord& r : records) {
    EXPECT_EQ(r.phase == static_cast<int>(Phase::kWarmup), r.scheduled < 1s);
    EXPECT_LT(r.scheduled, 6s);
    EXPECT_EQ(r.outcome, Outcome::kOk);
  }
}

TEST(WorkerClosedTest, SlotsStartSpreadOverTheWarmUp) {
  Spec spec = closed(8);
  spec.load.warmup.time = 4s;
  spec.load.duration = 1s;
  const Records records = play(spec, {.connect = {}, .first = 10s, .gap = {}});
  ASSERT_EQ(records.size(), 8U);
  for (const RequestRecord& r : records) EXPECT_EQ(r.scheduled, r.id * 500ms);
}

TEST(WorkerClosedTest, ThinksForExactlyAsLongAsAsked) {
  Spec spec = closed(1);
  spec.load.think = 100ms;
  spec.load.requests = 10;
  const Records records = play(spec, {.connect = {}, .first = 50ms, .gap = {}});
  ASSERT_EQ(records.size(), 10U);
  for (std::size_t i = 1; i < records.size(); ++i) {
    EXPECT_EQ(records[i].scheduled, *records[i - 1].done + 100ms);
    EXPECT_EQ(records[i].send_start, records[i].scheduled);
  }
}

TEST(WorkerClosedTest, RequestsExcludeTheWarmUp) {
  Spec spec = closed(4);
  spec.load.requests = 20;
  spec.load.warmup.requests = 5;
  Records records = play(spec, {.connect = {}, .first = 50ms, .gap = {}});
  EXPECT_EQ(count_of(records, Phase::kWarmup), 5);
  EXPECT_EQ(count_of(records, Phase::kSteady), 20);
  spec.load.warmup = {1s, std::nullopt};
  records = play(spec, {.connect = {}, .first = 50ms, .gap = {}});
  EXPECT_EQ(count_of(records, Phase::kSteady), 20);
  EXPECT_GT(count_of(records, Phase::kWarmup), 20);
}

TEST(WorkerClosedTest, WithBothWhicheverComesFirst) {
  Spec spec = closed(1);
  spec.load.requests = 5;
  spec.load.duration = 10s;
  EXPECT_EQ(play(spec, {.connect = {}, .first = 100ms, .gap = {}}).size(), 5U);
  spec.load.duration = 250ms;
  EXPECT_EQ(play(spec, {.connect = {}, .first = 100ms, .gap = {}}).size(), 3U);
}

TEST(WorkerClosedTest, CountedWarmUpStartsTheClockOfTheDuration) {
  Spec spec = closed(1);
  spec.load.warmup.requests = 3;
  spec.load.duration = 1s;
  const Records records = play(spec, {.connect = {}, .first = 100ms, .gap = {}});
  EXPECT_EQ(count_of(records, Phase::kWarmup), 3);
  EXPECT_EQ(count_of(records, Phase::kSteady), 10);
}

TEST(WorkerClosedTest, AServerThatHangsDoesNotPutOffTheEnd) {
  Spec spec = closed(4);
  spec.load.warmup.time = 1s;  // all hang in it already
  spec.load.duration = 10s;
  NullTarget target({.connect = {}, .first = 1h, .gap = {}});
  Stage stage(spec, target);
  const Records records = stage.play();
  EXPECT_EQ(count_of(records, Outcome::kCancelled), 4);
  EXPECT_EQ(stage.ended(), 11s + 30s);
}

TEST(WorkerClosedTest, ThinkingDoesNotPutOffTheEnd) {
  Spec spec = closed(2);
  spec.load.duration = 10s;
  spec.load.think = 1h;
  NullTarget target({.connect = {}, .first = 50ms, .gap = {}});
  Stage stage(spec, target);
  EXPECT_EQ(stage.play().size(), 2U);
  EXPECT_EQ(stage.ended(), 10s);
}

TEST(WorkerStopTest, AFirstStopDrains) {
  Spec spec = closed(4);
  spec.load.duration = 100s;
  NullTarget target({.connect = {}, .first = 700ms, .gap = {}});
  Stage stage(spec, target);
  stage.on_ready = [&] {
    stage.loop().at(stage.started() + 1s, [&] { stage.worker(0).stop(10s); });
  };
  const Records records = stage.play();
  EXPECT_EQ(records.size(), 8U);
  EXPECT_EQ(count_of(records, Outcome::kOk), 8);
  EXPECT_EQ(stage.ended(), 1400ms);
}

TEST(WorkerStopTest, ASecondStopCancelsAtOnce) {
  Spec spec = open(10);
  spec.load.connections = 1;
  spec.load.duration = 100s;
  NullTarget target({.connect = {}, .first = 1h, .gap = {}});
  Stage stage(spec, target);
  stage.on_ready = [&] {
    stage.loop().at(stage.started() + 1s, [&] { stage.worker(0).stop(10s); });
    stage.loop().at(stage.started() + 2s, [&] { stage.worker(0).stop(0s); });
  };
  const Records records = stage.play();
  EXPECT_EQ(count_of(records, Outcome::kCancelled), 10);
  EXPECT_EQ(stage.ended(), 2s);
  EXPECT_NE(records[0].admitted, std::nullopt);
  EXPECT_EQ(records[1].admitted, std::nullopt);
}

TEST(WorkerStopTest, AStopBeforeTheStartIsNotForgotten) {
  Spec spec = closed(4);
  spec.load.duration = 100s;
  NullTarget target({.connect = {}, .first = 1s, .gap = {}});
  Stage stage(spec, target);
  stage.on_ready = [&] { stage.worker(0).stop(10s); };
  EXPECT_TRUE(stage.play().empty());
  EXPECT_EQ(stage.ended(), 0s);
}

/// Nobody listens.
class DeadTarget final : public Target {
 public:
  [[nodiscard]] std::string encode(const RequestPlan& /*plan*/) const override { return "x"; }
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override {
    return std::make_unique<DeadChannel>(loop, *this);
  }
  [[nodiscard]] int choices() const override { return 1; }
  int attempts = 0;

 private:
  class DeadChannel final : public Channel {
   public:
    DeadChannel(Loop& loop, DeadTarget& target) : loop_(loop), target_(target) {}
    void open(OpenDone done) override {
      ++target_.attempts;
      loop_.post([done = std::move(done)] {
        OpenResult result;
        result.error = "connection refused";
        done(result);
      });
    }
    void on_idle_closed(IdleClosed /*callback*/) override {}
    void send(std::string_view /*wire*/, ReplySink& /*sink*/) override {}
    void cancel() override {}
    [[nodiscard]] bool reusable() const override { return false; }

   private:
    Loop& loop_;
    DeadTarget& target_;
  };
};

TEST(WorkerClosedTest, ADeadServerIsAskedWithPauses) {
  Spec spec = closed(2);
  spec.load.duration = 1s;
  DeadTarget target;
  const Records records = Stage(spec, target).play();
  EXPECT_EQ(count_of(records, Outcome::kConnect), 20);
  EXPECT_EQ(records.size(), 20U);
  EXPECT_EQ(records[0].error_text, "connection refused");
  EXPECT_EQ(records[0].send_start, std::nullopt);
  EXPECT_EQ(records[2].scheduled, 100ms);
}

TEST(WorkerOpenTest, ADeadServerIsAskedOncePerRequest) {
  Spec spec = open(10);
  spec.load.duration = 1s;
  DeadTarget target;
  const Records records = Stage(spec, target).play();
  EXPECT_EQ(count_of(records, Outcome::kConnect), 10);
  EXPECT_EQ(target.attempts, 12);  // two were prepared
}

/// Answers every request but the second of a connection, whose connection breaks after `breaks`.
class BreakingTarget final : public Target {
 public:
  explicit BreakingTarget(Duration breaks) : breaks_(breaks) {}
  [[nodiscard]] std::string encode(const RequestPlan& /*plan*/) const override { return "x"; }
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override {
    return std::make_unique<BreakingChannel>(loop, breaks_);
  }
  [[nodiscard]] int choices() const override { return 1; }

 private:
  class BreakingChannel final : public Channel {
   public:
    BreakingChannel(Loop& loop, Duration breaks) : loop_(loop), breaks_(breaks) {}
    void open(OpenDone done) override {
      loop_.post([done = std::move(done)] {
        OpenResult result;
        result.ok = true;
        done(result);
      });
    }
    void on_idle_closed(IdleClosed /*callback*/) override {}
    void send(std::string_view /*wire*/, ReplySink& sink) override {
      sink.on_send_start(loop_.now());
      sink.on_sent(loop_.now(), 1);
      const bool breaks = ++requests_ == 2;
      loop_.at(loop_.now() + (breaks ? breaks_ : 1ms), [this, breaks, &sink] {
        alive_ = !breaks;
        if (breaks) return sink.on_end(ReplyEnd::kReset, loop_.now(), "reset");
        const Stamp stamp{loop_.now(), loop_.now(), StampSource::kKernel};
        sink.on_read(stamp, 1);
        TokenEvent event;
        event.text = "a";
        event.end = true;
        sink.on_event(event, stamp);
        sink.on_end(ReplyEnd::kComplete, loop_.now(), {});
      });
    }
    void cancel() override {}
    [[nodiscard]] bool reusable() const override { return alive_; }

   private:
    Loop& loop_;
    Duration breaks_;
    int requests_ = 0;
    bool alive_ = true;
  };

  Duration breaks_;
};

TEST(WorkerClosedTest, ACloseThatCrossedTheRequestIsNoFailureOfIt) {
  Spec spec = closed(1);
  spec.load.requests = 4;
  BreakingTarget target(20ms);
  Stage stage(spec, target);
  const Records records = stage.play();
  EXPECT_EQ(count_of(records, Outcome::kOk), 4);
  // Once: connections of a server with that habit are not used again.
  EXPECT_EQ(stage.worker(0).context().counts.sent_again, 1);
}

TEST(WorkerClosedTest, AServerThatHadTheRequestAndGaveItUpHasFailed) {
  Spec spec = closed(1);
  spec.load.requests = 4;
  BreakingTarget target(2s);
  Stage stage(spec, target);
  const Records records = stage.play();
  EXPECT_EQ(count_of(records, Outcome::kOk), 2);
  EXPECT_EQ(count_of(records, Outcome::kReset), 2);
  EXPECT_EQ(stage.worker(0).context().counts.sent_again, 0);
}

}  // namespace
}  // namespace assay
