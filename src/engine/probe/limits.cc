#include "engine/probe/limits.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>

#include "base/core/result.h"

namespace assay {
namespace {

/// Ledger, loops, pipes, standard streams: far fewer, rounded up.
constexpr std::int64_t kOwnDescriptors = 64;

std::int64_t raise_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

std::int64_t local_ports() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  std::int64_t first = 32768;
  std::int64_t last = 60999;
  if (range >> first >> last) return last - first + 1;
  return 60999 - 32768 + 1;  // the kernel's default
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

HostLimits read_limits() {
  return {.descriptors = raise_descriptors(), .ports = local_ports(), .cores = usable_cores()};
}

Result<> check_connections(const HostLimits& limits, std::int64_t connections,
                           std::int64_t addresses, Transport transport) {
  if (connections > limits.descriptors - kOwnDescriptors) {
    return fail(
        {ExitCode::kPreflight,
         fmt::format("{} connections need {} file descriptors, but this process may open {}",
                     connections, connections + kOwnDescriptors, limits.descriptors),
         "--connections",
         fmt::format(
             "raise the hard limit (`ulimit -Hn`, or LimitNOFILE= of the unit), or use at most {}",
             std::max<std::int64_t>(0, limits.descriptors - kOwnDescriptors))});
  }
  if (transport == Transport::kTcp && connections > limits.ports * addresses) {
    return fail(
        {ExitCode::kPreflight,
         fmt::format(
             "{} connections need as many local ports, but there are {} towards {} address(es)",
             connections, limits.ports * addresses, addresses),
         "--connections",
         fmt::format("widen net.ipv4.ip_local_port_range, or use at most {}",
                     limits.ports * addresses)});
  }
  return {};
}

}  // namespace assay
