#include "engine/load/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/load/builder.h"
#include "engine/load/exchange.h"
#include "engine/load/plan.h"
#include "engine/load/run_writer.h"
#include "engine/load/thread_manners.h"
#include "engine/load/worker.h"
#include "engine/net/clock_watch.h"
#include "engine/net/epoll_loop.h"

namespace assay {
namespace {

constexpr Duration kTick = 100ms;         // how often the writer looks at the workers
constexpr Duration kCommitEvery = 500ms;  // a kill loses at most that, and the tick
constexpr Duration kProgressEvery = 100ms;
constexpr Duration kConnectWithin = 5s;
constexpr Duration kPrimeWithin = 1s;
constexpr Duration kLead = 1ms;  // from the decision to start to run start
constexpr Duration kDrainAfterSignal = 10s;

Duration thread_cpu_time() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return std::chrono::seconds(ts.tv_sec) + Duration(ts.tv_nsec);
}

/// A worker with its loop and thread.
struct Lane {
  std::unique_ptr<RequestFeed> feed;
  std::unique_ptr<EpollLoop> loop;
  std::unique_ptr<Worker> worker;
  std::jthread thread;
};

class LoadRun {
 public:
  explicit LoadRun(const RunInputs& inputs)
      : in_(inputs),
        builder_(inputs.spec, inputs.spec.run.salt, inputs.target),
        watch_(inputs.clocks),
        writer_(inputs.plan, shared_, inputs.ledger) {}

  Result<RunEnd> run() {
    make_lanes();
    FeedFiller filler(in_.spec, in_.plan, builder_, feeds_);
    std::jthread builder([&](const std::stop_token& stop) {
      give_way();
      filler.run(stop);
    });
    start_threads();
    give_way();  // after the workers' threads have been made, which inherit
    Result<RunEnd> result = play();
    builder.request_stop();
    for (Lane& lane : lanes_) lane.loop->stop();
    for (Lane& lane : lanes_) lane.thread.join();
    if (!result) return result;
    TRY(write_records());
    TRY(write_summary());
    return result;
  }

 private:
  Result<RunEnd> play() {
    TRY(connect());
    wait_until(kPrimeWithin, [this] { return primed(); });
    TRY(start());
    TRY(watch_until_finished());
    return RunEnd{.interrupted = stop_seen_ > 0};
  }

  void make_lanes();
  void start_threads();
  Result<> connect();
  [[nodiscard]] bool primed() const;
  Result<> start();
  Result<> commit_start(Instant start);
  void start_worker(Worker& worker);
  Result<> watch_until_finished();
  void obey_stop();
  Result<> look_at_clock();
  void report_progress();
  Result<> write_records();
  Result<> write_summary();
  [[nodiscard]] RunTime run_now() const { return in_.clocks.now() - start_; }

  /// Waits on signal_ for `done`, under the lock.
  template <typename Done>
  bool wait_until(Duration limit, const Done& done) {
    std::unique_lock lock(mutex_);
    const Instant deadline = in_.clocks.now() + limit;
    while (!done() && in_.clocks.now() < deadline) signal_.wait_for(lock, 1ms);
    return done();
  }

  const RunInputs& in_;
  RequestBuilder builder_;
  ClockWatch watch_;
  SharedRunState shared_;
  RunWriter writer_;
  std::vector<std::unique_ptr<RequestFeed>> feeds_;
  std::vector<Lane> lanes_;
  Instant start_{};

  std::mutex mutex_;  // guards the four below
  std::condition_variable signal_;
  std::size_t ready_ = 0;
  std::size_t finished_ = 0;
  std::int64_t opened_ = 0;
  std::string connect_error_;

  // The writer's own.
  int stop_seen_ = 0;
  std::int64_t clock_steps_ = 0;
  Instant progress_at_{};
};

void LoadRun::make_lanes() {
  const auto pacing =
      in_.spec.load.precise ? EpollLoop::Pacing::kPrecise : EpollLoop::Pacing::kTimer;
  const std::size_t capacity = FeedFiller::capacity(in_.spec, in_.plan);
  for (int id = 0; id < in_.plan.workers; ++id) {
    feeds_.push_back(std::make_unique<RequestFeed>(capacity));
    Lane& lane = lanes_.emplace_back();
    lane.loop = std::make_unique<EpollLoop>(in_.clocks, pacing);
    lane.worker = std::make_unique<Worker>(id, in_.spec, in_.plan, *lane.loop, in_.target,
                                           *feeds_.back(), shared_);
    lane.worker->context().secrets = in_.secrets;
    lane.worker->on_backlog([this] { signal_.notify_one(); });
  }
}

void LoadRun::start_threads() {
  for (Lane& lane : lanes_) {
    lane.loop->post([this, &lane] {
      lane.worker->prepare([this](std::int64_t opened, const std::string& error) {
        const std::scoped_lock lock(mutex_);
        ++ready_;
        opened_ += opened;
        if (connect_error_.empty()) connect_error_ = error;
        signal_.notify_one();
      });
    });
    lane.thread = std::jthread([&lane, clocks = in_.clocks] {
      run_promptly();
      const Instant begin = clocks.now();
      lane.loop->run_until_stopped();
      WorkerRow& counts = lane.worker->context().counts;
      counts.wall_ns = (clocks.now() - begin).count();
      counts.busy_ns = thread_cpu_time().count();
    });
  }
}

Result<> LoadRun::connect() {
  const auto settled = [this] { return ready_ == lanes_.size() || in_.stop.load() > 0; };
  const bool all = wait_until(kConnectWithin, settled);
  const std::scoped_lock lock(mutex_);
  if (opened_ > 0 || (all && connect_error_.empty())) return {};
  if (!all) connect_error_ = fmt::format("no answer within {}", format_duration(kConnectWithin));
  return fail({ExitCode::kUnreachable, fmt::format("no connection opens: {}", connect_error_),
               in_.spec.target.urls.empty() ? "" : in_.spec.target.urls.front(),
               "start the server, or correct the URL"});
}

bool LoadRun::primed() const {
  // Half of what is held is a second of an open loop; a closed one starts with its slots.
  const std::size_t capacity = FeedFiller::capacity(in_.spec, in_.plan);
  const auto slots = static_cast<std::size_t>(in_.plan.share(in_.plan.slots, 0));
  const std::size_t enough =
      in_.plan.open_loop ? capacity / 2 : std::min(capacity, std::max<std::size_t>(slots, 64));
  return std::ranges::all_of(
      feeds_, [enough](const auto& feed) { return feed->size() >= enough || feed->closed(); });
}

Result<> LoadRun::start() {
  // The ledger knows the start before the first send. Its first commit syncs, which takes longer
  // than the lead on a common disk: then the start is chosen anew, or the first requests would
  // leave late by that much. A disk that is slow each time shows up as send lag.
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    TRY(commit_start(in_.clocks.now() + kLead));
    if (in_.clocks.now() < start_) break;
  }
  obey_stop();  // one from before the start reaches the workers first: nothing is sent
  for (Lane& lane : lanes_) {
    lane.loop->post(
        [this, &lane] { lane.loop->at(start_, [this, &lane] { start_worker(*lane.worker); }); });
  }
  return {};
}

