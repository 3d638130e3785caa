// For tests: plays a spec through the real workers on a VirtualLoop and gives back every record.
// Hours of load take milliseconds; nothing here reads a clock.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "engine/load/builder.h"
#include "engine/load/plan.h"
#include "engine/load/worker.h"
#include "engine/net/virtual_loop.h"
#include "engine/target/target.h"

namespace assay::internal {

class Stage {
 public:
  Stage(Spec spec, Target& target)
      : spec_(std::move(spec)), target_(target), plan_(plan_load(spec_, 1)) {}

  LoadPlan& plan() { return plan_; }
  VirtualLoop& loop() { return loop_; }
  Worker& worker(std::size_t i) { return *workers_[i]; }
  /// Called once all connections are prepared, before anything starts.
  std::function<void()> on_ready;

  std::vector<RequestRecord> play() {
    for (int id = 0; id < plan_.workers; ++id) {
      feeds_.push_back(std::make_unique<RequestFeed>(4, fill_of(id)));
      workers_.push_back(
          std::make_unique<Worker>(id, spec_, plan_, loop_, target_, *feeds_.back(), shared_));
    }
    for (const auto& worker : workers_) {
      worker->prepare([this](std::int64_t, const std::string&) {
        if (++ready_ == plan_.workers) start();
      });
    }
    loop_.run();
    EXPECT_EQ(finished_, plan_.workers) << "a worker never finished, or twice";
    return collect();
  }

  /// Virtual time from start to the end of the last worker.
  [[nodiscard]] Duration ended() const { return ended_ - start_; }
  [[nodiscard]] Instant started() const { return start_; }

 private:
  void start() {
    start_ = loop_.now() + 1ms;
    if (on_ready) on_ready();
    for (const auto& worker : workers_) {
      loop_.at(start_, [this, w = worker.get()] {
        w->start(start_, [this] {
          ++finished_;
          ended_ = loop_.now();
        });
      });
    }
  }

  RequestFeed::Fill fill_of(int worker) {
    if (!plan_.open_loop) {
      return [this, id = std::int64_t{worker}]() mutable {
        return builder_.build(std::exchange(id, id + plan_.workers));
      };
    }
    auto schedule = std::make_shared<OpenSchedule>(spec_.load, plan_, spec_.run.seed);
    return [this, schedule, worker]() -> std::unique_ptr<PreparedRequest> {
      while (const auto arrival = schedule->next()) {
        if (arrival->id % plan_.workers != worker) continue;
        auto request = builder_.build(arrival->id);
        request->scheduled = arrival->at;
        request->warmup = arrival->warmup;
        return request;
      }
      return nullptr;
    };
  }

  std::vector<RequestRecord> collect() {
    std::vector<RequestRecord> all;
    for (const auto& worker : workers_) {
      while (worker->records().front() != nullptr) all.push_back(*worker->records().pop());
      for (const auto& record : worker->overflow()) all.push_back(*record);
      EXPECT_EQ(worker->live().in_flight.load(), 0);
    }
    std::ranges::sort(all, {}, &RequestRecord::id);
    return all;
  }

  Spec spec_;
  Target& target_;
  LoadPlan plan_;
  RequestBuilder builder_{spec_, "salt", target_};
  VirtualLoop loop_{Instant{1000s}};
  SharedRunState shared_;
  std::vector<std::unique_ptr<RequestFeed>> feeds_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int ready_ = 0, finished_ = 0;
  Instant start_{}, ended_{};
};

/// The most that were on the wire at one instant; an end frees its place at once.
inline std::int64_t most_at_once(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<RunTime, int>> edges;
  for (const RequestRecord& r : records) {
    if (!r.admitted) continue;
    edges.emplace_back(*r.admitted, 1);
    edges.emplace_back(*r.done, -1);
  }
  std::ranges::sort(edges);
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [at, step] : edges) most = std::max(most, now += step);
  return most;
}

inline std::int64_t count_of(const std::vector<RequestRecord>& records, Outcome outcome) {
  return std::ranges::count(records, outcome, &RequestRecord::outcome);
}

inline std::int64_t count_of(const std::vector<RequestRecord>& records, Phase phase) {
  return std::ranges::count(records, static_cast<std::int32_t>(phase), &RequestRecord::phase);
}

}  // namespace assay::internal
