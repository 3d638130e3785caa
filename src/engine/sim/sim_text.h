// What a simulated engine reads and writes: real words, so that a local tokenizer can count them. A
// token of output is a blank and a word; a token of input is a run of letters and digits, or one
// other character that is no blank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/sim/emission.h"

namespace assay {

/// Appends tokens first … first + count − 1 of a stream's reply.
void append_sim_tokens(std::string& out, StreamId stream, std::int64_t first, std::int64_t count);
/// Cuts the next token off the front of `rest`; empty when only blanks are left.
std::string_view next_sim_token(std::string_view& rest);
/// At least 1.
std::int64_t count_sim_tokens(std::string_view text);

}  // namespace assay
