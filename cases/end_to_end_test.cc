// The cases behind a real socket: the scripted server answers, the load engine asks as `assay run`
// would, and the ledger is read back. Instants may only be no earlier than the script allows: how
// late they are is the machine's affair, and the benchmarks'.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "case_file.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"
#include "engine/sim/script_server.h"
#include "engine/target/open.h"

namespace assay {
namespace {

struct Played {
  Ledger ledger;
  std::vector<ServedRequest> served;
};

Result<Spec> spec_of(const std::vector<std::string>& flags, const std::string& url) {
  Asked asked;
  asked.urls = {url};
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const bool has_value = i + 1 < flags.size() && !flags[i + 1].starts_with("--");
    asked.flags.emplace_back(flags[i], has_value ? flags[i + 1] : "");
    if (has_value) ++i;
  }
  std::expected<Resolved, Errors> resolved = resolve_spec(asked);
  if (!resolved) return fail(resolved.error().front());
  return std::move(resolved->spec);
}

/// One whole run against a script, and what both sides saw of it.
Result<Played> play(const Case& one, const std::vector<std::string>& flags) {
  const std::unique_ptr<ScriptServer> server = TRY(ScriptServer::start(one.script));
  Spec spec = TRY(spec_of(flags, server->url()));
  spec.run.salt = "case";
  spec.run.keep_text = true;
  // ctest runs each test in a process of its own.
  const std::string path = fmt::format("{}/case-{}.assay", testing::TempDir(), getpid());
  std::remove(path.c_str());
  const LoadPlan plan = plan_load(spec, 2);
  const OpenedTarget opened = TRY(open_target(spec, ""));
  const std::unique_ptr<LedgerWriter> writer = TRY(LedgerWriter::create(path, {}));
  const StopLevel stop{0};
  TRY(run_load({.spec = spec,
                .plan = plan,
                .target = *opened.target,
                .ledger = *writer,
                .clocks = {},
                .secrets = {},
                .stop = stop,
                .on_progress = [](const Progress& /*progress*/) {}}));
  TRY(writer->close("complete"));
  Result<Ledger> ledger = read_ledger(path);
  std::remove(path.c_str());
  if (!ledger) return fail(ledger.error());
  return Played{*std::move(ledger), server->requests()};
}

std::int64_t malformed_events(const Ledger& ledger) {
  std::int64_t sum = 0;
  for (const WorkerRow& worker : ledger.workers) sum += worker.malformed;
  return sum;
}

class SocketCase : public testing::TestWithParam<Case> {};

TEST_P(SocketCase, GivesTheExpectedRecordOverASocket) {
  const std::vector<std::string> one_request{"--concurrency", "1",        "--requests", "1",
                                             "--warmup",      "0",        "--output",   "16",
                                             "--prompt",      "a prompt", "--timeout",  "10s"};
  const Result<Played> played = play(GetParam(), one_request);
  ASSERT_TRUE(played) << played.error().text();
  ASSERT_EQ(played->ledger.requests.size(), 1u);
  for (const std::string& difference :
       differences(GetParam(), played->ledger.requests.front(), malformed_events(played->ledger),
                   Instants::kNotBefore)) {
    ADD_FAILURE() << difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Socket, SocketCase, testing::ValuesIn(read_cases("cases/stream")),
                         [](const auto& one) { return one.param.name; });

Duration ms(const std::string& text) { return parse_duration(text + "ms").value_or(-1ns); }

class LoadCase : public testing::TestWithParam<Case> {
 protected:
  void check(const Played& played);
  void check_outcomes(const std::vector<RequestRecord>& records);
  void check_server(const std::vector<ServedRequest>& served);
  void check_instants(const std::vector<RequestRecord>& records);

  /// The text under `key`, where the case expects something of it.
  [[nodiscard]] std::optional<std::string> expected(const std::string& key) const {
    const auto found = GetParam().expect.find(key);
    if (found == GetParam().expect.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& key) const {
    const std::optional<std::string> text = expected(key);
    return text ? parse_int(*text) : std::nullopt;
  }
};

void LoadCase::check(const Played& played) {
  const std::set<std::string> known{"in_flight_most", "in_flight_least", "prompts",
                                    "gap_ms",         "ttft_ms_least",   "malformed"};
  for (const auto& [key, value] : GetParam().expect) {
    EXPECT_TRUE(known.contains(key) || outcome_from_name(key)) << key;
  }
  check_outcomes(played.ledger.requests);
  check_server(played.served);
  check_instants(played.ledger.requests);
  if (const auto count = number("malformed")) {
    EXPECT_EQ(malformed_events(played.ledger), *count);
  }
}

void LoadCase::check_outcomes(const std::vector<RequestRecord>& records) {
  std::map<std::string, std::int64_t> seen;
  for (const RequestRecord& record : records) ++seen[std::string(outcome_name(record.outcome))];
  for (int i = 0; i < kOutcomeCount; ++i) {
    const std::string name(outcome_name(static_cast<Outcome>(i)));
    EXPECT_EQ(seen[name], number(name).value_or(0)) << name;
  }
  for (const RequestRecord& record : records) {
    EXPECT_EQ(record.attempt, 1);
    if (record.outcome == Outcome::kHttpError) {
      EXPECT_FALSE(record.first_token);
    }
    if (record.outcome == Outcome::kOk) {
      EXPECT_TRUE(record.first_token);
    }
  }
}

void LoadCase::check_server(const std::vector<ServedRequest>& served) {
  std::int64_t most = 0;
  std::set<std::string> prompts;
  for (const ServedRequest& request : served) {
    most = std::max(most, request.in_flight);
    prompts.insert(request.prompt);
  }
  if (const auto bound = number("in_flight_most")) {
    EXPECT_LE(most, *bound);
  }
  if (const auto bound = number("in_flight_least")) {
    EXPECT_GE(most, *bound);
  }
  if (const auto count = number("prompts")) {
    EXPECT_EQ(static_cast<std::int64_t>(prompts.size()), *count);
  }
}

void LoadCase::check_instants(const std::vector<RequestRecord>& records) {
  if (const auto gap = expected("gap_ms")) {
    for (std::size_t i = 1; i < records.size(); ++i) {
      EXPECT_EQ(records[i].scheduled - records[i - 1].scheduled, ms(*gap)) << i;
    }
  }
  for (const RequestRecord& record : records) {
    if (record.send_start) {
      EXPECT_GE(*record.send_start, record.scheduled);
    }
  }
  const auto least = expected("ttft_ms_least");
  if (!least) return;
  ASSERT_FALSE(records.empty());
  ASSERT_TRUE(records.back().first_token);
  EXPECT_GE(*records.back().first_token - records.back().scheduled, ms(*least));
  EXPECT_LT(*records.back().first_token - records.back().send_start.value_or(0ns), ms(*least));
}

TEST_P(LoadCase, GivesTheExpectedRun) {
  std::vector<std::string> flags{"--output", "16", "--timeout", "30s"};
  flags.insert(flags.end(), GetParam().run.begin(), GetParam().run.end());
  if (std::ranges::find(flags, "--warmup") == flags.end()) {
    flags.insert(flags.end(), {"--warmup", "0"});
  }
  const Result<Played> played = play(GetParam(), flags);
  ASSERT_TRUE(played) << played.error().text();
  check(*played);
}

INSTANTIATE_TEST_SUITE_P(Socket, LoadCase, testing::ValuesIn(read_cases("cases/load")),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay
