#include "study/doctor/audit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/stats/histogram.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace assay {
namespace {

Ledger ledger_from(std::int64_t origin_ns) {
  Ledger ledger;
  ledger.path = "hand.assay";
  ledger.meta.emplace(meta::kStartMonotonicNs, std::to_string(origin_ns));
  return ledger;
}

RequestRecord record(const std::string& id, RunTime scheduled, const std::vector<RunTime>& chunks) {
  RequestRecord r;
  r.request_id = id;
  r.scheduled = scheduled;
  r.send_start = scheduled;
  ChunkWriter writer;
  writer.start(scheduled);
  for (const RunTime at : chunks) writer.append({.at = at, .flags = kChunkNewRead});
  r.chunks = writer.take();
  return r;
}

/// A server that sends 11 events to each of `streams` requests, 10 ms apart, from 50 ms on, and a
/// client that stamps each of them `late` after its send.
struct Pair {
  Ledger client = ledger_from(1'000'000'000);
  Ledger truth = ledger_from(400'000'000);  // the server began 600 ms before the client's run

  explicit Pair(Duration late, int streams = 20) {
    for (int i = 0; i < streams; ++i) {
      const RunTime start = i * 1ms;
      std::vector<RunTime> sent;
      std::vector<RunTime> told;
      for (int k = 0; k < 11; ++k) {
        const RunTime at = start + 50ms + k * 10ms;
        sent.push_back(600ms + at);
        told.push_back(at + late);
      }
      client.requests.push_back(record(std::to_string(i), start, told));
      truth.requests.push_back(record(std::to_string(i), 600ms + start, sent));
    }
  }

  [[nodiscard]] Rung join(const RungAsked& asked = {.name = "hand-made", .streams = 20},
                          const RungCost& cost = {}) const {
    Result<Rung> rung = join_rung(asked, client, truth, cost);
    EXPECT_TRUE(rung.has_value());
    return *std::move(rung);
  }
};

TEST(JoinRung, FindsTheErrorThatWasPutIn) {
  const Rung rung = Pair(25us).join();
  EXPECT_EQ(rung.requests, 20);
  EXPECT_EQ(rung.chunks, 220);
  EXPECT_EQ(rung.unmatched + rung.failed + rung.chunks_lost, 0);
  EXPECT_DOUBLE_EQ(*rung.stamp_error_p99_us, 25);
  EXPECT_EQ(rung.ttft.n, 20);
  EXPECT_DOUBLE_EQ(*rung.ttft.bias_ms, 0.025);
  EXPECT_DOUBLE_EQ(*rung.e2e.max_ms, 0.025);
  EXPECT_EQ(rung.itl.n, 200);
  EXPECT_DOUBLE_EQ(*rung.itl.bias_ms, 0);  // a constant error moves no gap
  EXPECT_DOUBLE_EQ(*rung.itl_p99_share, 0);
  EXPECT_EQ(rung.limit_broken, std::nullopt);
}

TEST(JoinRung, KeepsTheSignOfABiasAndTheSizeOfTheRest) {
  const Rung rung = Pair(-40us).join();
  EXPECT_DOUBLE_EQ(*rung.ttft.bias_ms, -0.040);
  EXPECT_DOUBLE_EQ(*rung.ttft.p99_ms, 0.040);
  EXPECT_DOUBLE_EQ(*rung.stamp_error_p99_us, 40);
}

TEST(JoinRung, OneLateEventIsInTheWorstAndInTwoGaps) {
  Pair pair(0us, 1);
  std::vector<RunTime> told;
  for (int k = 0; k < 11; ++k) told.push_back(50ms + k * 10ms + (k == 5 ? 4ms : 0ms));
  pair.client.requests[0] = record("0", 0ms, told);
  const Rung rung = pair.join();
  EXPECT_DOUBLE_EQ(*rung.itl.max_ms, 4);
  EXPECT_DOUBLE_EQ(*rung.itl.bias_ms, 0);  // one gap is longer, the next one shorter
  EXPECT_DOUBLE_EQ(*rung.itl_p99_share, 0.4);
  EXPECT_DOUBLE_EQ(*rung.ttft.max_ms, 0);
  EXPECT_EQ(*rung.limit_broken, "itl_p99_off_share 0.4 > 0.01, stamp_err_p99_us 4000 > 100");
}

TEST(JoinRung, CountsTheBusiestSecond) {
  EXPECT_NEAR(*Pair(0us).join().events_per_s, 220 / 0.120, 20);  // shorter than a second
  Pair pair(0us, 0);
  std::vector<RunTime> sent;
  for (int k = 0; k < 50; ++k) sent.push_back(k * 100ms);      // 10 per second …
  for (int k = 0; k < 100; ++k) sent.push_back(5s + k * 5ms);  // … then 200 per second
  for (int k = 0; k < 20; ++k) sent.push_back(7s + k * 100ms);
  pair.client.requests.push_back(record("a", 0ms, sent));
  pair.truth.requests.push_back(record("a", 600ms, sent));
  EXPECT_NEAR(*pair.join().events_per_s, 105, 1);
}

TEST(JoinRung, MissesNothingThatIsMissing) {
  Pair pair(10us);
  pair.client.requests[3].outcome = Outcome::kReset;
  pair.client.requests.erase(pair.client.requests.begin());
  pair.truth.requests.pop_back();
  pair.client.requests[5].chunks.resize(pair.client.requests[5].chunks.size() - 4);
  const Rung rung = pair.join();
  EXPECT_EQ(rung.failed, 1);
  EXPECT_EQ(rung.unmatched, 2);
  EXPECT_EQ(rung.chunks_lost, 1);
  EXPECT_EQ(*rung.limit_broken,
            "1 requests failed, 2 requests on one side only, 1 events on one side only");
}

TEST(JoinRung, NothingJoinedIsBrokenAndNoNumberIsMadeUp) {
  Pair pair(10us);
  pair.truth.requests.clear();
  const Rung rung = pair.join();
  EXPECT_TRUE(rung.limit_broken.has_value());
  EXPECT_EQ(rung.ttft.bias_ms, std::nullopt);
  EXPECT_EQ(rung.stamp_error_p99_us, std::nullopt);
  EXPECT_EQ(rung.events_per_s, std::nullopt);
}

TEST(JoinRung, WithoutAClockOriginThereIsNoJoin) {
  Pair pair(0us);
  pair.truth.meta.clear();
  const Result<Rung> rung = join_rung({}, pair.client, pair.truth, {});
  ASSERT_FALSE(rung.has_value());
  EXPECT_EQ(rung.error().code, ExitCode::kUsage);
  EXPECT_EQ(rung.error().where, "hand.assay");
}

TEST(JoinRung, EachLimitHasItsRungs) {
  const auto broken = [](Duration late, const RungAsked& asked) {
    return Pair(late).join(asked).limit_broken.value_or("");
  };
  EXPECT_EQ(broken(1500us, {}), "ttft_bias_ms 1.5 > 1, stamp_err_p99_us 1500 > 100");
  EXPECT_EQ(broken(4ms, {}),
            "ttft_bias_ms 4 > 1, ttft_err_p99_ms 4 > 3, stamp_err_p99_us 4000 > 100");
  EXPECT_EQ(broken(50us, {.streams = 1000}), "");
  EXPECT_EQ(broken(50us, {.streams = 10'000}), "stamp_err_p99_us 50 > 10");
  EXPECT_EQ(broken(50us, {.kind = RungKind::kStarts, .streams = 10'000}), "");
  EXPECT_EQ(broken(0us, {.kind = RungKind::kEvents, .events_per_s = 4000}),
            "events_per_s 1833 < 3800: client and simulated engine together go no faster here");
}

TEST(JoinRung, SendLagCountsFromTheScheduleUnlessConnectionsAreFew) {
  Pair pair(0us);
  for (RequestRecord& r : pair.client.requests) {
    r.admitted = r.scheduled + 140us;
    r.send_start = r.scheduled + 150us;
  }
  const Rung rate = pair.join({.kind = RungKind::kRate, .requests_per_s = 1000});
  EXPECT_DOUBLE_EQ(*rate.send_lag_p99_us, 150);
  EXPECT_EQ(*rate.limit_broken, "send_lag_p99_us 150 > 100");
  const Rung stall = pair.join({.kind = RungKind::kStall, .requests_per_s = 1000});
  EXPECT_DOUBLE_EQ(*stall.send_lag_p99_us, 10);
}

TEST(JoinRung, LateRequestsMustBeToldAsLate) {
  const RungAsked asked{.kind = RungKind::kStall, .requests_per_s = 1000, .late_after = 80ms};
  Pair pair(10us);
  const auto delay = [&pair](std::size_t i, Duration sent_late, Duration told_late) {
    const RunTime start = pair.client.requests[i].scheduled;
    pair.client.requests[i] = record(std::to_string(i), start, {start + 50ms + told_late});
    pair.truth.requests[i] =
        record(std::to_string(i), 600ms + start, {600ms + start + 50ms + sent_late});
  };
  for (const std::size_t i : {4U, 5U, 6U}) delay(i, 2s, 2s + 10us);
  EXPECT_EQ(*pair.join(asked).late, 3);
  EXPECT_EQ(pair.join(asked).limit_broken, std::nullopt);
  delay(6, 2s, 0s);  // what a client does that measures from its own, late send
  EXPECT_EQ(*pair.join(asked).late_untold, 1);
  EXPECT_NE(pair.join(asked).limit_broken->find("1 late requests not told as late"),
            std::string::npos);
  EXPECT_EQ(*Pair(10us).join(asked).limit_broken, "the stall made no request late");
}

TEST(JoinRung, AScheduleThatSlipsIsSeen) {
  const RungAsked asked{.kind = RungKind::kStall, .requests_per_s = 1000, .late_after = 10ms};
  Pair pair(10us);
  EXPECT_DOUBLE_EQ(*pair.join(asked).schedule_slip_us, 0);
  for (std::size_t i = 10; i < 20; ++i) pair.client.requests[i].scheduled += 30us;
  EXPECT_DOUBLE_EQ(*pair.join(asked).schedule_slip_us, 30);
}

TEST(JoinRung, StampsLagsAndCostComeFromTheWorkers) {
  Pair pair(0us);
  for (int id = 0; id < 2; ++id) {
    WorkerRow worker;
    worker.id = id;
    worker.events = 500;
    worker.kernel_stamps = 95 + id * 5;
    worker.user_stamps = 5 - id * 5;
    pair.client.workers.push_back(worker);
    Histogram lags;
    for (int i = 0; i < 100; ++i) lags.record(id == 0 ? 10'000 : 20'000);
    pair.client.histograms.push_back({"receive_lag_ns", id, 2, lags.encode_v2()});
  }
  pair.client.histograms.push_back({"send_lag_ns", 0, 2, Histogram().encode_v2()});
  const Rung rung = pair.join({}, {.client_cpu_s = 0.004});
  EXPECT_DOUBLE_EQ(*rung.kernel_stamp_share, 0.975);
  EXPECT_DOUBLE_EQ(*rung.cpu_s_per_m_events, 4);
  EXPECT_NEAR(*rung.receive_lag_p99_us, 20, 0.2);
}

Rung rung_of(RungKind kind, Standing standing, std::int64_t streams, double events_per_s,
             bool holds = true) {
  Rung rung;
  rung.asked.kind = kind;
  rung.asked.standing = standing;
  rung.asked.streams = streams;
  rung.events_per_s = events_per_s;
  if (!holds) rung.limit_broken = "stamp_err_p99_us 500 > 100";
  return rung;
}

TEST(JudgeLadder, TrustsUpToTheLastThatHeld) {
  const Audit audit = judge_ladder({
      rung_of(RungKind::kStreams, Standing::kMust, 1, 100),
      rung_of(RungKind::kStreams, Standing::kMust, 1000, 20'000),
      rung_of(RungKind::kStreams, Standing::kReach, 10'000, 100'000),
      rung_of(RungKind::kEvents, Standing::kReach, 1000, 40'000.7),
      rung_of(RungKind::kEvents, Standing::kReach, 1000, 79'000),
      rung_of(RungKind::kEvents, Standing::kReach, 1000, 120'000, false),
      rung_of(RungKind::kEvents, Standing::kReach, 1000, 160'000),
  });
  EXPECT_TRUE(audit.pass);
  EXPECT_EQ(audit.trust.streams, 10'000);
  EXPECT_EQ(audit.trust.events_per_s, 79'000);
}

TEST(JudgeLadder, TrustEndsAtTheFirstThatBreaks) {
  const Audit audit = judge_ladder({
      rung_of(RungKind::kStreams, Standing::kMust, 1, 100),
      rung_of(RungKind::kStreams, Standing::kMust, 100, 10'000, false),
      rung_of(RungKind::kStreams, Standing::kMust, 1000, 20'000),
  });
  EXPECT_FALSE(audit.pass);
  EXPECT_EQ(audit.trust.streams, 1);
  EXPECT_EQ(audit.trust.events_per_s, 100);
}

TEST(JudgeLadder, AStepThatBreaksTakesTheRateOfTheStreamsWithIt) {
  const Audit audit = judge_ladder({
      rung_of(RungKind::kStreams, Standing::kMust, 1000, 20'000),
      rung_of(RungKind::kEvents, Standing::kReach, 1000, 10'000, false),
  });
  EXPECT_TRUE(audit.pass);
  EXPECT_EQ(audit.trust.events_per_s, 0);
}

TEST(JudgeLadder, ARungThatMustHoldFailsTheAuditAndOneThatReachesDoesNot) {
  for (const RungKind kind : {RungKind::kStreams, RungKind::kStarts, RungKind::kRate,
                              RungKind::kStall, RungKind::kEvents}) {
    EXPECT_FALSE(judge_ladder({rung_of(kind, Standing::kMust, 1, 1, false)}).pass);
    EXPECT_TRUE(judge_ladder({rung_of(kind, Standing::kReach, 1, 1, false)}).pass);
    EXPECT_TRUE(judge_ladder({rung_of(kind, Standing::kMust, 1, 1)}).pass);
  }
}

TEST(JudgeLadder, AnEmptyLadderProvesNothing) { EXPECT_FALSE(judge_ladder({}).pass); }

}  // namespace
}  // namespace assay
