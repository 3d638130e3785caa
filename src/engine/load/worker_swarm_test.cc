// A swarm of random specs against a target that fails in every way it can: whatever happens, every
// request ends exactly once, in order, and inside its limits. A failing seed is printed.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/worker_harness.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

using internal::most_at_once;
using internal::Stage;
using Records = std::vector<RequestRecord>;

/// How a reply goes wrong, and how often each way is taken, in percent; the rest goes well.
struct Faults {
  std::uint64_t refuse = 0, reset = 0, close = 0, stall = 0, error = 0, http = 0, idle_close = 0;
};

class FaultyTarget final : public Target {
 public:
  FaultyTarget(Faults faults, std::uint64_t seed)
      : faults_(faults), draws_(RandomStream(seed, "faults").at(0)) {}
  [[nodiscard]] std::string encode(const RequestPlan& plan) const override {
    return plan.request_id;
  }
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override;
  [[nodiscard]] int choices() const override { return 1; }

  [[nodiscard]] bool happens(std::uint64_t percent) { return draws_.below(100) < percent; }
  [[nodiscard]] Duration some_time() {
    return std::chrono::microseconds(static_cast<std::int64_t>(draws_.below(50'000)));
  }
  [[nodiscard]] std::int64_t below(std::uint64_t n) {
    return static_cast<std::int64_t>(draws_.below(n));
  }
  [[nodiscard]] const Faults& faults() const { return faults_; }

 private:
  Faults faults_;
  Draws draws_;
};

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(Loop& loop, FaultyTarget& target) : loop_(loop), target_(target) {}
  ~FaultyChannel() override { loop_.cancel(timer_); }
  FaultyChannel(const FaultyChannel&) = delete;
  FaultyChannel& operator=(const FaultyChannel&) = delete;

  void open(OpenDone done) override {
    after(target_.some_time(), [this, done = std::move(done)] {
      OpenResult result;
      result.ok = usable_ = !target_.happens(target_.faults().refuse);
      if (!result.ok) result.error = "refused";
      if (usable_) maybe_close_idle();
      done(result);
    });
  }
  void on_idle_closed(IdleClosed callback) override { idle_closed_ = std::move(callback); }
  void send(std::string_view wire, ReplySink& sink) override {
    EXPECT_TRUE(usable_ && sink_ == nullptr) << "sent on a channel that is not free";
    EXPECT_FALSE(wire.empty());
    sink_ = &sink;
    tokens_left_ = 1 + target_.below(5);
    status_sent_ = false;
    sink_->on_send_start(loop_.now());
    sink_->on_sent(loop_.now(), static_cast<std::int64_t>(wire.size()));
    after(target_.some_time(), [this] { tick(); });
  }
  void cancel() override {
    loop_.cancel(timer_);
    sink_ = nullptr;
    usable_ = false;
  }
  [[nodiscard]] bool reusable() const override { return usable_ && sink_ == nullptr; }

 private:
  void after(Duration wait, Loop::Task task) {
    loop_.cancel(timer_);
    timer_ = loop_.at(loop_.now() + wait, std::move(task));
  }

  void maybe_close_idle() {
    if (!target_.happens(target_.faults().idle_close)) return;
    after(target_.some_time(), [this] {
      usable_ = false;
      const IdleClosed callback = idle_closed_;
      callback();
    });
  }

  void end(ReplyEnd how) {
    usable_ = how == ReplyEnd::kComplete;
    ReplySink* const sink = std::exchange(sink_, nullptr);
    if (usable_) maybe_close_idle();
    sink->on_end(how, loop_.now(), how == ReplyEnd::kComplete ? "" : "broken");
  }

  void tick() {
    const Faults& faults = target_.faults();
    const Stamp stamp{loop_.now(), loop_.now(), StampSource::kKernel};
    if (target_.happens(faults.stall)) return;
    if (target_.happens(faults.reset)) return end(ReplyEnd::kReset);
    if (target_.happens(faults.close)) return end(ReplyEnd::kClosed);
    sink_->on_read(stamp, 10);
    if (!std::exchange(status_sent_, true)) {
      const bool fails = target_.happens(faults.http);
      sink_->on_status(fails ? 503 : 200, "faulty");
      if (fails) {
        sink_->on_error_body("503", "overloaded");
        return end(ReplyEnd::kComplete);
      }
    }
    TokenEvent event;
    event.text = "x";
    event.error = target_.happens(faults.error);
    if (event.error) event.error_text = "overloaded";
    event.end = --tokens_left_ == 0;
    sink_->on_event(event, stamp);
    if (event.end) return end(ReplyEnd::kComplete);
    after(target_.some_time(), [this] { tick(); });
  }

  Loop& loop_;
  FaultyTarget& target_;
  ReplySink* sink_ = nullptr;
  IdleClosed idle_closed_;
  Loop::TimerId timer_ = 0;
  std::int64_t tokens_left_ = 0;
  bool usable_ = false, status_sent_ = false;
};

std::unique_ptr<Channel> FaultyTarget::channel(Loop& loop) {
  return std::make_unique<FaultyChannel>(loop, *this);
}

std::int64_t one_to(Draws& draws, std::uint64_t most) {
  return 1 + static_cast<std::int64_t>(draws.below(most));
}

Spec random_spec(Draws& draws) {
  Spec spec;
  spec.run.seed = draws.next_u64();
  spec.workload.input = {LengthSpec::Kind::kFixed, 2, 0};
  spec.target.timeout = std::chrono::milliseconds(one_to(draws, 500));
  LoadSpec& load = spec.load;
  load.warmup = {};
  if (draws.below(2) == 0) {
    load.concurrency = one_to(draws, 20);
    if (draws.below(3) == 0) load.think = std::chrono::milliseconds(one_to(draws, 100));
  } else {
    load.rate = static_cast<double>(one_to(draws, 300));
    load.arrival = draws.below(2) == 0 ? Arrival::kConstant : Arrival::kPoisson;
  }
  if (draws.below(2) == 0) load.connections = one_to(draws, 10);
  if (draws.below(3) == 0) load.queue_depth = static_cast<std::int64_t>(draws.below(6));
  if (draws.below(3) == 0) load.workers = one_to(draws, 4);
  load.cold_connect = draws.below(4) == 0;
  const std::uint64_t warmup = draws.below(3);
  if (warmup == 1) load.warmup.time = std::chrono::milliseconds(one_to(draws, 300));
  if (warmup == 2) load.warmup.requests = one_to(draws, 20);
  if (draws.below(2) == 0) load.requests = one_to(draws, 60);
  if (!load.requests || draws.below(3) == 0) {
    load.duration = std::chrono::milliseconds(one_to(draws, 1000));
  }
  return spec;
}

/// Each kind of fault is off in half of the runs and of any weight in the others.
Faults random_faults(Draws& draws) {
  const auto percent = [&draws] { return draws.below(2) == 0 ? 0 : draws.below(60); };
  Faults faults;
  for (std::uint64_t* fault : {&faults.refuse, &faults.reset, &faults.close, &faults.stall,
                               &faults.error, &faults.http, &faults.idle_close}) {
    *fault = percent();
  }
  return faults;
}

/// What was reached, was reached in order.
void check_instants(const RequestRecord& r) {
  RunTime before = r.scheduled;
  for (const MaybeTime& at : {r.admitted, r.send_start, r.sent, r.first_byte, r.first_event,
                              r.first_token, r.last_token, r.done}) {
    if (!at) continue;
    EXPECT_GE(*at, before) << "request " << r.id;
    before = *at;
  }
  ASSERT_TRUE(r.done) << r.id;
  EXPECT_EQ(r.admitted.has_value(), r.send_start.has_value()) << r.id;
  ChunkReader chunks(r.chunks, r.scheduled);
  std::optional<RunTime> last;
  while (const auto chunk = chunks.next()) last = chunk->at;
  EXPECT_FALSE(chunks.damaged());
  EXPECT_EQ(last, r.last_token) << r.id;
}

void check_outcome(const RequestRecord& r, const Spec& spec) {
  switch (r.outcome) {
    case Outcome::kOk:
      EXPECT_TRUE(r.first_token) << r.id;
      EXPECT_TRUE(r.error_text.empty()) << r.id;
      break;
    case Outcome::kTimeout:
      EXPECT_EQ(*r.done - r.admitted.value_or(r.scheduled), spec.target.timeout) << r.id;
      break;
    case Outcome::kRefusedByClient:
      EXPECT_TRUE(spec.load.queue_depth) << r.id;
      EXPECT_FALSE(r.admitted) << r.id;
      break;
    case Outcome::kConnect:
      EXPECT_FALSE(r.admitted) << r.id;
      EXPECT_EQ(r.error_text, "refused");
      break;
    default:
      EXPECT_FALSE(r.error_text.empty()) << r.id;
  }
}

enum class Ending { kOfItself, kByStop };

void check_counts(const Records& records, const Spec& spec, const LoadPlan& plan, Ending ending) {
  for (std::size_t i = 1; i < records.size(); ++i) EXPECT_NE(records[i].id, records[i - 1].id);
  const std::int64_t steady = internal::count_of(records, Phase::kSteady);
  if (spec.load.requests) {
    EXPECT_LE(steady, *spec.load.requests);
  }
  if (spec.load.requests && !spec.load.duration && ending == Ending::kOfItself) {
    EXPECT_EQ(steady, *spec.load.requests);
  }
  if (plan.connections) {
    EXPECT_LE(most_at_once(records), *plan.connections);
  }
  if (!plan.open_loop) {
    EXPECT_LE(most_at_once(records), plan.slots);
    return;
  }
  OpenSchedule schedule(spec.load, plan, spec.run.seed);
  for (const RequestRecord& r : records) {
    const auto arrival = schedule.next();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(r.id, arrival->id);
    EXPECT_EQ(r.scheduled, arrival->at);
  }
  if (ending == Ending::kOfItself) {
    EXPECT_FALSE(schedule.next()) << "a request of the schedule has no record";
  }
}

/// As a user does who loses patience: a first stop drains, a second one cancels.
void stop_some_time(Stage& stage, Draws& draws) {
  const auto first = std::chrono::milliseconds(draws.below(500));
  const auto second = first + std::chrono::milliseconds(draws.below(100));
  stage.on_ready = [&stage, first, second] {
    for (std::size_t w = 0; w < static_cast<std::size_t>(stage.plan().workers); ++w) {
      stage.loop().at(stage.started() + first, [&stage, w] { stage.worker(w).stop(10s); });
      stage.loop().at(stage.started() + second, [&stage, w] { stage.worker(w).stop(0s); });
    }
  };
}

TEST(WorkerSwarmTest, EveryRequestEndsExactlyOnceWhateverGoesWrong) {
  std::size_t total = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws = RandomStream(seed, "swarm").at(0);
    const Spec spec = random_spec(draws);
    FaultyTarget target(random_faults(draws), seed);
    Stage stage(spec, target);
    if (draws.below(4) == 0) stage.plan().drain = std::chrono::milliseconds(one_to(draws, 100));
    const Ending ending = draws.below(4) == 0 ? Ending::kByStop : Ending::kOfItself;
    if (ending == Ending::kByStop) stop_some_time(stage, draws);
    const Records records = stage.play();
    total += records.size();
    for (const RequestRecord& r : records) {
      check_instants(r);
      check_outcome(r, spec);
    }
    check_counts(records, spec, stage.plan(), ending);
  }
  EXPECT_GT(total, 10'000U);
}

}  // namespace
}  // namespace assay
