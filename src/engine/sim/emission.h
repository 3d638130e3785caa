// What a simulated engine sends: one Emission per stream and instant. The in-process target and the
// socket server render the same emissions, each in its own way, in the order of the flags below.
#pragma once

#include <cstdint>

#include "base/core/time.h"
#include "engine/sim/sim_spec.h"

namespace assay {

/// Names a stream of one engine; never 0, never used twice.
using StreamId = std::uint64_t;

enum EmissionFlag : std::uint16_t {
  kEmitHead = 1,       // status 200 and headers
  kEmitRole = 2,       // the event with the role alone
  kEmitMalformed = 4,  // an event that is no JSON
  kEmitTokens = 8,     // `tokens` tokens from number `first_token` on, in one event
  kEmitFinish = 16,    // the finish reason (and the usage, as the spec's tokens.usage says)
  kEmitEnd = 32,       // [DONE] and the orderly end
  kEmitFault = 64,     // what `fault` says; the stream's last
};

enum WireFlag : std::uint8_t {
  kWireSlowLoris = 1,
  kWireComments = 2,
  kWireCrLf = 4,
  kWireSplitUtf8 = 8,
};

struct Emission {
  StreamId stream = 0;
  Duration at{0};                   // since the engine's start, when it is due
  Duration arrived{0}, started{0};  // of the request: taken in, served from (0 before)
  std::uint16_t flags = 0;
  std::uint8_t wire = 0;   // WireFlags, the same for a stream's whole life
  bool reasoning = false;  // of these tokens
  std::uint32_t tokens = 0;
  std::int64_t first_token = 0;
  const FaultRule* fault = nullptr;  // lives as long as the engine
  Duration pause{0};                 // between bytes, of kWireSlowLoris

  /// The stream's last: its id is dead after it.
  [[nodiscard]] bool last() const { return (flags & (kEmitEnd | kEmitFault)) != 0; }
};

}  // namespace assay
