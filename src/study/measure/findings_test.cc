#include "study/measure/findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/core/random.h"
#include "study/measure/canned_ledger.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

bool has(const Measurement& m, std::string_view name) {
  return std::ranges::find(m.findings, name, &Finding::name) != m.findings.end();
}

std::string text_of(const Measurement& m, std::string_view name) {
  const auto found = std::ranges::find(m.findings, name, &Finding::name);
  return found == m.findings.end() ? "" : found->text;
}

/// 200 replies in 20 s; `ttft(i)` in ms.
template <typename Ttft>
CannedRun replies(Ttft ttft) {
  CannedRun run(20'000);
  for (int i = 0; i < 200; ++i) {
    const double first = ttft(i);
    run.add(CannedReply{.scheduled_ms = i * 100.0,
                        .chunks_after_ms = {first, first + 10, first + 20},
                        .done_after_ms = first + 21,
                        .usage_output = 3,
                        .usage_prompt = 100});
  }
  return run;
}

TEST(Findings, OfAQuietRunAreNone) {
  const CannedRun run = replies([](int) { return 50.0; });
  EXPECT_TRUE(measure(run.ledger, run.spec).findings.empty());
}

TEST(Findings, SayNotSteadyWhereAQueueGrows) {
  const CannedRun run = replies([](int i) { return 50.0 + i; });
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_TRUE(has(m, "not_steady"));
  EXPECT_FALSE(m.steady);
  EXPECT_FALSE(m.throughput.output_tokens_per_s.value);
  EXPECT_FALSE(m.latency.ttft_ms.mean_interval);
  EXPECT_TRUE(m.whole_run.output_tokens_per_s.value);
}

TEST(Findings, KeepQuietAboutADriftThatDoesNotMatter) {
  const CannedRun run = replies([](int i) { return 100.0 + i * 0.05; });  // 10 % over the window
  EXPECT_TRUE(measure(run.ledger, run.spec).steady);
}

TEST(Findings, KeepQuietAboutNoise) {
  const RandomStream stream(5, "noise");
  const CannedRun run = replies([&stream](int i) {
    return 50 + 40 * stream.at(static_cast<std::uint64_t>(i)).exponential();
  });
  EXPECT_TRUE(measure(run.ledger, run.spec).steady);
}

TEST(Findings, ListErrorsByClass) {
  CannedRun run = replies([](int) { return 50.0; });
  run.add(19'990, Outcome::kTimeout, 600).error_text = "no end within 600 ms";
  const Measurement m = measure(run.ledger, run.spec);
  ASSERT_TRUE(has(m, "errors"));
  EXPECT_EQ(m.findings.front().text, "1 of 201 requests failed: 1 × timeout");
}

TEST(Findings, SayHowToAskAServerThatRefusesExactLengths) {
  CannedRun run = replies([](int) { return 50.0; });
  run.add(19'990, Outcome::kHttpError, 1).error_text = "Unrecognized argument: ignore_eos";
  EXPECT_TRUE(has(measure(run.ledger, run.spec), "exact_output_refused"));
  run.spec.workload.exact_output = false;
  EXPECT_FALSE(has(measure(run.ledger, run.spec), "exact_output_refused"));
  run.spec.workload.exact_output = true;
  run.ledger.requests.back().error_text = "no such model";
  EXPECT_FALSE(has(measure(run.ledger, run.spec), "exact_output_refused"));
}

TEST(Findings, SayWhereTheLedgerIsDamaged) {
  CannedRun run = replies([](int) { return 50.0; });
  run.ledger.requests[7].chunks = "\xff\xff";
  run.ledger.requests[9].chunks.pop_back();
  const Measurement m = measure(run.ledger, run.spec);
  ASSERT_TRUE(has(m, "damaged_chunks"));
  EXPECT_EQ(m.damaged_chunks, 2);
}

TEST(Findings, NameShortReplies) {
  CannedRun run = replies([](int) { return 50.0; });
  for (RequestRecord& r : run.ledger.requests) r.tokens_asked_output = 4;
  EXPECT_TRUE(has(measure(run.ledger, run.spec), "short_replies"));
}

TEST(Findings, NameSkippedEvents) {
  CannedRun run = replies([](int) { return 50.0; });
  run.ledger.workers[0].malformed = 7;
  EXPECT_TRUE(has(measure(run.ledger, run.spec), "malformed_events"));
}

TEST(Findings, SuspectNagleWherePairsArrive) {
  CannedRun run(1000);
  RequestRecord& r = run.add(CannedReply{.done_after_ms = 100, .usage_output = 4});
  ChunkWriter writer;
  writer.start(r.scheduled);
  for (int i = 0; i < 4; ++i) {
    writer.append({.at = at_ms(10.0 + 40 * (i / 2)),
                   .bytes = 1,
                   .tokens = 0,
                   .flags = static_cast<std::uint8_t>(i % 2 == 0 ? kChunkNewRead : 0)});
  }
  r.chunks = writer.take();
  const Measurement m = measure(run.ledger, run.spec);
  ASSERT_TRUE(has(m, "coalesced_events"));
  EXPECT_NE(m.findings.front().text.find("TCP_NODELAY"), std::string::npos);
}

TEST(Findings, SayThatAClosedLoopHidesTheCostOfAStall) {
  CannedRun run = replies([](int) { return 50.0; });
  run.add(CannedReply{.scheduled_ms = 19'000,
                      .chunks_after_ms = {50, 2050},
                      .done_after_ms = 2051,
                      .usage_output = 2});
  EXPECT_TRUE(has(measure(run.ledger, run.spec), "latency_under_back_pressure"));
  run.spec.load.concurrency.reset();
  run.spec.load.rate = 10;
  EXPECT_FALSE(has(measure(run.ledger, run.spec), "latency_under_back_pressure"));
}

TEST(Findings, ExplainCacheHitsOfAChatTemplate) {
  CannedRun run = replies([](int) { return 50.0; });
  for (RequestRecord& r : run.ledger.requests) r.tokens_server_cached = 64;
  EXPECT_EQ(text_of(measure(run.ledger, run.spec), "prefix_cache_hits"),
            "the server took 64 tokens a request (64 % of the prompt tokens) from its prefix "
            "cache: the start of a chat template, which all requests share, explains so many");
}

TEST(Findings, DoubtTheSaltOnlyWhereHitsAreALargeShare) {
  CannedRun run = replies([](int) { return 50.0; });
  for (RequestRecord& r : run.ledger.requests) {
    r.tokens_server_prompt = 1000;
    r.tokens_server_cached = 200;
  }
  EXPECT_EQ(text_of(measure(run.ledger, run.spec), "prefix_cache_hits"),
            "the server took 200 tokens a request (20 % of the prompt tokens) from its prefix "
            "cache");
  for (RequestRecord& r : run.ledger.requests) r.tokens_server_cached = 99;
  EXPECT_FALSE(has(measure(run.ledger, run.spec), "prefix_cache_hits"));
}

TEST(Findings, RepeatTheWarningsOfTheRun) {
  CannedRun run = replies([](int) { return 50.0; });
  run.ledger.events = {{.at = at_ms(5), .kind = "clock_step", .detail = "no finding"},
                       {.at = at_ms(9), .kind = "warning", .detail = "3 requests went out again"}};
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(m.findings.size(), 1U);
  EXPECT_EQ(text_of(m, "warning"), "3 requests went out again");
}

TEST(Findings, WonderAtCacheHitsThatTheSaltShouldPrevent) {
  CannedRun run = replies([](int) { return 50.0; });
  for (RequestRecord& r : run.ledger.requests) r.tokens_server_cached = 70;  // of 100
  EXPECT_EQ(
      text_of(measure(run.ledger, run.spec), "prefix_cache_hits"),
      "the server took 70 tokens a request (70 % of the prompt tokens) from its prefix cache, "
      "although each run has its own salt: was this salt used before?");
  run.spec.workload.prompt = "hello";
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_FALSE(has(m, "prefix_cache_hits"));
  EXPECT_TRUE(has(m, "same_prompt"));
}

}  // namespace
}  // namespace assay
