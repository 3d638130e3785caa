#include "engine/sim/model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/net/virtual_loop.h"
#include "engine/sim/distribution.h"
#include "engine/sim/emission.h"
#include "engine/sim/sim_spec.h"

namespace assay {
namespace {

SimSpec fixed_pace(std::int64_t servers = 1) {
  SimSpec spec;
  spec.engine = ServersSpec{.servers = servers,
                            .ttft = SimDistribution::fixed(50ms),
                            .gap = SimDistribution::fixed(10ms)};
  return spec;
}

struct Arrival {
  Duration at{0};
  SimRequest request;
};

/// Everything that is sent, in order.
std::vector<Emission> play(SimCore& core, const std::vector<Arrival>& arrivals) {
  std::vector<Emission> out;
  const auto run_until = [&](std::optional<Duration> limit) {
    for (auto next = core.next(); next && (!limit || *next <= *limit); next = core.next()) {
      core.step(out);
    }
  };
  for (const Arrival& arrival : arrivals) {
    run_until(arrival.at);
    core.submit(arrival.at, arrival.request);
  }
  run_until(std::nullopt);
  return out;
}

std::vector<Emission> play(const SimSpec& spec, const std::vector<Arrival>& arrivals) {
  // The spec's copy inside a core dies with it, and with it what Emission::fault points to.
  static std::vector<std::unique_ptr<SimCore>> cores;
  cores.push_back(std::make_unique<SimCore>(spec, 1));
  return play(*cores.back(), arrivals);
}

std::vector<std::int64_t> instants_ms(const std::vector<Emission>& emissions) {
  std::vector<std::int64_t> out;
  for (const Emission& e : emissions) out.push_back(e.at.count() / 1'000'000);
  return out;
}

using Instants = std::vector<std::int64_t>;

TEST(SimCoreTest, TokensComeAtTheirPaceAndTheLastBringsTheEnd) {
  const auto out = play(fixed_pace(), {{5ms, {.prompt_tokens = 3, .output_tokens = 3}}});
  EXPECT_EQ(instants_ms(out), (Instants{55, 65, 75}));
  EXPECT_EQ(out[0].flags, kEmitHead | kEmitRole | kEmitTokens);
  EXPECT_EQ(out[1].flags, kEmitTokens);
  EXPECT_EQ(out[2].flags, kEmitTokens | kEmitFinish | kEmitEnd);
  EXPECT_EQ(out[2].first_token, 2);
}

TEST(SimCoreTest, AServiceTimeIsTheWholeReply) {
  SimSpec spec;
  spec.engine = ServersSpec{.service = SimDistribution::fixed(90ms)};
  const auto out = play(spec, {{0ms, {1, 3}}, {10ms, {1, 1}}});
  EXPECT_EQ(instants_ms(out), (Instants{30, 60, 90, 180}));
  EXPECT_EQ(out[3].started, Duration(90ms));
}

TEST(SimCoreTest, FullQueueRefuses) {
  SimSpec spec = fixed_pace();
  spec.queue = 1;
  spec.refusal.status = 429;
  spec.refusal.retry_after = 2s;
  SimCore core(spec, 1);
  const auto out = play(core, {{0ms, {1, 1}}, {1ms, {1, 1}}, {2ms, {1, 1}}});
  ASSERT_EQ(instants_ms(out), (Instants{2, 50, 100}));
  ASSERT_NE(out[0].fault, nullptr);
  EXPECT_EQ(out[0].fault->status, 429);
  EXPECT_EQ(core.counts().refused, 1);
  EXPECT_EQ(core.counts().ended, 2);
}

TEST(SimCoreTest, HeadsLeaveWhenAskedTo) {
  SimSpec spec = fixed_pace();
  spec.tokens.head = TokenSpec::Head::kAccepted;
  EXPECT_EQ(instants_ms(play(spec, {{0ms, {1, 1}}, {1ms, {1, 1}}})), (Instants{0, 1, 50, 100}));
  spec.tokens.head = TokenSpec::Head::kServed;
  EXPECT_EQ(instants_ms(play(spec, {{0ms, {1, 1}}, {1ms, {1, 1}}})), (Instants{0, 50, 50, 100}));
}

TEST(SimCoreTest, ChunksHoldSeveralTokensButNeverReasoningAndOutput) {
  SimSpec spec = fixed_pace();
  spec.tokens.per_chunk = 4;
  spec.tokens.reasoning = 7;
  const auto out = play(spec, {{0ms, {1, 12}}});
  std::vector<std::uint32_t> sizes;
  for (const Emission& e : out) sizes.push_back(e.tokens);
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1, 4, 2, 4, 1}));
  EXPECT_TRUE(out[2].reasoning);
  EXPECT_FALSE(out[3].reasoning);
  EXPECT_EQ(instants_ms(out), (Instants{50, 90, 110, 150, 160}));
}

