// From a scripted reply and one request to what the wire will carry: a pure function, so that cases
// can be played in memory as well as behind a socket. Steps without a wait between them become one
// send; `wait: 0` parts two sends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "engine/sim/script.h"

namespace assay {

/// What a reply may depend on.
struct AskedReply {
  std::int64_t max_tokens = 16;
  bool stream = true;
  bool include_usage = false;
  bool chat = true;    // false: the completions dialect
  std::string model;   // as the request names it
  std::string prompt;  // all texts of the request joined by newlines, for assertions
};

/// Reads `body` leniently: what is missing keeps its default.
AskedReply read_asked_reply(std::string_view target, std::string_view body);

struct Playback {
  struct Send {
    Duration at{0};  // since the request was complete
    std::string bytes;
  };
  std::vector<Send> sends;
  /// What becomes of the connection after the last send, and when; empty: it carries the next
  /// request.
  std::optional<LastStep> last;
  Duration last_at{0};

  /// All bytes in order.
  [[nodiscard]] std::string wire() const;
};

Playback compose(const Reply& reply, const AskedReply& asked);

}  // namespace assay
