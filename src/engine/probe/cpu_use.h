// CPU time of the whole machine and of this process with its ended children: what is left over is
// somebody else's, and disturbs a measurement.
#pragma once

#include <optional>
#include <string_view>

namespace assay {

struct CpuUse {
  double host_s = 0;  // of all cores, all processes and interrupts; stolen time included
  double own_s = 0;   // of this process, and of its children that ended
};

/// Null where the machine doesn't tell.
std::optional<CpuUse> read_cpu_use();
/// Seconds in the "cpu" line of /proc/stat, given the clock ticks per second.
std::optional<double> busy_seconds(std::string_view proc_stat, double ticks_per_s);

}  // namespace assay
