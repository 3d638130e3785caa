// Splits a command's arguments by a table of flags and prints its help from the same table. Values
// stay text: what they mean is for others to say. All problems are collected, none stops the rest.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace assay {

struct Flag {
  std::string_view name;      // "--rate"
  std::string_view argument;  // placeholder; empty: a switch
  std::string_view group;     // heading in --help
  std::string_view fallback;  // default as shown; empty: none is shown
  std::string_view help;
};

struct Arguments {
  std::vector<std::pair<std::string, std::string>> flags;  // in order; a switch has the empty text
  std::vector<std::string> bare;
  Errors errors;

  [[nodiscard]] bool has(std::string_view flag) const;
  /// The last value given, or `fallback`.
  [[nodiscard]] std::string value(std::string_view flag, std::string_view fallback = {}) const;
};

/// Takes "--flag value", "--flag=value", "--" before bare arguments, and -h for --help.
Arguments split_arguments(std::span<const std::string> args, std::span<const Flag> known);

/// The flags in their groups, at most 100 columns wide.
std::string help_text(std::span<const Flag> flags);

}  // namespace assay
