// The process's surroundings as a value: arguments, environment, output, clocks. Commands reach the
// outside through it alone, so that the whole command line runs inside a test.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"

namespace assay {

struct World {
  std::vector<std::string> args;  // without the program's name
  std::function<std::optional<std::string>(const std::string& name)> env;
  std::function<void(std::string_view text)> out;  // results
  std::function<void(std::string_view text)> err;  // progress, warnings, errors
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  Clocks clocks;
  std::stop_token stop;  // asked for: end as if interrupted

  /// May `out` carry colours? On a terminal, unless NO_COLOR is set to anything.
  [[nodiscard]] bool colours() const;
};

/// Prints "assay: <place>: <problem> (<remedy>)" on err, one line per error, and gives the exit
/// code of the gravest by the precedence 2 > 7 > 3 > all else.
ExitCode report_errors(World& world, const Errors& errors);

/// At most `bytes_max` of a file, or an error that names it.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = 1 << 24);

}  // namespace assay
