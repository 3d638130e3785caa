#include "study/measure/checks.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/stats/histogram.h"
#include "study/measure/canned_ledger.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

/// An open loop at 100 requests/s for 10 s on a server that answers after 50 ms.
CannedRun open_loop() {
  CannedRun run(10'000);
  run.spec.load.concurrency.reset();
  run.spec.load.rate = 100;
  run.spec.load.arrival = Arrival::kConstant;
  for (int i = 0; i < 1000; ++i) {
    RequestRecord& r = run.add(CannedReply{.scheduled_ms = i * 10.0,
                                           .chunks_after_ms = {50, 60, 70},
                                           .done_after_ms = 71,
                                           .usage_output = 3});
    r.admitted = r.scheduled;
  }
  return run;
}

CheckStatus status(const Measurement& m, std::string_view name) {
  const Check* check = m.validity.find(name);
  EXPECT_NE(check, nullptr) << name;
  return check == nullptr ? CheckStatus::kSkipped : check->status;
}

TEST(Validity, OfAGoodRunIsValid) {
  const CannedRun run = open_loop();
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_TRUE(m.validity.valid);
  for (const char* name : {"achieved_rate", "send_lag", "receive_lag", "clock_steps",
                           "records_lost", "worker_busy", "littles_law"}) {
    EXPECT_EQ(status(m, name), CheckStatus::kPass) << name;
  }
  EXPECT_EQ(status(m, "prompt_tokens"), CheckStatus::kSkipped);
  EXPECT_EQ(status(m, "cpu_steal"), CheckStatus::kSkipped);
}

TEST(Validity, FailsWhereRequestsLeaveLate) {
  CannedRun run = open_loop();
  for (int i = 0; i < 11; ++i) {
    RequestRecord& r = run.ledger.requests[static_cast<std::size_t>(i)];
    r.send_start = r.scheduled + 2ms;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "send_lag"), CheckStatus::kFail);
  EXPECT_EQ(m.validity.find("send_lag")->value, 2000);
  EXPECT_EQ(m.validity.find("send_lag")->limit, 1000);
  EXPECT_FALSE(m.validity.valid);
}

TEST(Validity, GrantsOnePercentOfTheMedianTtftToTheSendLag) {
  CannedRun run = open_loop();
  for (RequestRecord& r : run.ledger.requests) {
    r.send_start = r.scheduled + 2ms;
    r.first_token = *r.first_token + 250ms;  // 300 ms: the limit is 3 ms
    r.last_token = *r.last_token + 250ms;
    r.done = *r.done + 250ms;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "send_lag"), CheckStatus::kPass);
  EXPECT_EQ(m.validity.find("send_lag")->limit, 3000);
}

TEST(Validity, DoesNotBlameTheClientForTheConnectionsOwnSetUp) {
  CannedRun run = open_loop();
  for (RequestRecord& r : run.ledger.requests) {
    r.reused = false;
    r.tcp = 5ms;
    r.admitted = r.scheduled + 5ms;
    r.send_start = r.scheduled + 5ms;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "send_lag"), CheckStatus::kPass);
  EXPECT_EQ(m.ttft_split.connect_ms, 5);
  EXPECT_EQ(m.ttft_split.client_wait_ms, 0);
  EXPECT_EQ(m.ttft_split.to_first_token_ms, 45);
}

TEST(Validity, FailsWhereTheScheduleWasNotKept) {
  // 900 of the 1,000 planned requests were ever recorded.
  CannedRun run = open_loop();
  run.ledger.requests.erase(run.ledger.requests.begin() + 400, run.ledger.requests.begin() + 500);
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "achieved_rate"), CheckStatus::kFail);
  EXPECT_NEAR(*m.validity.find("achieved_rate")->value, 0.9, 0.002);
}

