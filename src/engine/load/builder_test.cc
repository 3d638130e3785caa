#include "engine/load/builder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"
#include "engine/load/plan.h"
#include "engine/target/null_target.h"

namespace assay {
namespace {

Spec open_spec(double rate) {
  Spec spec;
  spec.load.rate = rate;
  spec.load.arrival = Arrival::kConstant;
  spec.load.warmup = {};
  spec.workload.output = {LengthSpec::Kind::kUniform, 1, 1000};
  return spec;
}

std::vector<OpenSchedule::Arrival> schedule(const Spec& spec) {
  OpenSchedule walk(spec.load, plan_load(spec, 1), spec.run.seed);
  std::vector<OpenSchedule::Arrival> all;
  while (const auto arrival = walk.next()) all.push_back(*arrival);
  return all;
}

std::size_t warmups(const std::vector<OpenSchedule::Arrival>& all) {
  std::size_t n = 0;
  for (const auto& arrival : all) n += arrival.warmup ? 1 : 0;
  return n;
}

TEST(OpenScheduleTest, TimedWarmUpThenDuration) {
  Spec spec = open_spec(10);
  spec.load.warmup.time = 2s;
  spec.load.duration = 3s;
  const auto all = schedule(spec);
  ASSERT_EQ(all.size(), 50U);
  EXPECT_EQ(warmups(all), 20U);
  EXPECT_EQ(all.front().at, 50ms);
  EXPECT_EQ(all[20].at, 2050ms);
  EXPECT_FALSE(all[20].warmup);
  EXPECT_EQ(all.back().at, 4950ms);
  EXPECT_EQ(all.back().id, 49);
}

TEST(OpenScheduleTest, CountedWarmUpThenDurationFromTheFirstSteadyArrival) {
  Spec spec = open_spec(10);
  spec.load.warmup.requests = 7;
  spec.load.duration = 1s;
  const auto all = schedule(spec);
  EXPECT_EQ(warmups(all), 7U);
  ASSERT_EQ(all.size(), 17U);
  EXPECT_EQ(all[7].at, 750ms);
  EXPECT_EQ(all.back().at, 1650ms);
}

TEST(OpenScheduleTest, RequestsExcludeTheWarmUp) {
  Spec spec = open_spec(10);
  spec.load.warmup.time = 1s;
  spec.load.requests = 5;
  EXPECT_EQ(schedule(spec).size(), 15U);
  spec.load.warmup = {std::nullopt, 3};
  EXPECT_EQ(schedule(spec).size(), 8U);
}

TEST(OpenScheduleTest, WithBothWhicheverComesFirst) {
  Spec spec = open_spec(10);
  spec.load.duration = 1s;
  spec.load.requests = 4;
  EXPECT_EQ(schedule(spec).size(), 4U);
  spec.load.requests = 400;
  EXPECT_EQ(schedule(spec).size(), 10U);
}

TEST(RequestBuilderTest, ARequestDependsOnItsNumberAlone) {
  const Spec spec = open_spec(10);
  const NullTarget target;
  const RequestBuilder one(spec, "salt", target);
  const RequestBuilder two(spec, "salt", target);
  for (std::int64_t id = 0; id < 20; ++id) EXPECT_NE(one.build(id), nullptr);
  for (std::int64_t id = 19; id >= 0; --id) {
    const auto a = one.build(id);
    const auto b = two.build(id);
    EXPECT_EQ(a->wire, b->wire);
    EXPECT_EQ(a->item, b->item);
    EXPECT_EQ(a->request_id, b->request_id);
    EXPECT_EQ(a->id, id);
  }
  EXPECT_NE(one.build(0)->request_id, one.build(1)->request_id);
  const RequestBuilder other(spec, "pepper", target);
  EXPECT_NE(one.build(0)->request_id, other.build(0)->request_id);
  EXPECT_EQ(one.build(0)->item, other.build(0)->item);
}

TEST(RequestFeedTest, ClosedIsFinishedOnlyWhenEmpty) {
  RequestFeed feed(2);
  EXPECT_EQ(feed.front(), nullptr);
  EXPECT_FALSE(feed.finished());
  auto request = std::make_unique<PreparedRequest>();
  request->id = 5;
  EXPECT_TRUE(feed.push(request));
  feed.close();
  EXPECT_FALSE(feed.finished());
  ASSERT_NE(feed.front(), nullptr);
  EXPECT_EQ(feed.pop()->id, 5);
  EXPECT_TRUE(feed.finished());
  EXPECT_EQ(feed.front(), nullptr);
}

TEST(RequestFeedTest, FillIsAskedWhenEmptyAndNotAfterItsEnd) {
  int asked = 0;
  RequestFeed feed(
      4, [&asked] { return ++asked <= 2 ? std::make_unique<PreparedRequest>() : nullptr; });
  EXPECT_NE(feed.front(), nullptr);
  EXPECT_NE(feed.front(), nullptr);
  EXPECT_EQ(asked, 1);
  feed.pop();
  EXPECT_NE(feed.front(), nullptr);
  feed.pop();
  EXPECT_EQ(feed.front(), nullptr);
  EXPECT_TRUE(feed.finished());
  EXPECT_EQ(feed.front(), nullptr);
  EXPECT_EQ(asked, 3);
}

TEST(FeedFillerTest, HoldsTwoSecondsOfAnOpenLoopWithinBounds) {
  Spec spec = open_spec(1000);
  EXPECT_EQ(FeedFiller::capacity(spec, plan_load(spec, 1)), 2000U);
  EXPECT_EQ(FeedFiller::capacity(spec, plan_load(spec, 4)), 500U);
  spec.load.rate = 0.1;
  EXPECT_EQ(FeedFiller::capacity(spec, plan_load(spec, 1)), 64U);
  spec.load.rate = 1e9;
  spec.workload.input = {LengthSpec::Kind::kFixed, 32'768, 0};
  const std::size_t held = FeedFiller::capacity(spec, plan_load(spec, 1));
  EXPECT_GT(held, 500U);
  EXPECT_LT(held * 32'768 * 8, 256'000'000U);  // bytes of prompts, whatever the rate
  Spec closed;
  closed.load.concurrency = 5000;
  EXPECT_EQ(FeedFiller::capacity(closed, plan_load(closed, 1)), 5000U);
  closed.load.concurrency = 8;
  EXPECT_EQ(FeedFiller::capacity(closed, plan_load(closed, 1)), 1024U);
}

std::vector<std::unique_ptr<RequestFeed>> feeds(std::size_t n, std::size_t capacity) {
  std::vector<std::unique_ptr<RequestFeed>> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(std::make_unique<RequestFeed>(capacity));
  return all;
}

TEST(FeedFillerTest, DealsRequestsInTurnWhateverTheNumberOfWorkers) {
  Spec spec = open_spec(100);
  spec.load.requests = 50;
  const NullTarget target;
  const RequestBuilder builder(spec, "s", target);
  std::map<std::int64_t, RunTime> seen[2];
  for (const int workers : {1, 4}) {
    LoadPlan plan = plan_load(spec, workers);
    ASSERT_EQ(plan.workers, workers);
    auto all = feeds(static_cast<std::size_t>(workers), 64);
    FeedFiller filler(spec, plan, builder, all);
    filler.run(std::stop_token());
    for (std::size_t w = 0; w < all.size(); ++w) {
      EXPECT_TRUE(all[w]->closed());
      while (all[w]->front() != nullptr) {
        const auto request = all[w]->pop();
        EXPECT_EQ(static_cast<std::size_t>(request->id) % all.size(), w);
        seen[workers == 1 ? 0 : 1][request->id] = request->scheduled;
      }
    }
  }
  EXPECT_EQ(seen[0].size(), 50U);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(FeedFillerTest, EndsWhenToldToThoughNobodyTakesARequest) {
  Spec spec;
  spec.load.concurrency = 4;
  const NullTarget target;
  const RequestBuilder builder(spec, "s", target);
  const LoadPlan plan = plan_load(spec, 1);
  auto all = feeds(1, 4);
  FeedFiller filler(spec, plan, builder, all);
  std::jthread thread([&](const std::stop_token& stop) { filler.run(stop); });
  while (all[0]->size() < 4) std::this_thread::yield();
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(all[0]->closed());
  EXPECT_EQ(all[0]->size(), 4U);
  for (std::int64_t id = 0; id < 4; ++id) EXPECT_EQ(all[0]->pop()->id, id);
  EXPECT_TRUE(all[0]->finished());
}

}  // namespace
}  // namespace assay