TEST(SimCoreTest, BatchStepsGrowWithTheBatchAndJoinBetweenSteps) {
  SimSpec spec;
  spec.engine = BatchSpec{
      .batch_max = 2, .step_base = 10ms, .step_per_stream = 1ms, .prefill_per_token = 1ms};
  // A: step of 11 + 5 ms of prefill; B joins at 16, with 3 of prefill; C waits for A's place.
  const auto out = play(spec, {{0ms, {5, 2}}, {2ms, {3, 3}}, {3ms, {1, 1}}});
  EXPECT_EQ(instants_ms(out), (Instants{16, 31, 31, 44, 44, 55}));
  EXPECT_EQ(out[4].started, Duration(31ms));
}

TEST(SimCoreTest, AStallShiftsEverythingBehindIt) {
  SimSpec spec = fixed_pace();
  spec.stalls = {{60ms, 100ms}, {200ms, 10ms}};
  // 50 | 60 stalls: the token due then comes at 160 | 170, 180; arrival in the second stall.
  const auto out = play(spec, {{0ms, {1, 4}}, {205ms, {1, 1}}});
  EXPECT_EQ(instants_ms(out), (Instants{50, 160, 170, 180, 260}));
}

TEST(SimCoreTest, ColdCostsAreTakenOnce) {
  SimSpec spec = fixed_pace();
  spec.cold = {.first_call = 1s, .tokenizer = 1ms, .new_length = 100ms, .length_step = 10};
  const auto out = play(spec, {{0s, {5, 1}}, {10s, {5, 1}}, {20s, {11, 1}}, {30s, {20, 1}}});
  EXPECT_EQ(instants_ms(out), (Instants{1155, 10055, 20161, 30070}));
}

TEST(SimCoreTest, SlowServersAreSlow) {
  SimSpec spec = fixed_pace(2);
  std::get<ServersSpec>(spec.engine).slow_servers = 1;
  std::get<ServersSpec>(spec.engine).slow_factor = 3;
  EXPECT_EQ(instants_ms(play(spec, {{0ms, {1, 2}}, {0ms, {1, 2}}})), (Instants{50, 60, 150, 180}));
}

TEST(SimCoreTest, FaultsEndStreamsWhereTheySay) {
  const struct {
    FaultKind kind;
    std::int64_t after;
    Instants at;
    std::uint16_t last_flags;
  } cases[] = {
      {FaultKind::kHttpError, 0, {0, 50, 60}, kEmitFault},
      {FaultKind::kReset, 0, {50, 100, 110}, kEmitFault},
      {FaultKind::kErrorObject, 0, {50, 100, 110}, kEmitHead | kEmitRole | kEmitFault},
      {FaultKind::kErrorString, 1, {50, 60, 110, 120}, kEmitFault},
      {FaultKind::kMissingEnd, 0, {50, 60, 110, 120}, kEmitTokens | kEmitFault},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fault_name(c.kind));
    SimSpec spec = fixed_pace();
    FaultRule rule;
    rule.kind = c.kind;
    rule.nth = 1;
    rule.after = c.after;
    spec.faults = {rule};
    const auto out = play(spec, {{0ms, {1, 2}}, {0ms, {1, 2}}});
    EXPECT_EQ(instants_ms(out), c.at);
    for (const Emission& e : out) {
      if (e.fault == nullptr) continue;
      EXPECT_EQ(e.flags, c.last_flags);
      EXPECT_EQ(e.fault->kind, c.kind);
    }
  }
}

