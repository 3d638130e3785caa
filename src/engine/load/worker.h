// One worker: a loop of its own, its own connections, its own slice of the schedule; it shares
// nothing with the others but two queues (requests in, records out) and a few relaxed counters for
// the live view. Plays the open loop by the clock, or keeps the closed loop's slots busy, and hands
// every attempt's record over at its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/spsc_ring.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "engine/load/builder.h"
#include "engine/load/exchange.h"
#include "engine/load/plan.h"
#include "engine/load/pool.h"
#include "engine/net/loop.h"
#include "engine/target/target.h"

namespace assay {

/// Read by the live view while the worker runs.
struct LiveCounters {
  std::atomic<std::int64_t> scheduled{0}, in_flight{0}, queued{0}, ok{0}, failed{0}, chunks{0};
};

/// What workers agree on without talking: the first steady request, which starts the clock of
/// --duration.
struct SharedRunState {
  std::atomic<std::int64_t> steady_start_ns{-1};
  /// Lowers it to `at`; returns the value that stands.
  std::int64_t note_steady(std::int64_t at);
};

class Worker final : private ExchangeOwner {
 public:
  static constexpr std::size_t kRecordRing = 16 * 1024;

  Worker(int id, const Spec& spec, const LoadPlan& plan, Loop& loop, Target& target,
         RequestFeed& feed, SharedRunState& shared);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Opens the connections that the first phase needs. `ready(opened, error)` is called on the
  /// loop.
  void prepare(std::function<void(std::int64_t opened, const std::string& error)> ready);
  /// Begins at `start`; `finished` is called on the loop when nothing is left in flight.
  void start(Instant start, std::function<void()> finished);
  /// Called from the loop when records wait by the hundred: the writer should not wait for its
  /// turn.
  void on_backlog(std::function<void()> backlog) { on_backlog_ = std::move(backlog); }
  /// Schedules nothing more and drains within `drain`.
  void stop(Duration drain);

  /// Records in the order of their ends; consumer side, any one thread.
  SpscRing<std::unique_ptr<RequestRecord>>& records() { return records_; }
  [[nodiscard]] const LiveCounters& live() const { return live_; }
  /// After the loop has ended: what is still to be handed over, the counts and the histograms.
  std::deque<std::unique_ptr<RequestRecord>>& overflow() { return overflow_; }
  [[nodiscard]] ExchangeContext& context() { return context_; }

 private:
  struct Flight;
  static constexpr RunTime kNever = RunTime::min();

  void pump_open();
  void start_slots();
  void slot_free(std::int64_t slot, Instant at);
  void launch_slot(std::int64_t slot, RunTime due);
  /// launch_slot() at `when`.
  void arm_slot(std::int64_t slot, RunTime due, Instant when);
  void arm_steady_end(RunTime begin);
  void launch(std::unique_ptr<PreparedRequest> request, RunTime scheduled, Phase phase,
              std::int64_t slot);
  void send(Flight& flight, Seat& seat, const OpenResult* fresh);
  Pool::Granted sender(Flight& flight);
  void on_timeout(Flight& flight);
  void on_exchange_end(Exchange& exchange, Instant at) override;
  bool send_again(Exchange& exchange, Instant at) override;
  [[nodiscard]] bool crossed_on_the_way(const Flight& flight, Instant at) const;
  void hand_over(std::unique_ptr<RequestRecord> record);
  void steady_over();
  void cancel_all();
  void check_finished();
  [[nodiscard]] RunTime run_now() const { return loop_.now() - context_.start; }
  [[nodiscard]] std::optional<Phase> slot_phase(RunTime due);
  Flight& new_flight();

  const Spec& spec_;
  LoadPlan plan_;
  Loop& loop_;
  RequestFeed& feed_;
  SharedRunState& shared_;
  ExchangeContext context_;
  Pool pool_;
  SpscRing<std::unique_ptr<RequestRecord>> records_;
  std::deque<std::unique_ptr<RequestRecord>> overflow_;
  LiveCounters live_;

  std::vector<std::unique_ptr<Flight>> flights_;  // all ever made
  std::vector<Flight*> free_flights_;
  std::function<void()> finished_;
  std::function<void()> on_backlog_;
  Loop::TimerId pump_timer_ = 0, drain_timer_ = 0, steady_timer_ = 0;
  std::vector<Loop::TimerId> slot_timers_;  // of the slots that wait for their instant
  RunTime empty_at_ = kNever;               // when the feed was last seen empty
  std::int64_t in_flight_ = 0;              // admitted or queued
  std::int64_t warmup_left_ = 0, steady_left_ = 0;
  bool scheduling_ = false;
  bool done_ = false;
};

}  // namespace assay
