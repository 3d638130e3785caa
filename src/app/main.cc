#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "app/commands.h"
#include "app/world.h"

namespace {

void write_all(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

int main(int argc, char** argv) {
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
  return static_cast<int>(assay::run_app(world));
}
