#include "options.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/text.h"

namespace assay {
namespace {

[[noreturn]] void stop(const std::string& sentence) {
  fmt::print(stderr, "{}\n", sentence);
  std::exit(2);
}

bool read_value(const BenchOption& option, std::string_view text) {
  if (auto* const* number = std::get_if<std::int64_t*>(&option.into)) {
    const std::optional<std::int64_t> value = parse_int(text);
    if (value) **number = *value;
    return value && *value >= 0;
  }
  if (auto* const* duration = std::get_if<Duration*>(&option.into)) {
    const std::optional<Duration> value = parse_duration(text);
    if (value) **duration = *value;
    return value.has_value();
  }
  *std::get<std::string*>(option.into) = text;
  return true;
}

}  // namespace

void read_options(int argc, char** argv, const std::vector<BenchOption>& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const BenchOption* found = nullptr;
    for (const BenchOption& option : options) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr) {
      std::string known;
      for (const BenchOption& option : options) known += fmt::format(" {}", option.name);
      stop(fmt::format("{} is no option of this program; it knows{}", name, known));
    }
    if (i + 1 >= argc) stop(fmt::format("{} needs a value", name));
    if (!read_value(*found, argv[i + 1])) {
      stop(fmt::format(
          "{}: \"{}\" is not a value for it: give a whole number, or a time such as 50ms", name,
          argv[i + 1]));
    }
  }
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Duration process_cpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto whole = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return whole(usage.ru_utime) + whole(usage.ru_stime);
}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void must_set(int fd, int level, int option, int value) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0) {
    stop(fmt::format("socket option {} of level {} failed: {}", option, level,
                     std::strerror(errno)));
  }
}

}  // namespace assay
