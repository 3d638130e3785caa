#include "base/core/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace assay::internal {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "assay: bug: CHECK(%s) failed at %s:%d%s%s\n", condition, file, line,
               message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace assay::internal
