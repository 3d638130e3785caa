#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "app/commands.h"
#include "app/world.h"
#include "base/core/result.h"

namespace {

void write_all(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

/// A descriptor below 3 that came closed would be given to the ledger or a socket next, and what is
/// printed would end up there.
void occupy_standard_descriptors() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  assay::World world;
  world.args.assign(argv + (argc > 0 ? 1 : 0), argv + argc);
  world.env = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  world.out = [](std::string_view text) { write_all(stdout, text); };
  world.err = [](std::string_view text) { write_all(stderr, text); };
  world.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  world.err_is_terminal = isatty(STDERR_FILENO) == 1;
  const assay::ExitCode code = assay::run_app(world);
  if (std::ferror(stdout) == 0) return static_cast<int>(code);
  // What was asked for is lost: that must not look like success.
  assay::report_errors(world,
                       {{assay::ExitCode::kInternal, "what was to be printed can't be written",
                         "standard output", "free some space, or send it elsewhere"}});
  return static_cast<int>(code == assay::ExitCode::kOk ? assay::ExitCode::kInternal : code);
}
