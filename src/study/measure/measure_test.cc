#include "study/measure/measure.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "study/measure/canned_ledger.h"

namespace assay {
namespace {

TEST(Measure, UsageAfterTheLastTokenDoesNotMoveTheEndOfLatency) {
  // F3: last token at 400 ms, usage at 450, [DONE] at 460.
  CannedRun run(1000);
  run.add(CannedReply{.scheduled_ms = 0,
                      .chunks_after_ms = {100, 200, 300, 400},
                      .done_after_ms = 460,
                      .usage_output = 4,
                      .usage_prompt = 10});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.e2e_ms.mean, 400);
  EXPECT_EQ(m.latency.ttft_ms.mean, 100);
  EXPECT_EQ(m.latency.tail_ms.mean, 60);
  EXPECT_EQ(m.latency.tpot_ms.mean, 100);
  EXPECT_EQ(m.tokens.output, 4);
  EXPECT_EQ(m.tokens.source, "usage");
}

TEST(Measure, ChunksOfSeveralTokensDivideTheirGaps) {
  // F7: 4 tokens in the first event, then 2, 1 and 3, at 100, 120, 130 and 160 ms.
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {100, 120, 130, 160},
                      .chunk_tokens = {4, 2, 1, 3},
                      .done_after_ms = 170,
                      .usage_output = 10});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.tpot_ms.mean, 10);  // 60 ms / (10 − 4)
  EXPECT_EQ(m.latency.itl_ms.n, 6);
  EXPECT_EQ(m.latency.itl_ms.mean, 10);
  EXPECT_EQ(m.latency.itl_ms.max, 10);
  EXPECT_EQ(m.latency.itl_spread, 5);
  EXPECT_EQ(m.latency.icl_ms.n, 3);
  EXPECT_EQ(m.latency.icl_ms.max, 30);
  EXPECT_EQ(m.latency.worst_gap_ms.mean, 30);
  EXPECT_EQ(m.latency.tpot_first_assumed, 0);
  EXPECT_EQ(m.latency.tokens_per_chunk, 2.5);
}

TEST(Measure, ItlIsNullWithTheReasonWhereTokensPerChunkAreNotKnown) {
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {100, 150, 200}, .done_after_ms = 210, .usage_output = 7});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.itl_ms.n, 0);
  EXPECT_NE(m.latency.itl_ms.why_null.find("tokens per chunk are not known"), std::string::npos);
  EXPECT_EQ(m.latency.icl_ms.n, 2);
  EXPECT_NEAR(*m.latency.tpot_ms.mean, 100.0 / 6, 1e-6);  // one token assumed in the first event
  EXPECT_EQ(m.latency.tpot_first_assumed, 1);
}

TEST(Measure, ItlPoolsRepliesWithAndWithoutOneTokenPerChunk) {
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {10, 20, 40}, .done_after_ms = 50, .usage_output = 3});
  run.add(CannedReply{
      .scheduled_ms = 100, .chunks_after_ms = {10, 30}, .done_after_ms = 40, .usage_output = 5});
  run.add(CannedReply{
      .scheduled_ms = 200, .chunks_after_ms = {10, 40}, .done_after_ms = 50, .usage_output = 2});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.icl_ms.n, 4);
  EXPECT_EQ(m.latency.itl_ms.n, 3);
  EXPECT_EQ(m.latency.itl_ms.mean, 20);  // 10, 20, 30
  EXPECT_EQ(m.latency.itl_requests, 2);
  EXPECT_EQ(m.latency.itl_left_out, 1);
}

TEST(Measure, WithoutUsageNothingIsGuessed) {
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {100, 200}, .done_after_ms = 210});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.tokens.source, "none");
  EXPECT_FALSE(m.tokens.output);
  EXPECT_EQ(m.latency.tpot_ms.n, 0);
  EXPECT_EQ(m.latency.itl_ms.n, 0);
  EXPECT_FALSE(m.throughput.output_tokens_per_s.value);
  EXPECT_EQ(m.throughput.requests_per_s.value, 1);
}

