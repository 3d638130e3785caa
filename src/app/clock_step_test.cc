// A wall clock that is set in mid-run, as virtual machines do: no latency may feel it, and the
// ledger must tell of it. A scripted server behind a real socket, so that kernel stamps are at
// work.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/sim/script.h"
#include "engine/sim/script_server.h"

namespace assay {
namespace {

constexpr std::string_view kScript = R"(
script: 1
replies:
  - steps:
      - tokens: {count: 4, first: 10ms, gap: 2ms}
)";

class ClockStepTest : public testing::Test {
 protected:
  ClockStepTest()
      : path_(std::filesystem::temp_directory_path() /
              ("assay-clock-step-" + std::to_string(getpid()) + ".assay")) {}
  ~ClockStepTest() override { std::filesystem::remove(path_); }

  Ledger run(const Clocks& clocks) {
    std::filesystem::remove(path_);
    auto script = parse_script(kScript, "clock_step");
    if (!script) {
      ADD_FAILURE() << script.error().front().text();
      return {};
    }
    auto server = ScriptServer::start(std::move(*script));
    if (!server) {
      ADD_FAILURE() << server.error().text();
      return {};
    }
    std::string said;
    World world;
    world.args = {"run",        (*server)->url(), "--model",  "scripted", "--concurrency", "2",
                  "--duration", "400ms",          "--warmup", "0",        "--output",      "4",
                  "--requests", "1000",           "--out",    path_};
    world.env = [](const std::string& /*name*/) { return std::nullopt; };
    world.out = [&said](std::string_view text) { said += text; };
    world.err = world.out;
    world.clocks = clocks;
    run_app(world);
    Result<Ledger> ledger = read_ledger(path_);
    if (!ledger) {
      ADD_FAILURE() << ledger.error().text() << said;
      return {};
    }
    return std::move(*ledger);
  }

  static std::vector<Duration> ttfts(const Ledger& ledger) {
    std::vector<Duration> all;
    for (const RequestRecord& r : ledger.requests) {
      EXPECT_EQ(r.outcome, Outcome::kOk) << r.error_text;
      if (r.first_token) all.push_back(*r.first_token - r.scheduled);
    }
    std::ranges::sort(all);
    return all;
  }

  static std::int64_t steps_told(const Ledger& ledger) {
    return std::ranges::count(ledger.events, "clock_step", &EventRow::kind);
  }

  std::filesystem::path path_;
};

TEST_F(ClockStepTest, NoLatencyFeelsIt) {
  const Ledger plain = run(Clocks());
  const std::vector<Duration> before = ttfts(plain);
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(plain.meta_or(meta::kClockSteps), "0");
  EXPECT_EQ(steps_told(plain), 0);

  for (const Duration by : {Duration(1h), Duration(-1h)}) {
    const Clocks::Step step{.at_ns = Clocks().real_now().ns + Duration(200ms).count(),
                            .by_ns = by.count()};
    const Ledger stepped = run(Clocks(step));
    const std::vector<Duration> after = ttfts(stepped);
    ASSERT_FALSE(after.empty());
    EXPECT_EQ(stepped.meta_or(meta::kClockSteps), "1");
    EXPECT_EQ(steps_told(stepped), 1);
    // The server's own 10 ms are in every one of them, and an hour in none.
    EXPECT_GE(after.front(), 9ms);
    EXPECT_LT(after.back(), 10s);
    const Duration apart = after[after.size() / 2] - before[before.size() / 2];
    EXPECT_LT(std::abs(apart.count()), Duration(20ms).count());
    const auto& r = stepped.requests.back();
    EXPECT_GT(r.scheduled, 200ms) << "the step lay within the run";
  }
}

}  // namespace
}  // namespace assay
