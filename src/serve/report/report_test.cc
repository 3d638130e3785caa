#include "serve/report/report.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "base/core/random.h"
#include "base/core/text.h"
#include "serve/report/lines.h"
#include "study/measure/canned_ledger.h"
#include "study/measure/measure.h"

namespace assay {
namespace {

constexpr const char* kGoldenFolder = "src/serve/report/golden/";

/// Compares with the golden file byte by byte; with ASSAY_UPDATE_GOLDEN set, writes it.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = kGoldenFolder + name;
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, golden) << path << ": run with ASSAY_UPDATE_GOLDEN=1 to accept";
}

/// A run whose latencies look like those of an engine: 600 replies of 32 tokens in 60 s.
CannedRun engine_run() {
  CannedRun run(60'000);
  const RandomStream stream(3, "canned engine");
  run.ledger.meta["server"] = "llama.cpp";
  run.spec.load.concurrency = 8;
  run.spec.load.warmup = {.time = 5s, .requests = std::nullopt};
  run.ledger.workers[0].user_stamps = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    Draws draws = stream.at(i);
    CannedReply reply;
    reply.scheduled_ms = static_cast<double>(i) * 100;
    reply.send_after_ms = 0.02 + 0.01 * draws.uniform();
    double t = 40 + 20 * draws.exponential();
    for (int k = 0; k < 32; ++k) {
      reply.chunks_after_ms.push_back(t);
      t += 8 + 2 * draws.uniform();
    }
    reply.done_after_ms = t;
    reply.usage_output = 32;
    reply.usage_prompt = 530;
    RequestRecord& r = run.add(reply);
    r.admitted = r.scheduled;
    r.tokens_planned = 512;
    r.tokens_asked_output = 32;
    r.tokens_server_cached = 16;
  }
  return run;
}

CannedRun failing_run() {
  CannedRun run = engine_run();
  run.spec.load.concurrency.reset();
  run.spec.load.rate = 10;
  run.spec.load.connections = 16;
  run.spec.load.queue_depth = 4;
  run.spec.run.gpus = 2;
  run.spec.slo = {{.metric = SloMetric::kTtft, .limit = 350ms, .attainment = 0.99},
                  {.metric = SloMetric::kTpot, .limit = 15ms, .attainment = 0.99}};
  run.ledger.workers[0].malformed = 3;
  for (std::size_t i = 0; i < 40; ++i) {
    RequestRecord& r = run.ledger.requests[i * 15];
    const RunTime scheduled = r.scheduled;
    const std::int64_t id = r.id;
    r = RequestRecord{};
    r.id = id;
    r.phase = 2;
    r.scheduled = scheduled;
    r.reused = true;
    r.admitted = r.send_start = scheduled;
    r.done = scheduled + 1ms;
    r.outcome = i < 20 ? Outcome::kHttpError : i < 36 ? Outcome::kTimeout : Outcome::kReset;
    if (i < 20) {
      r.http_status = 503;
      r.error_text = "the model is \"loading\"\nretry later";
    } else if (i < 36) {
      r.done = scheduled + 600s;
      r.error_text = "no end within 600s";
    } else {
      r.error_text = "connection reset by peer after 0 bytes";
    }
  }
  return run;
}

CannedRun late_run() {
  CannedRun run = engine_run();
  for (RequestRecord& r : run.ledger.requests) r.send_start = r.scheduled + 7ms;
  run.ledger.meta["state"] = "interrupted";
  return run;
}