TEST(Measure, RefusalsOfTheServerStayOutOfLatencyAndInTheGoodputDenominator) {
  // F14: every second request answers 503 in 1 ms.
  CannedRun run(10'000);
  run.spec.slo = {{.metric = SloMetric::kTtft, .limit = 350ms, .attainment = 0.99}};
  for (int i = 0; i < 100; ++i) {
    if (i % 2 == 0) {
      run.add(CannedReply{.scheduled_ms = i * 100.0,
                          .chunks_after_ms = {60, 70},
                          .done_after_ms = 75,
                          .usage_output = 2});
    } else {
      RequestRecord& r = run.add(i * 100.0, Outcome::kHttpError, 1);
      r.http_status = 503;
      r.error_text = "overloaded";
    }
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.ttft_ms.n, 50);
  EXPECT_EQ(m.latency.ttft_ms.min, 60);
  EXPECT_EQ(m.goodput.good_share, 0.5);
  EXPECT_EQ(m.goodput.good_rps.value, 5);
  EXPECT_FALSE(m.goodput.slo.at(0).met);
  EXPECT_EQ(m.requests.ok, 50);
  EXPECT_EQ(m.requests.failed, 50);
  ASSERT_EQ(m.requests.failures.size(), 1U);
  EXPECT_EQ(m.requests.failures[0].code, "503");
  EXPECT_EQ(m.requests.failures[0].example, "overloaded");
  EXPECT_TRUE(m.validity.valid);
}

TEST(Measure, OneSampleGivesNoPercentileAndSaysWhatItNeeds) {
  // F16.
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {100, 110}, .done_after_ms = 111, .usage_output = 2});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.ttft_ms.mean, 100);
  EXPECT_FALSE(m.latency.ttft_ms.percentiles[kP50].value);
  EXPECT_FALSE(m.latency.ttft_ms.percentiles[kP99].value);
  EXPECT_EQ(m.latency.ttft_ms.percentiles[kP99].needs, 368);
  EXPECT_FALSE(m.latency.ttft_ms.mean_interval);
  EXPECT_TRUE(m.validity.valid);
}

TEST(Measure, EveryFigureEqualsTheHandCalculation) {
  // F17: two requests; the last ends long after the steady window of 1 s.
  CannedRun run(1000);
  run.spec.run.gpus = 2;
  run.add(CannedReply{.scheduled_ms = 0,
                      .send_after_ms = 1,
                      .chunks_after_ms = {101, 201, 301, 401},
                      .done_after_ms = 411,
                      .usage_output = 4,
                      .usage_prompt = 20});
  run.add(CannedReply{.scheduled_ms = 500,
                      .send_after_ms = 3,
                      .chunks_after_ms = {203, 403, 603, 3503},
                      .done_after_ms = 3513,
                      .usage_output = 4,
                      .usage_prompt = 30});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.run.duration_s, 4.013);
  EXPECT_EQ(m.run.window_s, 1);
  EXPECT_EQ(m.latency.ttft_ms.mean, 152);
  EXPECT_EQ(m.latency.service_ttft_ms.mean, 150);
  EXPECT_EQ(m.latency.e2e_ms.mean, 1952);
  EXPECT_EQ(m.latency.service_e2e_ms.mean, 1950);
  EXPECT_EQ(m.latency.e2e_ms.max, 3503);
  EXPECT_EQ(m.latency.tpot_ms.mean, 600);  // 100 and 1,100
  EXPECT_EQ(m.latency.worst_gap_ms.max, 2900);
  // Inside [0, 1000): 4 tokens of the first, 2 of the second (703, 903).
  EXPECT_EQ(m.throughput.output_tokens_per_s.value, 6);
  EXPECT_EQ(m.throughput.per_gpu_tokens_per_s.value, 3);
  EXPECT_EQ(m.throughput.input_tokens_per_s.value, 50);
  EXPECT_EQ(m.throughput.effective_tokens_per_s.value, 4);  // the second ended outside
  EXPECT_EQ(m.throughput.requests_per_s.value, 1);
  EXPECT_DOUBLE_EQ(*m.whole_run.output_tokens_per_s.value, 8 / 4.013);
  EXPECT_DOUBLE_EQ(*m.whole_run.requests_per_s.value, 2 / 4.013);
  EXPECT_DOUBLE_EQ(*m.throughput.per_user_tokens_per_s.value, (4 / 0.401 + 4 / 3.503) / 2);
  EXPECT_EQ(m.tokens.prompt_server, 50);
  EXPECT_EQ(m.client.send_lag_us.max, 0);
}

TEST(Measure, TotalAndRateOfOneRequestAreDifferentThings) {
  // F19: with --requests 1 the window has no length: no steady rate, the whole run has one.
  CannedRun run(0);
  run.spec.load.duration.reset();
  run.spec.load.requests = 1;
  run.add(CannedReply{
      .chunks_after_ms = {500, 750, 1000, 1250}, .done_after_ms = 2000, .usage_output = 4});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.tokens.output, 4);
  EXPECT_FALSE(m.run.window_s);
  EXPECT_FALSE(m.throughput.output_tokens_per_s.value);
  EXPECT_EQ(m.whole_run.output_tokens_per_s.value, 2);
  EXPECT_EQ(m.whole_run.requests_per_s.value, 0.5);
}

