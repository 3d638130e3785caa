// What this machine lets a load generator do: file descriptors, local ports, cores. Read-only but
// for one thing: the soft descriptor limit is raised to the hard one.
#pragma once

#include <cstdint>

#include "base/core/result.h"

namespace assay {

struct HostLimits {
  std::int64_t descriptors = 0;  // hard limit, and after read_limits() the soft one too
  std::int64_t ports = 0;        // local ports for connections to one address and port
  int cores = 1;                 // that this process may run on
};

/// Raises the soft descriptor limit on its way.
HostLimits read_limits();

/// Can so many connections be open at once to that many addresses? kPreflight with reason and
/// remedy if not. Unix sockets need no ports.
enum class Transport { kTcp, kUnix };
Result<> check_connections(const HostLimits& limits, std::int64_t connections,
                           std::int64_t addresses, Transport transport);

}  // namespace assay
