#include "engine/sim/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/core/check.h"
#include "base/core/math.h"
#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/sim/emission.h"
#include "engine/sim/event_heap.h"
#include "engine/sim/scheduler.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/stream_table.h"

namespace assay {
namespace {

using internal::BatchScheduler;
using internal::EngineParts;
using internal::Event;
using internal::EventKind;
using internal::ServerScheduler;
using internal::Stream;
using internal::StreamState;

using Scheduler = std::variant<ServerScheduler, BatchScheduler>;

Scheduler make_scheduler(EngineParts& parts) {
  if (const auto* servers = std::get_if<ServersSpec>(&parts.spec.engine)) {
    return ServerScheduler(parts, *servers);
  }
  return BatchScheduler(parts, std::get<BatchSpec>(parts.spec.engine));
}

std::uint8_t wire_flag(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSlowLoris:
      return kWireSlowLoris;
    case FaultKind::kComments:
      return kWireComments;
    case FaultKind::kCrLf:
      return kWireCrLf;
    case FaultKind::kSplitUtf8:
      return kWireSplitUtf8;
    default:
      return 0;
  }
}

}  // namespace

SimCore::SimCore(const SimSpec& spec, std::uint64_t seed)
    : parts_(spec, seed), length_draws_(seed, "output"), scheduler_(make_scheduler(parts_)) {
  for (std::size_t i = 0; i < spec.faults.size(); ++i) {
    fault_draws_.emplace_back(seed, fmt::format("faults/{}", i));
  }
}

StreamId SimCore::submit(Duration now, const SimRequest& request) {
  const Duration engine_now = parts_.clock.to_engine(now);
  const StreamId id = parts_.streams.add();
  Stream& stream = parts_.streams.at(id);
  stream.index = static_cast<std::uint64_t>(counts_.arrived++);
  stream.arrived = now;
  stream.prompt_tokens = request.prompt_tokens;
  stream.tokens = draw_length(stream.index, request.output_tokens);
  if (!parts_.spec.faults.empty()) choose_faults(stream);
  if (stream.fault != nullptr && stream.fault->kind == FaultKind::kHttpError) {
    refuse(id, engine_now, *stream.fault);
    return id;
  }
  const Duration tokenizing = parts_.spec.cold.tokenizer * request.prompt_tokens;
  if (tokenizing.count() > 0) {
    parts_.events.push(engine_now + tokenizing, EventKind::kArrive, id);
  } else {
    arrive(id, engine_now);
  }
  return id;
}

std::int64_t SimCore::draw_length(std::uint64_t index, std::int64_t asked) const {
  const OutputSpec& output = parts_.spec.output;
  switch (output.kind) {
    case OutputSpec::Kind::kAsked:
      return std::max<std::int64_t>(1, asked);
    case OutputSpec::Kind::kFixed:
      return static_cast<std::int64_t>(output.tokens);
    case OutputSpec::Kind::kGeometric: {
      if (output.tokens <= 1) return 1;
      // By inversion: the least n with 1 − (1 − 1/mean)^n above a uniform draw.
      Draws draws = length_draws_.at(index);
      const double log_stay = exact_log(1 - 1 / output.tokens);
      return 1 + static_cast<std::int64_t>(exact_log(1 - draws.uniform()) / log_stay);
    }
  }
  return 1;
}

void SimCore::choose_faults(Stream& stream) {
  const auto nth = static_cast<std::int64_t>(stream.index) + 1;
  for (std::size_t i = 0; i < parts_.spec.faults.size(); ++i) {
    const FaultRule& rule = parts_.spec.faults[i];
    bool hit = rule.nth == nth || (rule.every && nth % *rule.every == 0);
    if (rule.share) {
      Draws draws = fault_draws_[i].at(stream.index);
      hit = draws.uniform() < *rule.share;
    }
    if (!hit) continue;
    if (const std::uint8_t wire = wire_flag(rule.kind)) {
      stream.wire |= wire;
      if (rule.kind == FaultKind::kSlowLoris) stream.pause = rule.pause;
    } else if (rule.kind == FaultKind::kMalformed) {
      if (stream.broken == nullptr) stream.broken = &rule;
    } else if (stream.fault == nullptr) {
      stream.fault = &rule;
    }
  }
}

void SimCore::arrive(StreamId id, Duration now) {
  const bool room = std::visit([](const auto& s) { return s.has_room(); }, scheduler_);
  if (!room) {
    ++counts_.refused;
    return refuse(id, now, parts_.spec.refusal);
  }
  if (parts_.spec.tokens.head == TokenSpec::Head::kAccepted) {
    parts_.events.push(now, EventKind::kHead, id);
  }
  std::visit([&](auto& s) { s.arrive(id, now); }, scheduler_);
}

