// What a run will do, worked out from the spec before anything is sent: how many workers share it
// and why, when warm-up ends and the schedule stops, and how requests are numbered. Request i goes
// to worker i mod workers, so a schedule does not depend on who plays it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/core/time.h"
#include "domain/spec/spec.h"

namespace assay {

struct LoadPlan {
  bool open_loop = false;
  int workers = 1;
  std::string workers_why;                  // one sentence, stored with the run
  std::int64_t slots = 0;                   // closed loop: concurrency
  std::optional<std::int64_t> connections;  // null: unlimited
  std::optional<std::int64_t> queue_depth;  // null: unlimited
  Duration warmup_time{0};                  // warm-up ends at this offset …
  std::int64_t warmup_requests = 0;      // … or after that many requests, whichever the spec gave
  std::optional<Duration> duration;      // of steady
  std::optional<std::int64_t> requests;  // of steady
  Duration drain{0};  // what is still in flight that long after the last send is cancelled

  /// Worker w's part of `total`.
  [[nodiscard]] std::int64_t share(std::int64_t total, int worker) const {
    return total / workers + (worker < total % workers ? 1 : 0);
  }
};

/// `cores` this process may use.
LoadPlan plan_load(const Spec& spec, int cores);

}  // namespace assay