CannedRun drifting_run() {
  CannedRun run(20'000);
  run.spec.load.concurrency.reset();
  run.spec.load.rate = 10;
  for (int i = 0; i < 200; ++i) {
    const double first = 50.0 + 10.0 * i;
    run.add(CannedReply{.scheduled_ms = i * 100.0,
                        .chunks_after_ms = {first, first + 30},
                        .done_after_ms = first + 31,
                        .usage_output = 7});
  }
  return run;
}

CannedRun one_prompt() {
  CannedRun run(0);
  run.spec.load.duration.reset();
  run.spec.load.requests = 1;
  run.spec.workload.prompt = "Why is the sky blue?";
  run.add(CannedReply{.chunks_after_ms = {12.34, 22.34, 32.34},
                      .done_after_ms = 33,
                      .usage_output = 3,
                      .usage_prompt = 12});
  return run;
}

CannedRun empty_run() {
  CannedRun run(1000);
  run.ledger.workers.clear();
  run.ledger.meta["state"] = "interrupted";
  return run;
}

CannedRun whole_replies() {
  CannedRun run(10'000);
  run.spec.target.stream = false;
  for (int i = 0; i < 50; ++i) {
    run.add(i * 200.0, Outcome::kOk, 100 + i % 7).tokens_server_output = 20;
  }
  return run;
}

const std::map<std::string, std::function<CannedRun()>> kRuns{
    {"engine", engine_run},          {"failing", failing_run},   {"late", late_run},
    {"drifting", drifting_run},      {"one_prompt", one_prompt}, {"empty", empty_run},
    {"whole_replies", whole_replies}};

TEST(Report, MatchesTheGoldens) {
  for (const auto& [name, make] : kRuns) {
    const CannedRun run = make();
    const Measurement m = measure(run.ledger, run.spec);
    expect_golden(name + ".txt", render_text(m, TextStyle{}));
    expect_golden(name + ".json", render_json(m));
  }
}

TEST(Report, TextFitsOneScreen) {
  for (const auto& [name, make] : kRuns) {
    const CannedRun run = make();
    const std::string text = render_text(measure(run.ledger, run.spec), TextStyle{});
    std::size_t lines = 0;
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(columns(line), 100U) << name << ": " << line;
      ++lines;
    }
    EXPECT_LE(lines - 1, 30U) << name;
  }
}

TEST(Report, TextFitsOneScreenHoweverMuchGoesWrong) {
  CannedRun run = failing_run();
  const std::string url(300, 'u');
  run.spec.target.urls = {url, url};
  for (SloMetric metric : {SloMetric::kE2e, SloMetric::kIcl, SloMetric::kWorstGap}) {
    run.spec.slo.push_back({.metric = metric, .limit = 1ms, .attainment = 0.5});
  }
  for (std::size_t i = 0; i < run.ledger.requests.size(); i += 2) {
    RequestRecord& r = run.ledger.requests[i];
    r.send_start = r.scheduled + 50ms;
    r.outcome = static_cast<Outcome>(i % kOutcomeCount);
    r.error_text = std::string(1000, 'e') + " and so on";
  }
  run.ledger.workers[0].lost = 5;
  const std::string text = render_text(measure(run.ledger, run.spec), TextStyle{});
  const auto lines = split(text, '\n');
  EXPECT_LE(lines.size() - 1, 30U);
  for (const std::string_view line : lines) EXPECT_LE(columns(line), 100U) << line;
  EXPECT_EQ(lines.at(lines.size() - 2).substr(0, 6), "ledger");
}

TEST(Report, TextIsPlainUnlessColourIsAskedFor) {
  const CannedRun run = engine_run();
  const Measurement m = measure(run.ledger, run.spec);
  EXPECT_EQ(render_text(m, TextStyle{}).find('\x1b'), std::string::npos);
  const TextStyle coloured{.colour = TextStyle::Colour::kAlways};
  EXPECT_NE(render_text(m, coloured).find('\x1b'), std::string::npos);
}

TEST(Report, OneRequestOfAPromptBeginsWithTheRuleBooksLine) {
  const CannedRun run = one_prompt();
  const std::string text = render_text(measure(run.ledger, run.spec), TextStyle{});
  EXPECT_EQ(text.substr(0, text.find('\n')), "TTFT: 12.3 ms");
}

TEST(Report, ANumberThatIsUnknownIsNullAndNeverNan) {
  for (const auto& [name, make] : kRuns) {
    const CannedRun run = make();
    const std::string json = render_json(measure(run.ledger, run.spec));
    EXPECT_EQ(json.find("nan"), std::string::npos) << name;
    EXPECT_EQ(json.find("inf"), std::string::npos) << name;
  }
}

TEST(Lines, CutByColumnsNotBytes) {
  EXPECT_EQ(columns("a·≥"), 3U);
  EXPECT_EQ(cut("·····", 3), "··…");
  EXPECT_EQ(cut("a\nb\x1b[31m", 99), "a b [31m");
  EXPECT_EQ(columns("\xff\xfe"), 2U);
}

TEST(Lines, WrapLongPartsBetweenWords) {
  Lines lines(TextStyle{.width = 24});
  lines.add("a", {"short", "words that go on and on"});
  EXPECT_EQ(lines.text(), "a         short · words\n          that go on and\n          on\n");
}

TEST(Lines, KeepTheLastWhereThereAreTooMany) {
  Lines lines(TextStyle{});
  for (const char* text : {"1", "2", "3", "4", "5"}) lines.add_raw(text);
  lines.keep(4);
  EXPECT_EQ(lines.text(), "1\n2\n          … more with --format json\n5\n");
  lines.keep(4);
  EXPECT_EQ(lines.count(), 4U);
}

TEST(Lines, WrapBetweenPartsUnderTheLabel) {
  Lines lines(TextStyle{.width = 24});
  lines.add("label", {"one two", "", "three", "four five"});
  lines.add("empty", {"", ""});
  EXPECT_EQ(lines.text(), "label     one two\n          three\n          four five\n");
}

}  // namespace
}  // namespace assay