void SimCore::refuse(StreamId id, Duration now, const FaultRule& why) {
  Stream& stream = parts_.streams.at(id);
  stream.state = StreamState::kRefused;
  stream.fault = &why;
  parts_.events.push(now, EventKind::kRefuse, id);
}

std::optional<Duration> SimCore::next() {
  if (parts_.events.empty()) return std::nullopt;
  return parts_.clock.to_wall(parts_.events.top().at);
}

void SimCore::step(std::vector<Emission>& out) {
  const Event event = parts_.events.pop();
  if (event.kind != EventKind::kStep && parts_.streams.find(event.stream) == nullptr) return;
  const std::size_t before = out.size();
  switch (event.kind) {
    case EventKind::kArrive:
      arrive(event.stream, event.at);
      return;
    case EventKind::kHead:
      parts_.streams.send_head(event.stream, parts_.clock.to_wall(event.at), out);
      return;
    case EventKind::kRefuse:
      parts_.streams.send_refusal(event.stream, parts_.clock.to_wall(event.at), out);
      if (out.back().fault != &parts_.spec.refusal) ++counts_.faulted;
      parts_.streams.remove(event.stream);
      return;
    case EventKind::kTokens:
    case EventKind::kStep:
      std::visit([&](auto& s) { s.on_event(event.stream, event.at, out); }, scheduler_);
  }
  for (std::size_t i = before; i < out.size(); ++i) {
    if ((out[i].flags & kEmitEnd) != 0) ++counts_.ended;
    if ((out[i].flags & kEmitFault) != 0) ++counts_.faulted;
  }
}

void SimCore::cancel(Duration now, StreamId id) {
  const Stream* const stream = parts_.streams.find(id);
  if (stream == nullptr) return;
  ++counts_.cancelled;
  const bool inside =
      stream->state == StreamState::kWaiting || stream->state == StreamState::kServed;
  if (!inside) return parts_.streams.remove(id);
  const Duration engine_now = parts_.clock.to_engine(now);
  std::visit([&](auto& s) { s.leave(id, engine_now); }, scheduler_);
}

std::int64_t SimCore::waiting() const {
  return std::visit([](const auto& s) { return s.waiting(); }, scheduler_);
}

std::int64_t SimCore::served() const {
  return std::visit([](const auto& s) { return s.served(); }, scheduler_);
}

SimEngine::SimEngine(Loop& loop, const SimSpec& spec, std::uint64_t seed)
    : loop_(loop), start_(loop.now()), core_(spec, seed) {}

SimEngine::~SimEngine() { loop_.cancel(timer_); }

StreamId SimEngine::submit(const SimRequest& request, SimStream& stream) {
  catch_up();
  const StreamId id = core_.submit(loop_.now() - start_, request);
  const auto slot = static_cast<std::uint32_t>(id);
  if (listeners_.size() <= slot) listeners_.resize(std::size_t{slot} + 1);
  listeners_[slot] = &stream;
  arm();
  return id;
}

void SimEngine::cancel(StreamId id) {
  catch_up();
  core_.cancel(loop_.now() - start_, id);
  for (Pending& pending : pending_) {
    if (pending.emission.stream == id) pending.listener = nullptr;
  }
  arm();
}

void SimEngine::catch_up() {
  const Duration now = loop_.now() - start_;
  for (;;) {
    const std::optional<Duration> next = core_.next();
    if (!next || *next > now) return;
    made_.clear();
    core_.step(made_);
    // The listener is looked up now: the slot of a stream that has ended may be taken again before
    // its last emission is delivered.
    for (const Emission& emission : made_) {
      pending_.push_back({emission, listeners_[static_cast<std::uint32_t>(emission.stream)]});
    }
  }
}

void SimEngine::on_timer() {
  timer_ = 0;
  catch_up();
  // A stream may submit, cancel and be cancelled from inside its call.
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending pending = pending_[i];
    if (pending.listener != nullptr) pending.listener->on_emission(pending.emission);
  }
  pending_.clear();
  arm();
}

void SimEngine::arm() {
  const std::optional<Duration> next = core_.next();
  if (pending_.empty() && !next) return;
  const Instant when = pending_.empty() ? start_ + *next : loop_.now();
  if (timer_ != 0 && armed_for_ <= when) return;
  loop_.cancel(timer_);
  armed_for_ = when;
  timer_ = loop_.at(when, [this] { on_timer(); });
}

}  // namespace assay
