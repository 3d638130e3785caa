#include "engine/probe/cpu_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/text.h"

namespace assay {
namespace {

double used_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::optional<double> busy_seconds(std::string_view proc_stat, double ticks_per_s) {
  // proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kIoWait = 4;
  constexpr std::size_t kFields = 8;
  const std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (!line.starts_with("cpu ")) return std::nullopt;
  std::int64_t ticks = 0;
  std::size_t field = 0;
  for (const std::string_view word : split(line.substr(4), ' ')) {
    if (word.empty() || field == kFields) continue;
    const std::optional<std::int64_t> count = parse_int(word);
    if (!count) return std::nullopt;
    if (field != kIdle && field != kIoWait) ticks += *count;
    ++field;
  }
  if (field < kFields) return std::nullopt;
  return static_cast<double>(ticks) / ticks_per_s;
}

std::optional<CpuUse> read_cpu_use() {
  std::ifstream file("/proc/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::optional<double> host = busy_seconds(line, static_cast<double>(sysconf(_SC_CLK_TCK)));
  if (!host) return std::nullopt;
  return CpuUse{.host_s = *host, .own_s = used_s(RUSAGE_SELF) + used_s(RUSAGE_CHILDREN)};
}

}  // namespace assay