TEST(SimCoreTest, MalformedEventsAndWireFaultsLetTheStreamGoOn) {
  SimSpec spec = fixed_pace();
  spec.faults.resize(2);
  spec.faults[0].kind = FaultKind::kMalformed;
  spec.faults[0].every = 1;
  spec.faults[0].after = 1;
  spec.faults[1].kind = FaultKind::kCrLf;
  spec.faults[1].every = 2;
  const auto out = play(spec, {{0ms, {1, 2}}, {1s, {1, 1}}});
  EXPECT_EQ(out[0].flags & kEmitMalformed, 0);
  EXPECT_NE(out[1].flags & kEmitMalformed, 0);
  EXPECT_TRUE(out[1].last());
  EXPECT_EQ(out[0].wire, 0);
  EXPECT_EQ(out[2].wire, kWireCrLf);
}

TEST(SimCoreTest, CancellingFreesThePlace) {
  SimCore core(fixed_pace(), 1);
  std::vector<Emission> out;
  const StreamId served = core.submit(0ms, {1, 5});
  const StreamId waiting = core.submit(0ms, {1, 5});
  core.submit(0ms, {1, 1});
  EXPECT_EQ(core.waiting(), 2);
  core.cancel(1ms, waiting);
  core.cancel(2ms, served);
  core.cancel(2ms, served);  // dead: ignored
  while (core.next()) core.step(out);
  EXPECT_EQ(instants_ms(out), (Instants{52}));
  EXPECT_EQ(core.counts().cancelled, 2);
}

/// A spec of anything, from its number.
SimSpec any_spec(std::uint64_t number) {
  Draws draws = RandomStream(number, "specs").at(0);
  SimSpec spec;
  if (draws.below(2) == 0) {
    ServersSpec servers;
    servers.servers = 1 + static_cast<std::int64_t>(draws.below(4));
    servers.ttft = SimDistribution::gamma(20ms, 0.8);
    servers.gap = SimDistribution::log_normal(3ms, 0.7);
    if (draws.below(2) == 0) servers.service = SimDistribution::exponential(40ms);
    servers.slow_servers = static_cast<std::int64_t>(draws.below(2));
    servers.slow_factor = 2.5;
    spec.engine = servers;
  } else {
    spec.engine = BatchSpec{.batch_max = 1 + static_cast<std::int64_t>(draws.below(6)),
                            .step_base = 2ms,
                            .step_per_stream = 300us,
                            .prefill_per_token = 10us};
  }
  if (draws.below(2) == 0) spec.queue = static_cast<std::int64_t>(draws.below(5));
  if (draws.below(2) == 0) spec.output = {OutputSpec::Kind::kGeometric, 6.0};
  spec.tokens.per_chunk = 1 + static_cast<std::int64_t>(draws.below(3));
  spec.tokens.reasoning = static_cast<std::int64_t>(draws.below(4));
  spec.tokens.head = static_cast<TokenSpec::Head>(draws.below(3));
  if (draws.below(2) == 0) spec.cold.tokenizer = 100us;
  if (draws.below(2) == 0) spec.cold.new_length = 5ms;
  if (draws.below(2) == 0) {
    spec.random_stalls =
        RandomStalls{SimDistribution::exponential(300ms), SimDistribution::fixed(70ms)};
  }
  for (int i = 0; i < kFaultKindCount; ++i) {
    if (draws.below(3) != 0) continue;
    FaultRule rule;
    rule.kind = static_cast<FaultKind>(i);
    rule.share = 0.1;
    rule.after = static_cast<std::int64_t>(draws.below(5));
    spec.faults.push_back(rule);
  }
  return spec;
}

struct StreamSeen {
  bool head = false, ended = false;
  std::int64_t tokens = 0;
  Duration last{0};
};

