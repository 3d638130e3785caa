#include "app/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"

namespace assay {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kHelpColumn = 24;

const Flag* find_flag(std::span<const Flag> known, std::string_view name) {
  const auto found = std::ranges::find(known, name, &Flag::name);
  return found == known.end() ? nullptr : &*found;
}

Error unknown_flag(std::string_view name, std::span<const Flag> known) {
  std::vector<std::string_view> names;
  for (const Flag& flag : known) names.push_back(flag.name);
  const std::optional<std::string_view> near = nearest_word(name, names);
  return {ExitCode::kUsage, "is not a flag of this command", std::string(name),
          near ? fmt::format("did you mean {}?", *near) : std::string("--help lists them")};
}

/// Appends `text` in words from kHelpColumn on; the cursor stands at `column`.
void append_wrapped(std::string& out, std::size_t column, std::string_view text) {
  for (const std::string_view word : split(text, ' ')) {
    if (column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(kHelpColumn - 1, ' ');
      column = kHelpColumn - 1;
    }
    out += ' ';
    out += word;
    column += 1 + word.size();
  }
  out += '\n';
}

}  // namespace

bool Arguments::has(std::string_view flag) const {
  return std::ranges::any_of(flags, [flag](const auto& given) { return given.first == flag; });
}

std::string Arguments::value(std::string_view flag, std::string_view fallback) const {
  std::string last(fallback);
  for (const auto& [name, text] : flags) {
    if (name == flag) last = text;
  }
  return last;
}

Arguments split_arguments(std::span<const std::string> args, std::span<const Flag> known) {
  Arguments out;
  bool flags_end = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i] == "-h" ? std::string_view("--help") : args[i];
    if (flags_end || !arg.starts_with('-') || arg == "-") {
      out.bare.emplace_back(arg);
      continue;
    }
    if (arg == "--") {
      flags_end = true;
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    const Flag* flag = find_flag(known, name);
    if (flag == nullptr) {
      out.errors.push_back(unknown_flag(name, known));
      // A value behind an unknown flag would otherwise read as a bare argument.
      const bool value_follows = equals == std::string_view::npos && i + 1 < args.size() &&
                                 !args[i + 1].starts_with('-') &&
                                 args[i + 1].find(':') == std::string::npos;
      if (value_follows) ++i;
    } else if (flag->argument.empty()) {
      if (equals != std::string_view::npos) {
        out.errors.push_back({ExitCode::kUsage, "takes no value", std::string(name), ""});
      } else {
        out.flags.emplace_back(name, "");
      }
    } else if (equals != std::string_view::npos) {
      out.flags.emplace_back(name, arg.substr(equals + 1));
    } else if (i + 1 < args.size() && find_flag(known, args[i + 1]) == nullptr) {
      out.flags.emplace_back(name, args[++i]);
    } else {
      out.errors.push_back({ExitCode::kUsage,
                            fmt::format("needs a value: {} {}", name, flag->argument),
                            std::string(name), ""});
    }
  }
  return out;
}

std::string help_text(std::span<const Flag> flags) {
  std::string out;
  std::string_view group;
  for (const Flag& flag : flags) {
    if (flag.group != group) {
      out += fmt::format("\n{}:\n", flag.group);
      group = flag.group;
    }
    const std::string head =
        fmt::format("  {}{}{}", flag.name, flag.argument.empty() ? "" : " ", flag.argument);
    out += head;
    std::size_t column = head.size();
    if (column < kHelpColumn - 1) {
      out += std::string(kHelpColumn - 1 - column, ' ');
      column = kHelpColumn - 1;
    }
    const std::string fallback =
        flag.fallback.empty() ? std::string() : fmt::format(" [{}]", flag.fallback);
    append_wrapped(out, column, std::string(flag.help) + fallback);
  }
  return out;
}

}  // namespace assay