TEST(Measure, QueueingShowsFromScheduleAndNotFromSend) {
  // F13: a 500-ms server behind one connection, 10 requests/s: each waits longer than the last.
  CannedRun run(10'000);
  run.spec.load.concurrency.reset();
  run.spec.load.rate = 10;
  run.spec.load.arrival = Arrival::kConstant;
  run.spec.load.connections = 1;
  for (int i = 0; i < 100; ++i) {
    const double wait = i * 400.0;
    run.add(CannedReply{.scheduled_ms = i * 100.0,
                        .send_after_ms = wait,
                        .chunks_after_ms = {wait + 500},
                        .done_after_ms = wait + 500,
                        .usage_output = 1});
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.service_ttft_ms.max, 500);
  EXPECT_EQ(m.latency.ttft_ms.max, 99 * 400 + 500);
  EXPECT_FALSE(m.steady);
  EXPECT_EQ(m.findings.at(0).name, "not_steady");
  EXPECT_FALSE(m.throughput.requests_per_s.value);
  EXPECT_TRUE(m.whole_run.requests_per_s.value);
  EXPECT_TRUE(m.validity.valid) << "waiting for the user's one connection is not our lateness";
}

TEST(Measure, WarmUpIsInNoFigureButItsLateTokensFillTheWindow) {
  CannedRun run(1000);
  RequestRecord& warm = run.add(CannedReply{.scheduled_ms = -200,
                                            .chunks_after_ms = {100, 300, 400},
                                            .done_after_ms = 410,
                                            .usage_output = 3});
  warm.phase = 1;
  run.add(CannedReply{.chunks_after_ms = {50, 60}, .done_after_ms = 70, .usage_output = 2});
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.requests.scheduled, 1);
  EXPECT_EQ(m.tokens.output, 2);
  EXPECT_EQ(m.latency.ttft_ms.n, 1);
  EXPECT_EQ(m.throughput.output_tokens_per_s.value, 4);  // 2 of the warm-up request, at 100 and 200
}

TEST(Measure, CutOffRequestsBoundPercentilesInsteadOfVanishing) {
  CannedRun run(10'000);
  for (int i = 0; i < 8; ++i) {
    run.add(CannedReply{.scheduled_ms = i * 100.0,
                        .chunks_after_ms = {100.0 + i, 200},
                        .done_after_ms = 201,
                        .usage_output = 2});
  }
  for (int i = 0; i < 32; ++i) run.add(800 + i * 100.0, Outcome::kTimeout, 5000);
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.ttft_ms.n, 40);
  EXPECT_EQ(m.latency.ttft_ms.censored, 32);
  EXPECT_EQ(m.latency.ttft_ms.min, 100);
  EXPECT_FALSE(m.latency.ttft_ms.max);
  EXPECT_EQ(m.latency.ttft_ms.max_at_least, 5000);
  EXPECT_FALSE(m.latency.ttft_ms.percentiles[kP50].value);
  EXPECT_EQ(m.latency.ttft_ms.percentiles[kP50].at_least, 5000);
}

TEST(Measure, WithoutStreamingOnlyE2eIsKnown) {
  CannedRun run(1000);
  run.spec.target.stream = false;
  RequestRecord& r = run.add(0, Outcome::kOk, 300);
  r.tokens_server_output = 30;
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.e2e_ms.mean, 300);
  EXPECT_EQ(m.latency.ttft_ms.n, 0);
  EXPECT_EQ(m.latency.ttft_ms.why_null, "replies were not streamed");
  EXPECT_EQ(m.latency.tpot_ms.n, 0);
  EXPECT_EQ(m.throughput.output_tokens_per_s.value, 30);
}

TEST(Measure, AnEmptyLedgerIsAMeasurementOfNothing) {
  CannedRun run(1000);
  run.ledger.requests.clear();
  run.ledger.workers.clear();
  run.ledger.meta["state"] = "interrupted";
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.requests.scheduled, 0);
  EXPECT_EQ(m.latency.ttft_ms.n, 0);
  EXPECT_TRUE(m.validity.valid);
  EXPECT_EQ(m.run.duration_s, 0);
}

TEST(Measure, ADamagedChunkBlobGivesWhatCanBeRead) {
  CannedRun run(1000);
  RequestRecord& r = run.add(
      CannedReply{.chunks_after_ms = {100, 110, 120}, .done_after_ms = 121, .usage_output = 3});
  r.chunks.resize(r.chunks.size() - 1);
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.latency.icl_ms.n, 1);
  EXPECT_EQ(m.latency.ttft_ms.mean, 100);
}

TEST(Measure, WithRequestsTheWindowEndsWhenTheLastIsScheduled) {
  CannedRun run(5000);
  run.spec.load.requests = 3;
  for (const double t : {0.0, 400.0, 800.0}) {
    run.add(CannedReply{
        .scheduled_ms = t, .chunks_after_ms = {100, 200}, .done_after_ms = 210, .usage_output = 2});
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.run.window_s, 0.8);
  EXPECT_EQ(m.latency.ttft_ms.n, 3);
}

}  // namespace
}  // namespace assay
