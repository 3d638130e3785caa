#include "engine/load/plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/core/time.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

using Count = std::optional<std::int64_t>;

Spec closed(std::int64_t concurrency) {
  Spec spec;
  spec.load.concurrency = concurrency;
  return spec;
}

Spec open(double rate, Count connections = {}, Count queue_depth = {}) {
  Spec spec;
  spec.load.rate = rate;
  spec.load.connections = connections;
  spec.load.queue_depth = queue_depth;
  return spec;
}

struct WorkerCase {
  const char* name;
  Spec spec;
  int cores;
  int workers;
};

Spec with_workers(Spec spec, std::int64_t workers) {
  spec.load.workers = workers;
  return spec;
}

TEST(PlanTest, SharesOnlyWhatMayBeShared) {
  const WorkerCase cases[] = {
      {"closed, few slots: one queue", closed(8), 4, 1},
      {"closed, just under 64 connections a core", closed(255), 4, 1},
      {"closed, 64 connections a core", closed(256), 4, 4},
      {"closed, one core", closed(1000), 1, 1},
      {"open, nothing finite", open(10), 4, 4},
      {"open, few connections", open(10, 1), 4, 1},
      {"open, many connections", open(10, 10'000), 4, 4},
      {"open, just under 64 connections a core", open(10, 127), 2, 1},
      {"open, 64 connections a core", open(10, 128), 2, 2},
      {"open, finite queue, unlimited connections", open(10, {}, 0), 4, 4},
      {"open, finite queue, few connections", open(10, 64, 5), 4, 1},
      {"asked for", with_workers(closed(8), 2), 4, 2},
      {"asked for more than there are slots", with_workers(closed(3), 8), 4, 3},
      {"asked for more than there are connections", with_workers(open(5, 2), 8), 4, 2},
  };
  for (const WorkerCase& c : cases) {
    const LoadPlan plan = plan_load(c.spec, c.cores);
    EXPECT_EQ(plan.workers, c.workers) << c.name;
    EXPECT_FALSE(plan.workers_why.empty()) << c.name;
  }
}

TEST(PlanTest, ConnectionsFollowTheConcurrencyOfAClosedLoopAlone) {
  EXPECT_EQ(plan_load(closed(8), 2).connections, 8);
  EXPECT_EQ(plan_load(open(8), 2).connections, std::nullopt);
  Spec fewer = closed(8);
  fewer.load.connections = 4;
  EXPECT_EQ(plan_load(fewer, 2).connections, 4);
}

TEST(PlanTest, ARunOfRequestsWaitsForThemAndARunOfTimeDoesNot) {
  Spec spec = closed(1);
  spec.target.timeout = 600s;
  spec.load.duration = 30s;
  EXPECT_EQ(plan_load(spec, 1).drain, 30s);
  spec.target.timeout = 5s;
  EXPECT_EQ(plan_load(spec, 1).drain, 5s);
  spec.target.timeout = 600s;
  spec.load.requests = 100;
  // In the queue for the timeout, then on the wire for the timeout.
  EXPECT_EQ(plan_load(spec, 1).drain, 1200s);
}

TEST(PlanTest, SharesAddUpAndDifferByOneAtMost) {
  for (int workers = 1; workers <= 7; ++workers) {
    LoadPlan plan;
    plan.workers = workers;
    for (std::int64_t total = 0; total < 30; ++total) {
      std::int64_t sum = 0;
      for (int w = 0; w < workers; ++w) {
        sum += plan.share(total, w);
        EXPECT_LE(plan.share(total, 0) - plan.share(total, w), 1);
        EXPECT_GE(plan.share(total, 0), plan.share(total, w));
      }
      EXPECT_EQ(sum, total) << workers;
    }
  }
}

}  // namespace
}  // namespace assay