TEST(SimCoreTest, AnySpecConservesRequestsAndKeepsOrder) {
  for (std::uint64_t number = 0; number < 300; ++number) {
    SCOPED_TRACE(number);
    SimCore core(any_spec(number), number);
    Draws draws = RandomStream(number, "arrivals").at(0);
    std::vector<Arrival> arrivals;
    Duration at{0};
    for (int i = 0; i < 200; ++i) {
      at += from_seconds(0.012 * draws.exponential());
      arrivals.push_back({at,
                          {1 + static_cast<std::int64_t>(draws.below(300)),
                           1 + static_cast<std::int64_t>(draws.below(9))}});
    }
    std::map<StreamId, StreamSeen> streams;
    Duration now{0};
    for (const Emission& e : play(core, arrivals)) {
      EXPECT_GE(e.at, now);
      EXPECT_GE(e.at, e.arrived);
      now = e.at;
      StreamSeen& stream = streams[e.stream];
      EXPECT_FALSE(stream.ended) << "spoke after its last word";
      EXPECT_FALSE(stream.head && (e.flags & kEmitHead) != 0) << "two heads";
      stream.head = stream.head || (e.flags & kEmitHead) != 0;
      if ((e.flags & kEmitTokens) != 0) {
        EXPECT_TRUE(stream.head);
        EXPECT_EQ(e.first_token, stream.tokens);
        EXPECT_GE(e.started, e.arrived);
        EXPECT_LE(e.started, e.at);
      }
      stream.tokens += e.tokens;
      stream.ended = e.last();
    }
    EXPECT_EQ(streams.size(), 200U);
    for (const auto& [id, stream] : streams) EXPECT_TRUE(stream.ended);
    const SimCounts& counts = core.counts();
    EXPECT_EQ(counts.arrived, 200);
    EXPECT_EQ(counts.ended + counts.faulted + counts.refused, 200);
    EXPECT_EQ(core.waiting(), 0);
    EXPECT_EQ(core.served(), 0);
  }
}

/// FNV-1a over everything that is sent.
std::uint64_t trace_hash(const std::vector<Emission>& emissions) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](std::uint64_t value) {
    for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xff)) * 0x100000001b3ULL;
  };
  for (const Emission& e : emissions) {
    add(e.stream);
    add(static_cast<std::uint64_t>(e.at.count()));
    add(static_cast<std::uint64_t>(e.started.count()));
    add(e.flags);
    add(e.tokens);
    add(e.wire);
  }
  return hash;
}

// Run a second time with fused multiply-add masked: see CMakeLists.txt. A change of the model
// changes this number, and its commit says so.
TEST(SimTraceTest, EveryBuildOnEveryMachinePlaysTheSameEvents) {
  std::uint64_t hash = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    SimCore core(any_spec(number), number);
    Draws draws = RandomStream(number, "arrivals").at(0);
    std::vector<Arrival> arrivals;
    Duration at{0};
    for (int i = 0; i < 500; ++i) {
      at += from_seconds(0.02 * draws.exponential());
      arrivals.push_back({at, {1 + static_cast<std::int64_t>(draws.below(300)), 8}});
    }
    hash = hash * 31 + trace_hash(play(core, arrivals));
  }
  EXPECT_EQ(hash, 0xd64bb72aa375d5ffULL);
}

struct Recorder final : SimStream {
  SimEngine* engine = nullptr;
  std::vector<Duration> at;
  int again = 0;  // further requests, each from inside the last call of the one before

  void on_emission(const Emission& emission) override {
    at.push_back(engine->loop().now() - engine->start());
    EXPECT_EQ(at.back(), emission.at);
    if (emission.last() && again-- > 0) engine->submit({1, 1}, *this);
  }
};

TEST(SimEngineTest, CallsItsStreamsAtTheirInstants) {
  VirtualLoop loop(Instant(7s));
  SimEngine engine(loop, fixed_pace(), 1);
  Recorder first, second, gone;
  first.engine = second.engine = gone.engine = &engine;
  first.again = 2;
  StreamId id = 0;
  loop.at(Instant(8s), [&] {
    engine.submit({1, 2}, first);
    engine.submit({1, 1}, second);
    id = engine.submit({1, 1}, gone);
    EXPECT_TRUE(first.at.empty());
  });
  loop.at(Instant(8s) + 55ms, [&] { engine.cancel(id); });
  loop.run();
  EXPECT_EQ(first.at, (std::vector<Duration>{1050ms, 1060ms, 1160ms, 1210ms}));
  EXPECT_EQ(second.at, (std::vector<Duration>{1110ms}));
  EXPECT_TRUE(gone.at.empty());
}

}  // namespace
}  // namespace assay
