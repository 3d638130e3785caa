#include "engine/load/pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "engine/net/loop.h"
#include "engine/target/target.h"

namespace assay {

Pool::Pool(Loop& loop, Target& target, const PoolOptions& options)
    : loop_(loop), target_(target), options_(options), next_id_(options.first_connection) {}

void Pool::prepare(std::int64_t count, std::function<void(std::int64_t, const std::string&)> done) {
  prepare_done_ = std::move(done);
  to_prepare_ = prepare_left_ = count;
  if (count == 0) return finish_prepare();
  open_wanted();
}

Pool::Acquired Pool::acquire(Granted granted) {
  if (options_.mode == ConnectMode::kReuse && queued_ == 0) {
    if (Seat* const seat = take_idle()) {
      open_wanted();
      return {.seat = seat, .ticket = 0, .refused = false};
    }
  }
  // A request whose connection is being opened is not in the queue: the limit leaves room for it.
  const auto queued = static_cast<std::int64_t>(queued_);
  const std::int64_t room = options_.limit ? *options_.limit - busy_ : queued + 1;
  if (options_.queue_depth && queued - std::max<std::int64_t>(room, 0) >= *options_.queue_depth) {
    return {.seat = nullptr, .ticket = 0, .refused = true};
  }
  const Ticket ticket = next_ticket_++;
  waiting_.push_back({ticket, std::move(granted)});
  ++queued_;
  open_wanted();
  return {.seat = nullptr, .ticket = ticket, .refused = false};
}

Pool::Ticket Pool::acquire_again(Granted granted) {
  // Tickets rise along the queue: the front gets one below all others.
  const Ticket ticket = front_ticket_--;
  waiting_.push_front({ticket, std::move(granted)});
  ++queued_;
  open_wanted();
  return ticket;
}

void Pool::note_unannounced_close(const Seat& seat) {
  // A keep-alive timeout takes seconds; a server that closes by habit does so at once.
  constexpr Duration kAtOnce = 100ms;
  if (seat.used && loop_.now() - seat.free_since < kAtOnce) closes_after_reply_ = true;
}

void Pool::abandon(Ticket ticket) {
  // Only marked: under overload a hundred thousand leave one by one, and closing each gap at once
  // would move all the others each time.
  const auto place = std::ranges::lower_bound(waiting_, ticket, {}, &Waiting::ticket);
  if (place == waiting_.end() || place->ticket != ticket || !place->granted) return;
  place->granted = nullptr;
  --queued_;
  forget_those_who_left();
}

void Pool::forget_those_who_left() {
  while (!waiting_.empty() && !waiting_.front().granted) waiting_.pop_front();
}

Pool::Granted Pool::take_waiting() {
  Granted granted = std::move(waiting_.front().granted);
  waiting_.pop_front();
  --queued_;
  forget_those_who_left();
  return granted;
}

void Pool::release(Seat& seat, Instant at) {
  CHECK(seat.busy, "connection {} is not busy", seat.id);
  seat.busy = false;
  seat.used = true;
  seat.free_since = at;
  --busy_;
  if (options_.mode == ConnectMode::kCold || closes_after_reply_ || !seat.channel->reusable()) {
    drop(seat.id);
  } else {
    idle_.push_back(seat.id);
  }
  serve_waiting();
  open_wanted();
}

bool Pool::may_open() const {
  return opening_ < kOpening &&
         (!options_.limit || static_cast<std::int64_t>(seats_.size()) < *options_.limit);
}

void Pool::open_wanted() {
  // Some spare ones where the number is open, so that a growing load finds them connected. None
  // after a failure: each refusal would ask for the next attempt, without pause.
  const bool spare_wanted = !options_.limit && options_.mode == ConnectMode::kReuse &&
                            prepare_left_ == 0 && !open_failed_;
  const std::size_t spare = spare_wanted ? 1 + static_cast<std::size_t>(busy_) / 16 : 0;
  while (may_open()) {
    const std::size_t wanted = queued_ + static_cast<std::size_t>(to_prepare_) + spare;
    const std::size_t coming = opening_ + (spare_wanted ? idle_.size() : 0);
    if (to_prepare_ > 0) {
      --to_prepare_;
    } else if (coming >= wanted) {
      return;
    }
    open_one();
  }
}

void Pool::open_one() {
  const std::int64_t id = next_id_;
  next_id_ += options_.connection_step;
  Seat& seat = seats_[id];
  seat.id = id;
  seat.channel = target_.channel(loop_);
  seat.channel->on_idle_closed([this, id] { on_idle_closed(id); });
  ++opening_;
  ++connects_;
  seat.channel->open([this, id](const OpenResult& result) { on_opened(id, result); });
}

void Pool::on_opened(std::int64_t id, const OpenResult& result) {
  --opening_;
  Seat& seat = seats_.at(id);
  seat.opened = result;
  seat.free_since = loop_.now();
  open_failed_ = !result.ok;
  // A cold connection whose request has left would never be used, yet count against the limit.
  const bool orphan = options_.mode == ConnectMode::kCold && queued_ == 0;
  if (result.ok && !orphan) {
    idle_.push_back(id);
  } else {
    drop(id);
  }
  if (prepare_left_ > 0) {
    if (result.ok) ++prepared_;
    if (!result.ok && prepare_error_.empty()) prepare_error_ = result.error;
    if (--prepare_left_ == 0) finish_prepare();
  } else if (!result.ok && queued_ > 0) {
    // The failure belongs to the request that has waited longest: it is what its connection came
    // to.
    take_waiting()(nullptr, &result, result.error);
  }
  serve_waiting();
  open_wanted();
}

void Pool::finish_prepare() {
  const auto done = std::move(prepare_done_);
  prepare_done_ = nullptr;
  if (done) done(prepared_, prepare_error_);
}

void Pool::on_idle_closed(std::int64_t id) {
  // Replaced when it is next needed: at once would hammer a server that closes what it accepts.
  std::erase(idle_, id);
  note_unannounced_close(seats_.at(id));
  drop(id);
}

void Pool::serve_waiting() {
  while (queued_ > 0) {
    Seat* const seat = take_idle();
    if (seat == nullptr) return;
    // Fresh: nobody used it, and this request was already waiting while it was opened.
    take_waiting()(seat, seat->used ? nullptr : &seat->opened, {});
  }
}

Seat* Pool::take_idle() {
  while (!idle_.empty()) {
    Seat& seat = seats_.at(idle_.back());
    idle_.pop_back();
    if (!seat.channel->reusable()) {
      drop(seat.id);
      continue;
    }
    seat.busy = true;
    ++busy_;
    return &seat;
  }
  return nullptr;
}

void Pool::drop(std::int64_t id) { seats_.erase(id); }

}  // namespace assay
