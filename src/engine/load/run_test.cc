// The whole engine in real time over the null target, with a real ledger: no socket, a few hundred
// requests.

#include "engine/load/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/core/result.h"
#include "base/core/time.h"
#include "base/stats/histogram.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "engine/load/exchange.h"
#include "engine/load/plan.h"
#include "engine/target/null_target.h"

namespace assay {
namespace {

class RunTest : public testing::Test {
 protected:
  RunTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("assay-" + std::string(info->name()) + "-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    spec_.run.salt = "salt";
    spec_.workload.input = {LengthSpec::Kind::kFixed, 4, 0};
    spec_.workload.output = {LengthSpec::Kind::kFixed, 3, 0};
    spec_.load.warmup = {};
  }
  ~RunTest() override { std::filesystem::remove_all(folder_); }

  Ledger run(NullTiming timing, const std::function<void(const Progress&)>& on_progress = {}) {
    const std::string path = folder_ / "run.assay";
    auto ledger = LedgerWriter::create(path, {});
    EXPECT_TRUE(ledger);
    NullTarget target(timing);
    const LoadPlan plan = plan_load(spec_, 2);
    const Result<RunEnd> end = run_load({.spec = spec_,
                                         .plan = plan,
                                         .target = target,
                                         .ledger = **ledger,
                                         .clocks = {},
                                         .secrets = {},
                                         .stop = stop_,
                                         .on_progress = on_progress});
    if (!end) ADD_FAILURE() << end.error().text();
    interrupted_ = end && end->interrupted;
    EXPECT_TRUE((*ledger)->close("complete"));
    Result<Ledger> read = read_ledger(path);
    if (!read) ADD_FAILURE() << read.error().text();
    return read ? std::move(*read) : Ledger{};
  }

  Spec spec_;
  StopLevel stop_{0};
  bool interrupted_ = false;
  std::filesystem::path folder_;
};

TEST_F(RunTest, EveryRequestIsInTheLedgerWithItsPhase) {
  spec_.load.rate = 1000;
  spec_.load.warmup.requests = 20;
  spec_.load.requests = 200;
  const Ledger ledger = run({});
  EXPECT_FALSE(interrupted_);
  ASSERT_EQ(ledger.requests.size(), 220U);
  for (std::size_t i = 0; i < ledger.requests.size(); ++i) {
    const RequestRecord& r = ledger.requests[i];
    EXPECT_EQ(r.id, static_cast<std::int64_t>(i));
    EXPECT_EQ(r.phase, i < 20 ? 0 : 1);
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.tokens_server_output, 3);
    EXPECT_GE(*r.send_start, r.scheduled);
  }
  ASSERT_EQ(ledger.phases.size(), 3U);
  EXPECT_EQ(ledger.phases[1].name, "steady");
  EXPECT_EQ(ledger.phases[0].end, ledger.requests[20].scheduled);
  EXPECT_EQ(ledger.phases[1].start, ledger.requests[20].scheduled);
  EXPECT_EQ(ledger.phases[1].end, ledger.requests.back().scheduled);
  EXPECT_EQ(ledger.meta_or(meta::kServer), "null");
  EXPECT_EQ(ledger.meta_or(meta::kClockSteps), "0");
  EXPECT_FALSE(ledger.meta_or(meta::kStartMonotonicNs).empty());
  ASSERT_EQ(ledger.workers.size(), 2U);
  EXPECT_EQ(ledger.workers[0].requests + ledger.workers[1].requests, 220);
  EXPECT_EQ(ledger.workers[0].lost + ledger.workers[1].lost, 0);
  std::map<std::string, std::int64_t> recorded;
  for (const HistogramRow& row : ledger.histograms) {
    const Result<Histogram> histogram = Histogram::decode_v2(row.hdr);
    ASSERT_TRUE(histogram);
    recorded[row.name + std::to_string(row.phase)] += histogram->count();
  }
  EXPECT_EQ(recorded["send_lag_ns0"], 20);
  EXPECT_EQ(recorded["send_lag_ns1"], 200);
  EXPECT_EQ(recorded["receive_lag_ns1"], 600);
}

TEST_F(RunTest, OneStopDrains) {
  spec_.load.concurrency = 2;
  spec_.load.duration = 100s;
  const Ledger ledger = run({.connect = {}, .first = 5ms, .gap = 1ms},
                            [this](const Progress& /*now*/) { stop_.store(1); });
  EXPECT_TRUE(interrupted_);
  EXPECT_FALSE(ledger.requests.empty());
  for (const RequestRecord& r : ledger.requests) EXPECT_EQ(r.outcome, Outcome::kOk);
  ASSERT_EQ(ledger.phases.size(), 3U);
  EXPECT_LT(ledger.phases[1].end, 100s);
}

TEST_F(RunTest, AStopBeforeTheStartSendsNothing) {
  spec_.load.concurrency = 2;
  spec_.load.duration = 100s;
  stop_.store(1);
  const Ledger ledger = run({});
  EXPECT_TRUE(interrupted_);
  EXPECT_TRUE(ledger.requests.empty());
}

TEST_F(RunTest, TwoStopsCancelWhatIsInFlight) {
  spec_.load.concurrency = 4;
  spec_.load.duration = 100s;
  const Ledger ledger =
      run({.connect = {}, .first = 1h, .gap = {}}, [this](const Progress& /*now*/) { ++stop_; });
  EXPECT_TRUE(interrupted_);
  ASSERT_EQ(ledger.requests.size(), 4U);
  for (const RequestRecord& r : ledger.requests) {
    EXPECT_EQ(r.outcome, Outcome::kCancelled);
    EXPECT_TRUE(r.sent);
    EXPECT_FALSE(r.first_token);
  }
}

}  // namespace
}  // namespace assay