Result<> LoadRun::commit_start(Instant start) {
  start_ = start;
  TRY(in_.ledger.set_meta(meta::kStartMonotonicNs,
                          std::to_string(start_.time_since_epoch().count())));
  TRY(in_.ledger.set_meta(meta::kClockOffsetNs, std::to_string(watch_.offset_ns())));
  return in_.ledger.commit();
}

void LoadRun::start_worker(Worker& worker) {
  worker.start(start_, [this] {
    const std::scoped_lock lock(mutex_);
    ++finished_;
    signal_.notify_one();
  });
}

Result<> LoadRun::watch_until_finished() {
  Instant commit_at = in_.clocks.now() + kCommitEvery;
  const auto finished = [this] { return finished_ == lanes_.size(); };
  for (;;) {
    const bool over = [&] {
      std::unique_lock lock(mutex_);
      // No predicate: a worker with a backlog of records wakes us too.
      if (!finished()) signal_.wait_for(lock, kTick);
      return finished();
    }();
    obey_stop();
    TRY(look_at_clock());
    TRY(write_records());
    if (over) return {};
    if (in_.clocks.now() >= commit_at) {
      // What a kill would leave has its phases too.
      TRY(writer_.write_phases(run_now()));
      TRY(in_.ledger.commit());
      commit_at = in_.clocks.now() + kCommitEvery;
    }
    report_progress();
  }
}

void LoadRun::obey_stop() {
  const int level = in_.stop.load(std::memory_order_relaxed);
  if (level <= stop_seen_) return;
  stop_seen_ = level;
  writer_.note_stop(std::max(run_now(), RunTime(0)));
  const Duration drain = level >= 2 ? Duration(0) : std::min(kDrainAfterSignal, in_.plan.drain);
  for (Lane& lane : lanes_) {
    lane.loop->post([&lane, drain] { lane.worker->stop(drain); });
  }
}

Result<> LoadRun::look_at_clock() {
  const std::optional<std::int64_t> moved = watch_.poll();
  if (!moved) return {};
  ++clock_steps_;
  return in_.ledger.append(
      EventRow{run_now(), "clock_step",
               fmt::format("the wall clock was set by {:+.3f} ms; latencies don't use it",
                           static_cast<double>(*moved) / 1e6)});
}

void LoadRun::report_progress() {
  if (!in_.on_progress || in_.clocks.now() < progress_at_) return;
  progress_at_ = in_.clocks.now() + kProgressEvery;
  Progress progress;
  progress.elapsed = run_now();
  for (const Lane& lane : lanes_) {
    const LiveCounters& live = lane.worker->live();
    progress.scheduled += live.scheduled.load(std::memory_order_relaxed);
    progress.in_flight += live.in_flight.load(std::memory_order_relaxed);
    progress.ok += live.ok.load(std::memory_order_relaxed);
    progress.failed += live.failed.load(std::memory_order_relaxed);
    progress.events += live.chunks.load(std::memory_order_relaxed);
  }
  const std::int64_t steady = shared_.steady_start_ns.load(std::memory_order_relaxed);
  const std::optional<RunTime> end = writer_.steady_end();
  progress.phase = steady < 0 ? "warmup" : end && progress.elapsed > *end ? "drain" : "steady";
  in_.on_progress(progress);
}

Result<> LoadRun::write_records() {
  for (Lane& lane : lanes_) {
    // A worker whose thread has ended has left what found no room in the ring.
    TRY(lane.thread.joinable() ? writer_.write_records(*lane.worker)
                               : writer_.write_all_records(*lane.worker));
  }
  return {};
}

Result<> LoadRun::write_summary() {
  std::vector<Worker*> workers;
  for (Lane& lane : lanes_) workers.push_back(lane.worker.get());
  return writer_.write_summary(workers, clock_steps_);
}

}  // namespace

Result<RunEnd> run_load(const RunInputs& inputs) { return LoadRun(inputs).run(); }

}  // namespace assay
