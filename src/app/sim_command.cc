#include <span>
#include <string>

#include "app/commands.h"
#include "app/world.h"
#include "base/core/result.h"

namespace assay {

ExitCode sim_main(World& world, std::span<const std::string> args) {
  if (!args.empty() && args.front() == "run") return sim_run_main(world, args.subspan(1));
  if (!args.empty() && args.front() == "serve") return sim_serve_main(world, args.subspan(1));
  if (!args.empty() && (args.front() == "--help" || args.front() == "-h")) {
    world.out(
        "The simulated engine.\n\n"
        "Usage: assay sim run [flags]      a load against it, in virtual time\n"
        "       assay sim serve [flags]    the engine, or a scripted server, behind a socket\n\n"
        "assay sim run --help and assay sim serve --help show the flags.\n");
    return ExitCode::kOk;
  }
  return report_errors(world, {{ExitCode::kUsage, "needs a subcommand", "sim",
                                "sim run simulates a load, sim serve serves one"}});
}

}  // namespace assay
