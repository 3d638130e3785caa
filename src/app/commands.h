// The subcommands, one file each. Each takes its arguments from `args` (the command's name left
// out), answers on World's writers and gives the exit code.
#pragma once

#include <span>
#include <string>

#include "app/world.h"

namespace assay {

/// The whole command line: finds the command, or answers --help and --version.
ExitCode run_app(World& world);

ExitCode run_main(World& world, std::span<const std::string> args);
ExitCode report_main(World& world, std::span<const std::string> args);
ExitCode audit_main(World& world, std::span<const std::string> args);
ExitCode sim_main(World& world, std::span<const std::string> args);
ExitCode sim_run_main(World& world, std::span<const std::string> args);
ExitCode sim_serve_main(World& world, std::span<const std::string> args);

}  // namespace assay
