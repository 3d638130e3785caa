#include "app/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/core/time.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"

namespace assay {
namespace {

/// Arrivals of an open loop in its steady phase: the same walk as the run's.
std::int64_t walked_requests(const LoadSpec& load, double rate, Duration duration,
                             std::uint64_t seed) {
  ArrivalWalk walk(load.arrival, rate, seed);
  const Duration warmup = load.warmup.time.value_or(Duration(0));
  std::int64_t warmup_left = load.warmup.requests.value_or(0);
  Duration at = walk.next();
  while (warmup_left > 0 || at < warmup) {
    --warmup_left;
    at = walk.next();
  }
  const Duration end = at + duration;
  const std::int64_t limit = load.requests.value_or(std::numeric_limits<std::int64_t>::max());
  std::int64_t count = 0;
  for (; at < end && count < limit; at = walk.next()) ++count;
  return count;
}

struct Planned {
  std::optional<std::int64_t> requests;  // null: the server's speed decides
  const char* how = "";                  // "about ", "at most "
};

Planned planned_requests(const Spec& spec) {
  const LoadSpec& load = spec.load;
  if (!load.duration) return {load.requests, ""};
  if (!load.rate) return {load.requests, "at most "};
  // Beyond this many arrivals the count is told from the rate instead of walked.
  constexpr double kWalkedMax = 1e6;
  const double steady = *load.rate * to_seconds(*load.duration);
  const double warmup = *load.rate * to_seconds(load.warmup.time.value_or(Duration(0))) +
                        static_cast<double>(load.warmup.requests.value_or(0));
  if (steady + warmup <= kWalkedMax) {
    return {walked_requests(load, *load.rate, *load.duration, spec.run.seed), ""};
  }
  const auto about = static_cast<std::int64_t>(steady);
  return {std::min(about, load.requests.value_or(about)), "about "};
}

std::string plan_line(const char* what, const std::string& value) {
  return fmt::format("# {:<15} {}\n", what, value);
}

/// Tokens of `requests` prompts or replies, or of each one.
std::string tokens(const LengthSpec& length, const Planned& planned) {
  const bool fixed = length.kind == LengthSpec::Kind::kFixed;
  const char* about = fixed ? planned.how : "about ";
  if (!planned.requests) {
    return fmt::format("{}{:.0f} per request", about, mean_tokens(length));
  }
  return fmt::format("{}{:.0f}", about,
                     mean_tokens(length) * static_cast<double>(*planned.requests));
}

}  // namespace

std::string dry_run_text(const Spec& spec) {
  const Planned planned = planned_requests(spec);
  const std::string requests =
      planned.requests
          ? fmt::format("{}{}", planned.how, *planned.requests)
          : fmt::format("as many as {} slots finish in {}", spec.load.concurrency.value_or(0),
                        format_duration(spec.load.duration.value_or(Duration(0))));
  const std::string input = spec.workload.prompt.empty() ? tokens(spec.workload.input, planned)
                                                         : "those of your prompt, each time";
  return "# Dry run: nothing is sent. Planned after warm-up:\n" + plan_line("requests:", requests) +
         plan_line("prompt tokens:", input) +
         plan_line("output tokens:", tokens(spec.workload.output, planned)) + spec_to_yaml(spec);
}

}  // namespace assay
