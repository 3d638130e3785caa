#include "study/measure/beyond_audit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "domain/ledger/ledger.h"
#include "study/measure/canned_ledger.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

/// Four streams, two at a time: each 100 chunks, 10 ms apart.
CannedRun two_by_two() {
  CannedRun run(4000);
  for (const double start : {0.0, 0.0, 2000.0, 2000.0}) {
    CannedReply reply{.scheduled_ms = start, .done_after_ms = 1001};
    for (int k = 1; k <= 100; ++k) reply.chunks_after_ms.push_back(k * 10.0);
    run.add(reply);
  }
  return run;
}

Check check_of(CannedRun run, const std::string& events, const std::string& streams) {
  run.ledger.meta.emplace(meta::kAuditEventsPerS, events);
  run.ledger.meta.emplace(meta::kAuditStreams, streams);
  return beyond_audit(run.ledger);
}

TEST(BeyondAudit, PeaksAreThoseOfTheBusiestSecond) {
  const Peaks peaks = peaks_of(two_by_two().ledger);
  EXPECT_EQ(peaks.events_per_s, 200);
  EXPECT_EQ(peaks.streams, 2);
  EXPECT_EQ(peaks_of(CannedRun(1000).ledger).events_per_s, 0);
  EXPECT_EQ(peaks_of(CannedRun(1000).ledger).streams, 0);
}

TEST(BeyondAudit, AShortRunCountsByItsLength) {
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {10, 20, 30, 40, 49.9}, .done_after_ms = 50});
  EXPECT_EQ(peaks_of(run.ledger).events_per_s, 125);  // 5 in 40 ms
}

TEST(BeyondAudit, PassesWithinAndFailsBeyondEither) {
  EXPECT_EQ(check_of(two_by_two(), "200", "2").status, CheckStatus::kPass);
  EXPECT_EQ(*check_of(two_by_two(), "400", "2").value, 1);
  const Check events = check_of(two_by_two(), "100", "1000");
  EXPECT_EQ(events.status, CheckStatus::kFail);
  EXPECT_EQ(*events.value, 2);
  EXPECT_EQ(events.advice,
            "the run reached 200 events/s and 2 streams; assay's figures are proven up to 100 and "
            "1000 here: lower the load, or repeat assay audit");
  EXPECT_EQ(check_of(two_by_two(), "100000", "1").status, CheckStatus::kFail);
}

TEST(BeyondAudit, AnAuditThatTrustsNothingIsExceededByAnyRun) {
  EXPECT_EQ(check_of(CannedRun(1000), "0", "0").status, CheckStatus::kFail);
}

TEST(BeyondAudit, WithoutAnAuditItIsSkippedAndNeverPassed) {
  EXPECT_EQ(beyond_audit(two_by_two().ledger).status, CheckStatus::kSkipped);
  EXPECT_EQ(check_of(two_by_two(), "many", "2").status, CheckStatus::kSkipped);
}

TEST(BeyondAudit, IsAdvisoryInAMeasurement) {
  CannedRun run = two_by_two();
  run.ledger.meta.emplace(meta::kAuditEventsPerS, "100");
  run.ledger.meta.emplace(meta::kAuditStreams, "1");
  const Measurement m = measure(run.ledger, run.spec);
  ASSERT_NE(m.validity.find("audit"), nullptr);
  EXPECT_EQ(m.validity.find("audit")->status, CheckStatus::kFail);
  EXPECT_TRUE(m.validity.valid);
}

}  // namespace
}  // namespace assay
