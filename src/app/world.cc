#include "app/world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "base/core/check.h"
#include "base/core/result.h"

namespace assay {

bool World::colours() const { return out_is_terminal && env("NO_COLOR").value_or("").empty(); }

ExitCode report_errors(World& world, const Errors& errors) {
  CHECK(!errors.empty());
  for (const Error& error : errors) world.err(fmt::format("assay: {}\n", error.text()));
  for (const ExitCode code : {ExitCode::kUsage, ExitCode::kPreflight, ExitCode::kUnreachable}) {
    if (std::ranges::any_of(errors, [code](const Error& e) { return e.code == code; })) return code;
  }
  return errors.front().code;
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const auto refuse = [&path](int error) {
    return usage_error(fmt::format("can't be read: {}", std::generic_category().message(error)),
                       path);
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refuse(errno);
  std::string text;
  std::array<char, 65536> buffer{};
  ssize_t n = 0;
  while ((n = read(fd, buffer.data(), buffer.size())) > 0 && text.size() <= bytes_max) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const int error = n < 0 ? errno : 0;
  close(fd);
  if (error != 0) return refuse(error);
  if (text.size() > bytes_max) {
    return usage_error(fmt::format("is larger than the {} bytes that are read", bytes_max), path);
  }
  return text;
}

}  // namespace assay
