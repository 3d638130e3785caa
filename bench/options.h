// Command-line options of the benchmark programs: `--name value` pairs, read into variables that
// the caller names. Anything that is not understood ends the program with one sentence and exit
// code 2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/time.h"

namespace assay {

struct BenchOption {
  std::string_view name;  // with its dashes
  std::variant<std::int64_t*, Duration*, std::string*> into;
};

/// Fills the options from argv, or prints what is wrong and exits with 2.
void read_options(int argc, char** argv, const std::vector<BenchOption>& options);

/// Raises the soft limit of file descriptors to the hard one.
void raise_descriptor_limit();

/// User and system CPU time of this process so far.
Duration process_cpu();

/// CLOCK_MONOTONIC in nanoseconds.
std::int64_t monotonic_ns();

/// A socket option whose failure ends the program: without it the measurement would mislead.
void must_set(int fd, int level, int option, int value);

}  // namespace assay
