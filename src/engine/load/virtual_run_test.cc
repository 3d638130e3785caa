#include "engine/load/virtual_run.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/test_folder.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/net/virtual_loop.h"
#include "engine/target/null_target.h"

namespace assay {
namespace {

Spec open_loop() {
  Spec spec;
  spec.load.rate = 100;
  spec.load.duration = 20s;
  spec.load.warmup.time = 2s;
  spec.workload.prompt = "hi";
  spec.workload.output = {LengthSpec::Kind::kFixed, 3, 0};
  spec.run.salt = "s";
  return spec;
}

struct Played {
  RunEnd end;
  Ledger ledger;
};

class VirtualRunTest : public testing::Test {
 protected:
  Played play(const Spec& spec, std::optional<std::vector<Duration>> trace = std::nullopt) {
    const std::string path = folder_.file(std::to_string(runs_++) + ".assay");
    const LoadPlan plan = plan_load(spec, 1);
    auto ledger = LedgerWriter::create(path, {});
    EXPECT_TRUE(ledger.has_value());
    VirtualLoop loop;
    NullTarget target({.connect = 1ms, .first = 30ms, .gap = 10ms});
    const auto end = run_virtual({.spec = spec,
                                  .plan = plan,
                                  .loop = loop,
                                  .target = target,
                                  .ledger = **ledger,
                                  .stop = stop_,
                                  .trace = std::move(trace)});
    EXPECT_TRUE(end.has_value());
    EXPECT_TRUE((*ledger)->close("complete").has_value());
    auto read = read_ledger(path);
    EXPECT_TRUE(read.has_value());
    return {*end, *std::move(read)};
  }

  internal::TestFolder folder_;
  StopLevel stop_{0};
  int runs_ = 0;
};

TEST_F(VirtualRunTest, AnOpenLoopIsPlayedToItsEnd) {
  const Played played = play(open_loop());
  EXPECT_FALSE(played.end.interrupted);
  EXPECT_NEAR(static_cast<double>(played.ledger.requests.size()), 2200, 200);
  ASSERT_EQ(played.ledger.phases.size(), 3U);
  EXPECT_EQ(played.ledger.phases[1].end, RunTime(22s));
  for (const RequestRecord& record : played.ledger.requests) {
    EXPECT_EQ(record.outcome, Outcome::kOk);
    EXPECT_EQ(*record.last_token - *record.send_start, 50ms);
  }
}

TEST_F(VirtualRunTest, OneSeedGivesOneLedger) {
  const Played a = play(open_loop()), b = play(open_loop());
  ASSERT_EQ(a.ledger.requests.size(), b.ledger.requests.size());
  for (std::size_t i = 0; i < a.ledger.requests.size(); ++i) {
    EXPECT_EQ(a.ledger.requests[i].scheduled, b.ledger.requests[i].scheduled);
    EXPECT_EQ(a.ledger.requests[i].done, b.ledger.requests[i].done);
    EXPECT_EQ(a.ledger.requests[i].chunks, b.ledger.requests[i].chunks);
  }
  Spec other = open_loop();
  other.run.seed = 2;
  EXPECT_NE(play(other).ledger.requests[0].scheduled, a.ledger.requests[0].scheduled);
}

TEST_F(VirtualRunTest, AClosedLoopKeepsItsSlotsBusy) {
  Spec spec = open_loop();
  spec.load.rate.reset();
  spec.load.concurrency = 4;
  const Played played = play(spec);
  // Four slots that start at 0, 0.5, 1 and 1.5 s and end at 22 s; 50 ms each time.
  EXPECT_EQ(played.ledger.requests.size(), static_cast<std::size_t>((4 * 22 - 3) / 0.05));
}

TEST_F(VirtualRunTest, ATraceSaysWhenRequestsArrive) {
  Spec spec = open_loop();
  spec.load.warmup.time = 0s;
  spec.load.duration.reset();
  spec.load.requests = 3;
  const Played played = play(spec, std::vector<Duration>{5ms, 5ms, 90s});
  ASSERT_EQ(played.ledger.requests.size(), 3U);
  EXPECT_EQ(played.ledger.requests[0].scheduled, RunTime(5ms));
  EXPECT_EQ(played.ledger.requests[1].scheduled, RunTime(5ms));
  EXPECT_EQ(played.ledger.requests[2].scheduled, RunTime(90s));
}

TEST_F(VirtualRunTest, AStopEndsTheRun) {
  stop_ = 1;
  const Played played = play(open_loop());
  EXPECT_TRUE(played.end.interrupted);
  EXPECT_LE(played.ledger.requests.size(), 1U);
}

}  // namespace
}  // namespace assay
