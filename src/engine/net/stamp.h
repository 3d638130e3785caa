// When a read reached this host. The kernel stamps the last byte of a read on CLOCK_REALTIME;
// map_by_age turns that into a monotonic instant by its age, reading both clocks at the same
// recvmsg, so a step of the wall clock can touch only the reads in flight at that moment.
#pragma once

#include <cstdint>
#include <optional>

#include "base/core/time.h"

namespace assay {

enum class StampSource : std::uint8_t { kKernel, kUser };

struct Stamp {
  Instant at;    // when the bytes reached the host, as well as we know
  Instant user;  // when user space had them
  StampSource source = StampSource::kUser;
};

/// The kernel stamp `kernel_real_ns` (as the wall clock shows it) as a monotonic instant: now −
/// age. Used when not before `floor` (this socket's previous read; its send, for the first) and not
/// after `now`; else the user stamp stands.
Stamp map_by_age(std::optional<std::int64_t> kernel_real_ns, std::int64_t real_now_ns, Instant now,
                 Instant floor);

}  // namespace assay