TEST(Validity, FailsWhereDueRequestsWereNotSent) {
  CannedRun run = open_loop();
  for (std::size_t i = 500; i < 530; ++i) {
    run.ledger.requests[i].send_start.reset();
    run.ledger.requests[i].outcome = Outcome::kCancelled;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "achieved_rate"), CheckStatus::kFail);
  EXPECT_EQ(m.validity.find("achieved_rate")->value, 0.97);
}

TEST(Validity, IsNotTouchedByATargetThatTakesNoConnections) {
  CannedRun run = open_loop();
  for (RequestRecord& r : run.ledger.requests) {
    const RunTime scheduled = r.scheduled;
    r = RequestRecord{};
    r.phase = 2;
    r.scheduled = scheduled;
    r.outcome = Outcome::kConnect;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_TRUE(m.validity.valid);
  EXPECT_EQ(m.requests.failed, 1000);
}

TEST(Validity, JudgesReadsWithoutKernelStampByTheirLoop) {
  CannedRun run = open_loop();
  run.ledger.workers[0].kernel_stamps = 90;
  run.ledger.workers[0].user_stamps = 10;
  Histogram lag;
  lag.record(100'000, 980);
  lag.record(5'000'000, 20);
  run.ledger.histograms = {
      {.name = "receive_lag_ns", .worker = 0, .phase = 2, .hdr = lag.encode_v2()}};
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "receive_lag"), CheckStatus::kFail);
  EXPECT_NEAR(*m.validity.find("receive_lag")->value, 5000, 50);
  EXPECT_EQ(status(m, "kernel_stamp_share"), CheckStatus::kFail);
  EXPECT_EQ(m.client.kernel_stamp_share, 0.9);
}

TEST(Validity, DoesNotEnforceReceiveLagWhereTheKernelStamps) {
  CannedRun run = open_loop();
  Histogram lag;
  lag.record(5'000'000, 100);
  run.ledger.histograms = {
      {.name = "receive_lag_ns", .worker = 0, .phase = 2, .hdr = lag.encode_v2()}};
  EXPECT_EQ(status(measure(run.ledger, run.spec), "receive_lag"), CheckStatus::kPass);
}

TEST(Validity, WithoutAnyKernelStampTakesTheLoopsLagFromItsSends) {
  CannedRun run = open_loop();
  run.ledger.workers[0].kernel_stamps = 0;
  run.ledger.workers[0].user_stamps = 100;
  for (RequestRecord& r : run.ledger.requests) r.send_start = r.scheduled + 1500us;
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "receive_lag"), CheckStatus::kFail);
  EXPECT_NE(m.validity.find("receive_lag")->advice.find("from its sends"), std::string::npos);
}

TEST(Validity, FailsOnLostRecords) {
  CannedRun run = open_loop();
  run.ledger.workers[0].lost = 1;
  EXPECT_EQ(status(measure(run.ledger, run.spec), "records_lost"), CheckStatus::kFail);
}

TEST(Validity, SaysThatAHandledClockStepTouchedNothing) {
  CannedRun run = open_loop();
  run.ledger.meta["clock_steps"] = "2";
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "clock_steps"), CheckStatus::kPass);
  EXPECT_NE(m.validity.find("clock_steps")->advice.find("stepped"), std::string::npos);
}

TEST(Validity, FailsWhereInstantsRunBackwards) {
  CannedRun run = open_loop();
  run.ledger.requests[3].first_token = *run.ledger.requests[3].send_start - 1ms;
  EXPECT_EQ(status(measure(run.ledger, run.spec), "clock_steps"), CheckStatus::kFail);
}

TEST(Validity, AdvisoryChecksNeverInvalidate) {
  CannedRun run = open_loop();
  run.ledger.workers[0].busy_ns = run.ledger.workers[0].wall_ns;
  for (RequestRecord& r : run.ledger.requests) {
    r.tokens_planned = 512;
    r.tokens_server_prompt = 700;
    r.tokens_asked_output = 128;
  }
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "worker_busy"), CheckStatus::kFail);
  EXPECT_EQ(status(m, "planned_vs_server_prompt_tokens"), CheckStatus::kFail);
  EXPECT_EQ(status(m, "short_replies"), CheckStatus::kFail);
  EXPECT_TRUE(m.validity.valid);
}

