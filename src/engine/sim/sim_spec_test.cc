#include "engine/sim/sim_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"

namespace assay {
namespace {

Result<std::string> no_file(const std::string& path) { return usage_error("no such file", path); }

SimSpec resolve(const SimAsked& asked) {
  auto spec = resolve_sim_spec(asked, no_file);
  if (!spec) {
    for (const Error& error : spec.error()) ADD_FAILURE() << error.text();
    return {};
  }
  return *std::move(spec);
}

std::vector<std::string> problems(const SimAsked& asked) {
  std::vector<std::string> out;
  const auto spec = resolve_sim_spec(asked, no_file);
  if (spec) return out;
  for (const Error& error : spec.error()) out.push_back(error.where + ": " + error.what);
  return out;
}

SimAsked file(const std::string& yaml) { return {.yaml = yaml, .path = "e.yaml", .flags = {}}; }

constexpr const char* kEverything = R"(sim:
  model: tiny
  servers: 4
  ttft: gamma:50ms,0.7
  gap: lognormal:10ms,0.3
  slow: {servers: 1, factor: 3}
  queue: 100
  refuse: {status: 429, retry_after: 2s}
  output: geometric:64
  tokens: {per_chunk: 2, role: false, reasoning: 8, head: served, usage: each}
  cold: {first_call: 2s, tokenizer: 2us, new_length: 100ms, length_step: 32}
  random_stalls: {every: exp:30s, for: det:500ms}
  faults:
    - {do: http_error, nth: 3, status: 503, retry_after: 1s}
    - {do: reset, every: 10, after: 5}
    - {do: slow_loris, share: 0.25, pause: 5ms}
)";

TEST(SimSpecTest, ReadsEveryKey) {
  const SimSpec spec = resolve(file(kEverything));
  const auto& servers = std::get<ServersSpec>(spec.engine);
  EXPECT_EQ(servers.servers, 4);
  EXPECT_EQ(servers.ttft.text(), "gamma:50ms,0.7");
  EXPECT_EQ(servers.slow_factor, 3);
  EXPECT_EQ(spec.queue, 100);
  EXPECT_EQ(spec.refusal.status, 429);
  EXPECT_EQ(spec.output.kind, OutputSpec::Kind::kGeometric);
  EXPECT_FALSE(spec.tokens.role);
  EXPECT_EQ(spec.tokens.head, TokenSpec::Head::kServed);
  EXPECT_EQ(spec.tokens.usage, TokenSpec::Usage::kEach);
  EXPECT_EQ(spec.cold.tokenizer, Duration(2us));
  ASSERT_EQ(spec.faults.size(), 3U);
  EXPECT_EQ(spec.faults[1].kind, FaultKind::kReset);
  EXPECT_EQ(spec.faults[1].after, 5);
  EXPECT_EQ(spec.faults[2].share, 0.25);
}

TEST(SimSpecTest, JsonReadsBack) {
  for (const char* const yaml :
       {kEverything, "sim: {batch_max: 8, step: 4ms, stalls: [{at: 1s, for: 2s}]}",
        "sim: {service: exp:50ms, output: fixed:12}"}) {
    const std::string json = sim_spec_to_json(resolve(file(yaml)));
    EXPECT_EQ(sim_spec_to_json(resolve(file("{\"sim\": " + json + "}"))), json);
  }
}

TEST(SimSpecTest, FlagsOverrideTheFile) {
  SimAsked asked = file("sim: {servers: 2, service: exp:10ms}");
  asked.flags = {{"--servers", "7"}, {"--queue", "3"}};
  const SimSpec spec = resolve(asked);
  EXPECT_EQ(std::get<ServersSpec>(spec.engine).servers, 7);
  EXPECT_EQ(std::get<ServersSpec>(spec.engine).service->text(), "exp:10ms");
  EXPECT_EQ(spec.queue, 3);
}

TEST(SimSpecTest, EveryProblemIsToldWithItsPlace) {
  SimAsked asked = file(R"(sim:
  servers: 0
  service: weibull:3
  speed: 4
  output: some
  refuse: {status: 200}
  stalls: [{at: 5s, for: 2s}, {at: 6s, for: 1s}]
  faults: [{do: explode, nth: 1}, {do: reset}, {nth: 1}]
)");
  asked.flags = {{"--queue", "-1"}};
  EXPECT_EQ(
      problems(asked),
      (std::vector<std::string>{
          "e.yaml:4: sim knows no key \"speed\"",
          "e.yaml:2: servers must be a whole number of at least 1, not \"0\"",
          "e.yaml:3: service: 'weibull:3' is no distribution of times",
          "e.yaml:6: status must be a whole number of at least 400, not \"200\"",
          "e.yaml:5: \"some\" is no length of replies",
          "e.yaml:7: a stall begins before the one above it has ended",
          "e.yaml:8: do is one of http_error, error_object, error_string, error_event, reset, "
          "half_open, close, missing_end, malformed, slow_loris, comments, crlf, split_utf8, "
          "not \"explode\"",
          "e.yaml:8: a fault needs exactly one of nth, every and share",
          "e.yaml:8: a fault needs \"do\"",
          "--queue: queue must be a whole number of at least 0, not \"-1\"",
      }));
}

TEST(SimSpecTest, KeysThatDontGoTogetherAreRefused) {
  SimAsked asked = file("sim: {servers: 2, service: exp:10ms, gap: det:1ms}");
  asked.flags = {{"--batch", "4"}};
  EXPECT_EQ(
      problems(asked),
      (std::vector<std::string>{
          "--batch: servers and batch_max don't go together: an engine has servers or a batch",
          "--batch: service and batch_max don't go together: an engine has servers or a batch",
          "--batch: gap and batch_max don't go together: an engine has servers or a batch",
          "e.yaml:1: service and gap don't go together: service is the time of the whole "
          "reply",
      }));
}

TEST(SimSpecTest, TextThatIsNoEngineIsRefused) {
  EXPECT_EQ(problems(file("sim: [")).size(), 1U);
  EXPECT_EQ(problems(file("simulated: {}")).size(), 2U);
  EXPECT_EQ(problems(file("sim: 3")), (std::vector<std::string>{"e.yaml:1: sim must be a map"}));
}

}  // namespace
}  // namespace assay
