// What a target's stream says, freed of dialect and wire: one TokenEvent per event of the stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

/// Token counts as the server told them, wherever it put them.
struct Usage {
  std::optional<std::int64_t> prompt, cached, output, reasoning;
  [[nodiscard]] bool any() const { return prompt || cached || output || reasoning; }
};

/// Views point into the read buffer and die with the call that hands the event over.
struct TokenEvent {
  bool malformed = false;  // not understood: skipped and counted
  bool end = false;        // [DONE] or the like
  bool whole = false;      // an unstreamed reply: all at once, so its first token was not seen
  bool error = false;      // an error object, an error string or `event: error` inside a 200
  std::string_view error_code, error_text;

  std::string_view text;       // visible output, all choices joined
  std::string_view reasoning;  // reasoning output
  bool tool = false;           // names or arguments of a tool call
  std::uint32_t tool_bytes = 0;
  std::optional<std::uint32_t> tokens;  // in this event, where token ids or logprobs tell

  std::string_view finish_reason;  // of the last choice that ended in this event
  std::uint32_t choices_finished = 0;
  Usage usage;

  /// Does it carry generated output? A role-only or empty delta does not.
  [[nodiscard]] bool has_output() const {
    return !text.empty() || !reasoning.empty() || tool || (tokens && *tokens > 0);
  }
};

}  // namespace assay
