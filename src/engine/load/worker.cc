#include "engine/load/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
namespace {

/// A closed-loop slot whose request never left waits that long, or a dead server would be asked
/// without pause.
constexpr Duration kPauseAfterClientFailure = 100ms;
/// How soon to look again when the builder has fallen behind.
constexpr Duration kBuilderPoll = 200us;

/// One writer: no read-modify-write needed.
void add(std::atomic<std::int64_t>& counter, std::int64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

PoolOptions pool_options(const Spec& spec, const LoadPlan& plan, int worker) {
  PoolOptions options;
  if (plan.connections) options.limit = plan.share(*plan.connections, worker);
  if (plan.queue_depth) options.queue_depth = plan.share(*plan.queue_depth, worker);
  options.mode = spec.load.cold_connect ? ConnectMode::kCold : ConnectMode::kReuse;
  options.first_connection = worker;
  options.connection_step = plan.workers;
  return options;
}

}  // namespace

struct Worker::Flight : Exchange {
  using Exchange::Exchange;
  Pool::Ticket ticket = 0;  // while queued
  Seat* seat = nullptr;     // while on the wire
  Loop::TimerId timeout = 0;
  bool sent_again = false;
  bool active = false;
};

std::int64_t SharedRunState::note_steady(std::int64_t at) {
  std::int64_t stands = steady_start_ns.load(std::memory_order_relaxed);
  while (stands < 0 || at < stands) {
    if (steady_start_ns.compare_exchange_weak(stands, at, std::memory_order_relaxed)) return at;
  }
  return stands;
}

Worker::Worker(int id, const Spec& spec, const LoadPlan& plan, Loop& loop, Target& target,
               RequestFeed& feed, SharedRunState& shared)
    : spec_(spec),
      plan_(plan),
      loop_(loop),
      feed_(feed),
      shared_(shared),
      pool_(loop, target, pool_options(spec, plan, id)),
      records_(kRecordRing) {
  context_.worker = context_.counts.id = id;
  context_.choices = target.choices();
  context_.keep_text = spec.run.keep_text;
  warmup_left_ = plan.share(plan.warmup_requests, id);
  steady_left_ = plan.share(plan.requests.value_or(0), id);
}

Worker::~Worker() = default;

void Worker::prepare(std::function<void(std::int64_t, const std::string&)> ready) {
  constexpr std::int64_t kUnlimitedStart = 2;
  const std::int64_t limit =
      plan_.connections ? plan_.share(*plan_.connections, context_.worker) : kUnlimitedStart;
  const std::int64_t slots = plan_.open_loop ? limit : plan_.share(plan_.slots, context_.worker);
  // Cold ones can't be opened ahead; one tells whether the server is there, and is closed again.
  pool_.prepare(spec_.load.cold_connect ? std::min<std::int64_t>(slots, 1) : std::min(limit, slots),
                std::move(ready));
}

void Worker::start(Instant start, std::function<void()> finished) {
  context_.start = start;
  finished_ = std::move(finished);
  if (done_) return finished_();  // stopped before it began
  scheduling_ = true;
  if (plan_.open_loop) {
    pump_open();
  } else {
    start_slots();
  }
}

void Worker::pump_open() {
  pump_timer_ = 0;
  while (const PreparedRequest* const next = feed_.front()) {
    if (!scheduling_) return;
    if (next->scheduled > run_now()) {
      pump_timer_ = loop_.at(context_.start + next->scheduled, [this] { pump_open(); });
      return;
    }
    const RunTime scheduled = next->scheduled;
    const Phase phase = next->warmup ? Phase::kWarmup : Phase::kSteady;
    if (phase == Phase::kSteady) shared_.note_steady(scheduled.count());
    launch(feed_.pop(), scheduled, phase, -1);
  }
  if (feed_.finished()) return steady_over();
  empty_at_ = run_now();
  pump_timer_ = loop_.at(loop_.now() + kBuilderPoll, [this] { pump_open(); });
}

void Worker::start_slots() {
  // Slots start spread over a timed warm-up, so that steady does not begin with one burst of long
  // prefills.
  const std::int64_t mine = plan_.share(plan_.slots, context_.worker);
  slot_timers_.resize(static_cast<std::size_t>(mine));
  for (std::int64_t k = 0; k < mine; ++k) {
    const std::int64_t slot = k * plan_.workers + context_.worker;
    const auto due = Duration(plan_.warmup_time.count() / plan_.slots * slot);
    arm_slot(slot, due, context_.start + due);
  }
  if (mine == 0) return steady_over();
  if (plan_.warmup_requests == 0) arm_steady_end(plan_.warmup_time);
}

void Worker::arm_slot(std::int64_t slot, RunTime due, Instant when) {
  slot_timers_[static_cast<std::size_t>(slot / plan_.workers)] =
      loop_.at(when, [this, slot, due] { launch_slot(slot, due); });
}

void Worker::arm_steady_end(RunTime begin) {
  // By the clock, not when the next slot comes free: at a server that hangs none does.
  if (!plan_.duration || steady_timer_ != 0) return;
  steady_timer_ = loop_.at(context_.start + begin + *plan_.duration, [this] { steady_over(); });
}

std::optional<Phase> Worker::slot_phase(RunTime due) {
  if (plan_.warmup_requests > 0 && warmup_left_ > 0) {
    --warmup_left_;
    return Phase::kWarmup;
  }
  if (plan_.warmup_requests == 0 && due < plan_.warmup_time) return Phase::kWarmup;
  if (plan_.requests && steady_left_-- <= 0) return std::nullopt;
  if (plan_.duration) {
    const std::int64_t begin =
        plan_.warmup_requests > 0 ? shared_.note_steady(due.count()) : plan_.warmup_time.count();
    if (due.count() >= begin + plan_.duration->count()) return std::nullopt;
    arm_steady_end(RunTime(begin));
  }
  shared_.note_steady(due.count());
  return Phase::kSteady;
}

void Worker::launch_slot(std::int64_t slot, RunTime due) {
  if (feed_.front() == nullptr) {
    if (feed_.finished()) return steady_over();
    empty_at_ = run_now();
    return arm_slot(slot, due, loop_.now() + kBuilderPoll);
  }
  const std::optional<Phase> phase = slot_phase(due);
  if (!phase) return steady_over();
  launch(feed_.pop(), due, *phase, slot);
}

void Worker::slot_free(std::int64_t slot, Instant at) {
  if (!scheduling_) return;
  const RunTime due = at - context_.start + spec_.load.think;
  if (due <= run_now()) return launch_slot(slot, due);
  arm_slot(slot, due, context_.start + due);
}

Worker::Flight& Worker::new_flight() {
  if (free_flights_.empty()) {
    ExchangeOwner& owner = *this;
    flights_.push_back(std::make_unique<Flight>(context_, owner));
    return *flights_.back();
  }
  Flight& flight = *free_flights_.back();
  free_flights_.pop_back();
  return flight;
}

void Worker::launch(std::unique_ptr<PreparedRequest> request, RunTime scheduled, Phase phase,
                    std::int64_t slot) {
  Flight& flight = new_flight();
  flight.begin(std::move(request), scheduled, phase, slot);
  flight.active = true;
  flight.sent_again = false;
  if (scheduled <= empty_at_) ++context_.counts.builder_stalls;
  ++in_flight_;
  add(live_.scheduled, 1);
  add(live_.in_flight, 1);
  const Pool::Acquired got = pool_.acquire(sender(flight));
  if (got.seat != nullptr) return send(flight, *got.seat, nullptr);
  if (got.refused) {
    flight.end_by_client(Outcome::kRefusedByClient, loop_.now(), "queue_full",
                         "no connection was free and the queue was full");
    return;
  }
  flight.ticket = got.ticket;
  flight.timeout = loop_.at(context_.start + scheduled + spec_.target.timeout,
                            [this, &flight] { on_timeout(flight); });
}

Pool::Granted Worker::sender(Flight& flight) {
  return [this, &flight](Seat* seat, const OpenResult* fresh, const std::string& error) {
    flight.ticket = 0;
    if (seat != nullptr) return send(flight, *seat, fresh);
    const Outcome outcome = fresh->tls_failed ? Outcome::kTls : Outcome::kConnect;
    flight.end_by_client(outcome, loop_.now(), "connect", error);
  };
}

void Worker::send(Flight& flight, Seat& seat, const OpenResult* fresh) {
  loop_.cancel(flight.timeout);
  flight.seat = &seat;
  // Not now, but since when it could go: what we took from then on is our lag, and shows as such.
  const Instant admitted = std::max(context_.start + flight.record().scheduled, seat.free_since);
  flight.set_admitted(admitted, seat.id, fresh);
  flight.timeout =
      loop_.at(admitted + spec_.target.timeout, [this, &flight] { on_timeout(flight); });
  seat.channel->send(flight.wire(), flight);
}

void Worker::on_timeout(Flight& flight) {
  const std::string limit = format_duration(spec_.target.timeout);
  if (flight.seat == nullptr) {
    pool_.abandon(flight.ticket);
    flight.end_by_client(Outcome::kTimeout, loop_.now(), "queue_timeout",
                         fmt::format("no connection became free within {}", limit));
    return;
  }
  flight.seat->channel->cancel();
  flight.end_by_client(Outcome::kTimeout, loop_.now(), "timeout",
                       fmt::format("no end within {}", limit));
}

bool Worker::crossed_on_the_way(const Flight& flight, Instant at) const {
  // A close that passed the request on the wire shows after one round trip; opening the connection
  // took as long. What comes later is a server that had the request and gave it up.
  constexpr Duration kAtLeast = 100ms;  // for a busy server, and an address tried in vain
  const Duration limit = std::max<Duration>(kAtLeast, 4 * flight.seat->opened.tcp);
  const Instant sent = context_.start + flight.record().sent.value_or(flight.record().scheduled);
  return at - sent <= limit;
}

bool Worker::send_again(Exchange& exchange, Instant at) {
  auto& flight = static_cast<Flight&>(exchange);
  // Only where the server may have closed a connection that it had served before: it never saw this
  // request.
  const Instant limit = context_.start + flight.record().scheduled + spec_.target.timeout;
  if (!crossed_on_the_way(flight, at)) return false;
  if (!flight.seat->used || flight.sent_again || limit <= loop_.now()) return false;
  flight.sent_again = true;
  flight.begin_again();
  ++context_.counts.sent_again;
  Seat& seat = *std::exchange(flight.seat, nullptr);
  pool_.note_unannounced_close(seat);
  flight.ticket = pool_.acquire_again(sender(flight));
  loop_.cancel(flight.timeout);
  flight.timeout = loop_.at(limit, [this, &flight] { on_timeout(flight); });
  pool_.release(seat, at);
  return true;
}

void Worker::on_exchange_end(Exchange& exchange, Instant at) {
  auto& flight = static_cast<Flight&>(exchange);
  loop_.cancel(flight.timeout);
  const std::int64_t slot = flight.slot();
  std::unique_ptr<RequestRecord> record = flight.take_record();
  const bool never_left = flight.seat == nullptr;
  Seat* const seat = std::exchange(flight.seat, nullptr);
  flight.ticket = 0;
  flight.timeout = 0;
  flight.active = false;
  free_flights_.push_back(&flight);
  --in_flight_;
  add(live_.in_flight, -1);
  add(record->outcome == Outcome::kOk ? live_.ok : live_.failed, 1);
  add(live_.chunks, record->events);
  live_.queued.store(static_cast<std::int64_t>(pool_.queued()), std::memory_order_relaxed);
  hand_over(std::move(record));
  if (seat != nullptr) pool_.release(*seat, at);
  if (slot >= 0) slot_free(slot, never_left ? at + kPauseAfterClientFailure : at);
  check_finished();
}

void Worker::hand_over(std::unique_ptr<RequestRecord> record) {
  // Never dropped: what the writer has no room for waits here.
  while (!overflow_.empty() && records_.push(overflow_.front())) overflow_.pop_front();
  if (!overflow_.empty() || !records_.push(record)) overflow_.push_back(std::move(record));
  constexpr std::size_t kBacklog = 512;
  if (on_backlog_ && records_.size() == kBacklog) on_backlog_();
}

void Worker::steady_over() {
  scheduling_ = false;
  loop_.cancel(pump_timer_);
  loop_.cancel(steady_timer_);
  // A slot that thinks has nothing to say any more: the end must not wait for it.
  for (const Loop::TimerId timer : slot_timers_) loop_.cancel(timer);
  if (drain_timer_ == 0)
    drain_timer_ = loop_.at(loop_.now() + plan_.drain, [this] { cancel_all(); });
  check_finished();
}

void Worker::stop(Duration drain) {
  plan_.drain = drain;
  loop_.cancel(drain_timer_);
  drain_timer_ = 0;
  steady_over();
}

void Worker::cancel_all() {
  // A seat set free by one cancelled request would be handed to the next queued one: the queue goes
  // first.
  for (const auto& flight : flights_) {
    if (flight->active && flight->seat == nullptr) {
      pool_.abandon(flight->ticket);
      flight->end_by_client(Outcome::kCancelled, loop_.now(), "cancelled",
                            "still queued at the end of the drain");
    }
  }
  for (const auto& flight : flights_) {
    if (flight->active) {
      flight->seat->channel->cancel();
      flight->end_by_client(Outcome::kCancelled, loop_.now(), "cancelled",
                            "still running at the end of the drain");
    }
  }
}

void Worker::check_finished() {
  if (done_ || scheduling_ || in_flight_ > 0) return;
  done_ = true;
  loop_.cancel(drain_timer_);
  context_.counts.connects = pool_.connects();
  if (finished_) finished_();
}

}  // namespace assay
