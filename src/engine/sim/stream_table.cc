#include "engine/sim/stream_table.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/core/time.h"
#include "engine/sim/emission.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {
namespace {

/// Does a stream that ends so before its first token have a head?
bool answers(FaultKind kind) {
  return kind != FaultKind::kReset && kind != FaultKind::kHalfOpen && kind != FaultKind::kClose;
}

}  // namespace

StreamId StreamTable::add() {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(streams_.size());
    streams_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  const std::uint32_t generation = streams_[slot].generation;
  streams_[slot] = Stream{};
  streams_[slot].generation = generation;
  streams_[slot].state = StreamState::kArriving;
  return (static_cast<StreamId>(generation) << 32) | slot;
}

Stream* StreamTable::find(StreamId id) {
  const auto slot = static_cast<std::uint32_t>(id);
  if (slot >= streams_.size()) return nullptr;
  Stream& stream = streams_[slot];
  const bool lives = stream.state != StreamState::kFree && stream.generation == id >> 32;
  return lives ? &stream : nullptr;
}

void StreamTable::remove(StreamId id) {
  Stream& stream = at(id);
  stream.state = StreamState::kFree;
  ++stream.generation;
  free_.push_back(static_cast<std::uint32_t>(id));
}

std::int64_t StreamTable::next_chunk(const Stream& stream) const {
  std::int64_t end = stream.sent + (stream.sent == 0 ? 1 : spec_.tokens.per_chunk);
  end = std::min(end, stream.tokens);
  // One event holds reasoning or output, never both.
  if (stream.sent < spec_.tokens.reasoning) end = std::min(end, spec_.tokens.reasoning);
  if (stream.fault != nullptr && stream.fault->kind != FaultKind::kMissingEnd) {
    end = std::min(end, std::max(stream.sent, stream.fault->after));
  }
  return end - stream.sent;
}

Emission StreamTable::emission(StreamId id, const Stream& stream, Duration wall) const {
  Emission out;
  out.stream = id;
  out.at = wall;
  out.arrived = stream.arrived;
  out.started = stream.started;
  out.wire = stream.wire;
  out.pause = stream.pause;
  return out;
}

bool StreamTable::send_chunk(StreamId id, Duration wall, std::vector<Emission>& out) {
  Stream& stream = at(id);
  Emission e = emission(id, stream, wall);
  const std::int64_t chunk = next_chunk(stream);
  if (!stream.head_sent && (chunk > 0 || answers(stream.fault->kind))) {
    e.flags |= kEmitHead;
    if (spec_.tokens.role) e.flags |= kEmitRole;
    stream.head_sent = true;
  }
  if (stream.broken != nullptr && stream.sent + chunk > stream.broken->after) {
    e.flags |= kEmitMalformed;
    stream.broken = nullptr;
  }
  if (chunk > 0) {
    e.flags |= kEmitTokens;
    e.first_token = stream.sent;
    e.tokens = static_cast<std::uint32_t>(chunk);
    e.reasoning = stream.sent < spec_.tokens.reasoning;
    stream.sent += chunk;
  } else {
    e.flags |= kEmitFault;
    e.fault = stream.fault;
  }
  if (stream.sent >= stream.tokens && !e.last()) {
    if (stream.fault != nullptr && stream.fault->kind == FaultKind::kMissingEnd) {
      e.flags |= kEmitFault;
      e.fault = stream.fault;
    } else {
      e.flags |= kEmitFinish | kEmitEnd;
    }
  }
  out.push_back(e);
  return e.last();
}

void StreamTable::send_head(StreamId id, Duration wall, std::vector<Emission>& out) {
  Stream& stream = at(id);
  if (stream.head_sent) return;
  stream.head_sent = true;
  Emission e = emission(id, stream, wall);
  e.flags = kEmitHead;
  if (spec_.tokens.role) e.flags |= kEmitRole;
  out.push_back(e);
}

void StreamTable::send_refusal(StreamId id, Duration wall, std::vector<Emission>& out) {
  const Stream& stream = at(id);
  Emission e = emission(id, stream, wall);
  e.flags = kEmitFault;
  e.fault = stream.fault;
  out.push_back(e);
}

StreamId WaitingLine::pop(StreamTable& streams) {
  while (!line_.empty()) {
    const StreamId id = line_.front();
    line_.pop_front();
    if (streams.find(id) == nullptr) continue;
    --waiting_;
    return id;
  }
  return 0;
}

}  // namespace assay::internal
