#include "engine/sim/scheduler.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "engine/sim/emission.h"
#include "engine/sim/event_heap.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/stream_table.h"

namespace assay::internal {
namespace {

Duration scaled(Duration d, double factor) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(d.count()) * factor + 0.5));
}

/// `whole` · part / parts, without overflow for parts below 2^31.
Duration portion(Duration whole, std::int64_t part, std::int64_t parts) {
  const std::int64_t each = whole.count() / parts;
  const std::int64_t rest = whole.count() % parts;
  return Duration(each * part + rest * part / parts);
}

}  // namespace

Duration EngineParts::cold_cost(const Stream& stream) {
  const ColdSpec& cold = spec.cold;
  Duration cost{0};
  if (!first_call_paid) cost += cold.first_call;
  first_call_paid = true;
  if (cold.new_length.count() > 0) {
    const std::int64_t bucket = (stream.prompt_tokens + cold.length_step - 1) / cold.length_step;
    if (lengths_seen.insert(bucket).second) cost += cold.new_length;
  }
  return cost;
}

void EngineParts::begin_service(StreamId id, Duration now) {
  Stream& stream = streams.at(id);
  stream.state = StreamState::kServed;
  stream.begin = now;
  stream.started = clock.to_wall(now);
  if (spec.tokens.head == TokenSpec::Head::kServed) events.push(now, EventKind::kHead, id);
}

ServerScheduler::ServerScheduler(EngineParts& parts, const ServersSpec& spec)
    : parts_(parts), spec_(spec) {
  for (auto server = static_cast<std::uint32_t>(spec.servers); server > 0; --server) {
    free_.push_back(server - 1);
  }
}

bool ServerScheduler::has_room() const {
  return !free_.empty() || !parts_.spec.queue || line_.waiting() < *parts_.spec.queue;
}

std::int64_t ServerScheduler::served() const {
  return spec_.servers - static_cast<std::int64_t>(free_.size());
}

void ServerScheduler::arrive(StreamId id, Duration now) {
  if (!free_.empty()) return serve(id, now);
  parts_.streams.at(id).state = StreamState::kWaiting;
  line_.push(id);
}

void ServerScheduler::serve(StreamId id, Duration now) {
  Stream& stream = parts_.streams.at(id);
  stream.server = free_.back();
  free_.pop_back();
  parts_.begin_service(id, now);
  const Duration cold = parts_.cold_cost(stream);
  if (spec_.service) {
    Draws draws = parts_.service_draws.at(stream.index);
    stream.service = spec_.service->draw(draws);
    if (stream.server < spec_.slow_servers) {
      stream.service = scaled(stream.service, spec_.slow_factor);
    }
  } else {
    stream.gaps = parts_.gap_draws.at(stream.index);
  }
  stream.begin = now + cold;
  arm_chunk(id, stream.begin);
}

void ServerScheduler::arm_chunk(StreamId id, Duration from) {
  Stream& stream = parts_.streams.at(id);
  // A fault stands in the place of one token.
  const std::int64_t count = std::max<std::int64_t>(1, parts_.streams.next_chunk(stream));
  Duration at = from;
  if (spec_.service) {
    at = stream.begin + portion(stream.service, stream.made + count, stream.tokens);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      const SimDistribution& wait = stream.made + i == 0 ? spec_.ttft : spec_.gap;
      const Duration drawn = wait.draw(stream.gaps);
      at += stream.server < spec_.slow_servers ? scaled(drawn, spec_.slow_factor) : drawn;
    }
  }
  stream.made += count;
  parts_.events.push(at, EventKind::kTokens, id);
}

bool ServerScheduler::on_event(StreamId id, Duration now, std::vector<Emission>& out) {
  if (!parts_.streams.send_chunk(id, parts_.clock.to_wall(now), out)) {
    arm_chunk(id, now);
    return false;
  }
  const std::uint32_t server = parts_.streams.at(id).server;
  parts_.streams.remove(id);
  free_server(server, now);
  return true;
}

void ServerScheduler::leave(StreamId id, Duration now) {
  const Stream stream = parts_.streams.at(id);
  parts_.streams.remove(id);
  if (stream.state == StreamState::kWaiting) line_.leave();
  if (stream.state == StreamState::kServed) free_server(stream.server, now);
}

void ServerScheduler::free_server(std::uint32_t server, Duration now) {
  free_.push_back(server);
  if (const StreamId next = line_.pop(parts_.streams)) serve(next, now);
}

bool BatchScheduler::has_room() const {
  if (!parts_.spec.queue) return true;
  // Whoever waits for the end of a step although the batch has room waits for no place.
  const std::int64_t places = spec_.batch_max - served();
  return line_.waiting() < places + *parts_.spec.queue;
}

void BatchScheduler::arrive(StreamId id, Duration now) {
  parts_.streams.at(id).state = StreamState::kWaiting;
  line_.push(id);
  if (!stepping_) begin_step(now);
}

void BatchScheduler::begin_step(Duration now) {
  Duration extra{0};
  while (served() < spec_.batch_max) {
    const StreamId id = line_.pop(parts_.streams);
    if (id == 0) break;
    parts_.begin_service(id, now);
    const Stream& stream = parts_.streams.at(id);
    extra += parts_.cold_cost(stream) + spec_.prefill_per_token * stream.prompt_tokens;
    batch_.push_back({id, next_due(id)});
  }
  stepping_ = !batch_.empty();
  if (!stepping_) return;
  const Duration step = spec_.step_base + spec_.step_per_stream * served() + extra;
  parts_.events.push(now + step, EventKind::kStep, 0);
}

std::int64_t BatchScheduler::next_due(StreamId id) const {
  // A fault stands in the place of one token.
  return step_ + std::max<std::int64_t>(1, parts_.streams.next_chunk(parts_.streams.at(id)));
}

bool BatchScheduler::on_event(StreamId /*step*/, Duration now, std::vector<Emission>& out) {
  ++step_;
  const Duration wall = parts_.clock.to_wall(now);
  std::size_t kept = 0;
  for (const Member member : batch_) {
    Member stays = member;
    if (member.due == step_) {
      if (parts_.streams.send_chunk(member.id, wall, out)) {
        parts_.streams.remove(member.id);
        continue;
      }
      stays.due = next_due(member.id);
    }
    batch_[kept++] = stays;
  }
  batch_.resize(kept);
  begin_step(now);
  return false;
}

void BatchScheduler::leave(StreamId id, Duration /*now*/) {
  const StreamState state = parts_.streams.at(id).state;
  parts_.streams.remove(id);
  if (state == StreamState::kWaiting) line_.leave();
  if (state == StreamState::kServed)
    std::erase_if(batch_, [id](const Member& member) { return member.id == id; });
}

}  // namespace assay::internal
