#include "app/progress_line.h"

#include <fmt/format.h>

#include <string>

#include "app/world.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "engine/load/plan.h"
#include "engine/load/run.h"

namespace assay {
namespace {

constexpr Duration kLogEvery = 10s;

std::string load_text(const Spec& spec) {
  if (spec.load.rate)
    return fmt::format("{:g} requests/s, {}", *spec.load.rate, arrival_name(spec.load.arrival));
  return fmt::format("closed loop of {}", spec.load.concurrency.value_or(0));
}

std::string extent_text(const LoadPlan& plan) {
  std::string text;
  if (plan.warmup_requests > 0)
    text = fmt::format("{} requests of warm-up, then ", plan.warmup_requests);
  if (plan.warmup_time > Duration(0))
    text = fmt::format("{} of warm-up, then ", format_duration(plan.warmup_time));
  if (plan.duration) text += format_duration(*plan.duration);
  if (plan.duration && plan.requests) text += " or ";
  if (plan.requests) text += fmt::format("{} requests", *plan.requests);
  return text;
}

}  // namespace

ProgressLine::ProgressLine(World& world, const Spec& spec, const LoadPlan& plan) : world_(world) {
  const std::string where = spec.target.urls.empty() ? "the null target" : spec.target.urls.front();
  world_.err(fmt::format("assay: {} on {}: {}\n", load_text(spec), where, extent_text(plan)));
}

void ProgressLine::show(const Progress& p) {
  const std::string text =
      fmt::format("{:>6.1f} s  {}  {} scheduled, {} in flight, {} ok, {} failed",
                  to_seconds(p.elapsed), p.phase, p.scheduled, p.in_flight, p.ok, p.failed);
  if (world_.err_is_terminal) {
    world_.err(fmt::format("\r\x1b[K{}", text));
  } else if (p.elapsed >= next_log_) {
    if (next_log_ > Duration(0)) world_.err(fmt::format("assay: {}\n", text));
    next_log_ = p.elapsed + kLogEvery;
  }
}

void ProgressLine::clear() {
  if (world_.err_is_terminal) world_.err("\r\x1b[K");
}

}  // namespace assay
