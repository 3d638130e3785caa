// What this binary is: its version and the commit that it was built from. Written by the build.
#pragma once

namespace assay {
const char* version_number();
/// Short commit hash, "-dirty" appended when the tree had changes; "unknown" outside a checkout.
const char* version_commit();
}  // namespace assay
