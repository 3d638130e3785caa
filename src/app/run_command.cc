#include "app/run_command.h"

namespace assay {

ExitCode run_command(World& world, const Spec& /*spec*/, const RunOptions& /*options*/) {
  world.err("assay: this build has no load engine\n");
  return ExitCode::kInternal;
}

}  // namespace assay