TEST(Validity, WarnsWhereTheMachinesLimitsAreNear) {
  CannedRun run = open_loop();  // eight in flight at once
  Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "descriptors"), CheckStatus::kSkipped);
  EXPECT_EQ(status(m, "ports"), CheckStatus::kSkipped);
  run.ledger.meta["host"] = R"({"descriptors": 10, "local_ports": 100})";
  run.ledger.workers[0].connects = 80;
  m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.validity.find("descriptors")->value, 0.8);
  EXPECT_EQ(status(m, "descriptors"), CheckStatus::kPass);
  EXPECT_EQ(m.validity.find("ports")->value, 0.8);
  EXPECT_EQ(status(m, "ports"), CheckStatus::kPass);
  run.ledger.meta["host"] = R"({"descriptors": 9, "local_ports": 99})";
  m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "descriptors"), CheckStatus::kFail);
  EXPECT_EQ(status(m, "ports"), CheckStatus::kFail);
  EXPECT_TRUE(m.validity.valid);
}

TEST(Validity, AllowsAChatTemplateInEachPrompt) {
  CannedRun run = open_loop();
  for (std::size_t i = 0; i < run.ledger.requests.size(); ++i) {
    RequestRecord& r = run.ledger.requests[i];
    r.tokens_planned = 100;
    r.tokens_server_prompt = 130 + static_cast<std::int64_t>(i % 2);
  }
  Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(status(m, "planned_vs_server_prompt_tokens"), CheckStatus::kPass);
  EXPECT_NEAR(*m.validity.find("planned_vs_server_prompt_tokens")->value, 0.005, 1e-9);
  EXPECT_EQ(m.validity.find("planned_vs_server_prompt_tokens")->advice,
            "without the 30 tokens of chat template in each request");
  // More than any template, and what is no chat has none.
  for (RequestRecord& r : run.ledger.requests) r.tokens_server_prompt = 175;
  m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.tokens.template_per_request, 64);
  EXPECT_EQ(status(m, "planned_vs_server_prompt_tokens"), CheckStatus::kFail);
  for (RequestRecord& r : run.ledger.requests) r.tokens_server_prompt = 130;
  run.spec.target.api = Api::kOpenAiCompletions;
  m = measure(run.ledger, run.spec);
  EXPECT_FALSE(m.tokens.template_per_request);
  EXPECT_EQ(status(m, "planned_vs_server_prompt_tokens"), CheckStatus::kFail);
}

TEST(Validity, OfAClosedLoopHasNoOfferedRate) {
  CannedRun run(1000);
  run.add(CannedReply{.chunks_after_ms = {50, 60}, .done_after_ms = 61, .usage_output = 2});
  EXPECT_EQ(status(measure(run.ledger, run.spec), "achieved_rate"), CheckStatus::kSkipped);
}

TEST(Validity, OfAnInterruptedRunRestsOnWhatItHas) {
  CannedRun run = open_loop();
  run.ledger.meta["state"] = "interrupted";
  run.ledger.workers.clear();
  run.ledger.requests.erase(run.ledger.requests.begin() + 900, run.ledger.requests.begin() + 999);
  run.ledger.phases.pop_back();
  run.ledger.phases.back().end = run.ledger.phases.back().start;
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_TRUE(m.validity.valid);
  EXPECT_EQ(status(m, "achieved_rate"), CheckStatus::kPass);
  EXPECT_EQ(status(m, "records_lost"), CheckStatus::kSkipped);
  EXPECT_EQ(m.client.kernel_stamp_share, 1);  // from the chunks
}

}  // namespace
}  // namespace assay
