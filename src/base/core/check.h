// CHECK: assertions for bugs. They stay on in release builds, print the condition, the place and a
// formatted message, and abort. The failures of the outside world are never CHECKed: they are data
// or a Result.
#pragma once

#include <fmt/core.h>

#include <string>

namespace assay::internal {
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace assay::internal

#define CHECK(condition, ...)                                         \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::assay::internal::check_failed(#condition, __FILE__, __LINE__, \
                                      ::fmt::format("" __VA_ARGS__)); \
    }                                                                 \
  } while (false)
