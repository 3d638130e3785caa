#include "engine/net/stamp.h"

#include <cstdint>
#include <optional>

#include "base/core/time.h"

namespace assay {

Stamp map_by_age(std::optional<std::int64_t> kernel_real_ns, std::int64_t real_now_ns, Instant now,
                 Instant floor) {
  if (kernel_real_ns) {
    const Instant mapped = now - Duration(real_now_ns - *kernel_real_ns);
    if (mapped >= floor && mapped <= now) return {mapped, now, StampSource::kKernel};
  }
  return {now, now, StampSource::kUser};
}

}  // namespace assay
