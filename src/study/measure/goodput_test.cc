#include "study/measure/goodput.h"

#include <gtest/gtest.h>

#include "study/measure/canned_ledger.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

CannedRun hundred_replies() {
  CannedRun run(10'000);
  for (int i = 0; i < 100; ++i) {
    const double first = i < 98 ? 50 : 500;  // two are slow
    run.add(CannedReply{.scheduled_ms = i * 100.0,
                        .chunks_after_ms = {first, first + 10, first + 40},
                        .done_after_ms = first + 41,
                        .usage_output = 3});
  }
  return run;
}

TEST(Goodput, ComparesTheShareWithTheTarget) {
  CannedRun run = hundred_replies();
  run.spec.slo = {{.metric = SloMetric::kTtft, .limit = 350ms, .attainment = 0.99}};
  Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.goodput.good_share, 0.98);
  EXPECT_FALSE(m.goodput.slo[0].met);
  run.spec.slo[0].attainment = 0.98;
  m = measure(run.ledger, run.spec);
  EXPECT_TRUE(m.goodput.slo[0].met);
  EXPECT_EQ(m.goodput.good_rps.value, 9.8);
}

TEST(Goodput, NeedsEveryObjective) {
  CannedRun run = hundred_replies();
  run.spec.slo = {{.metric = SloMetric::kTtft, .limit = 350ms, .attainment = 0.9},
                  {.metric = SloMetric::kWorstGap, .limit = 29ms, .attainment = 0.9}};
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.goodput.good, 0);
  EXPECT_EQ(m.goodput.slo[0].met_by, 98);
  EXPECT_EQ(m.goodput.slo[1].met_by, 0);
}

TEST(Goodput, PassesWhatIsNullAndCountsIt) {
  CannedRun run = hundred_replies();
  run.ledger.requests[0].tokens_server_output.reset();  // no N, so no TPOT
  run.spec.slo = {{.metric = SloMetric::kTpot, .limit = 20ms, .attainment = 0.9}};
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.goodput.slo[0].null_passed, 1);
  EXPECT_EQ(m.goodput.good, 100);
}

TEST(Goodput, CountsRefusedOnesOnlyWhereTheUserSetAQueueDepth) {
  CannedRun run = hundred_replies();
  run.spec.slo = {{.metric = SloMetric::kTtft, .limit = 1s, .attainment = 0.9}};
  for (int i = 0; i < 100; ++i) run.add(i * 100.0 + 50, Outcome::kRefusedByClient, 0);
  EXPECT_EQ(measure(run.ledger, run.spec).goodput.good_share, 1);
  run.spec.load.queue_depth = 0;
  EXPECT_EQ(measure(run.ledger, run.spec).goodput.good_share, 0.5);
}

TEST(Goodput, WithoutObjectivesIsUnknown) {
  const CannedRun run = hundred_replies();
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_FALSE(m.goodput.good_share);
  EXPECT_FALSE(m.goodput.good_rps.value);
}

}  // namespace
}  // namespace assay
