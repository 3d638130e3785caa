#include "app/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/spec/parse.h"
#include "domain/workload/arrival.h"
#include "domain/workload/prompt.h"

namespace assay {
namespace {

// Beyond this many requests the tokens are told from the mean instead of drawn one by one.
constexpr std::int64_t kDrawnMax = 1'000'000;

/// Requests of an open loop up to `end`, or of a closed one where a count is asked for. Null where
/// the server's speed decides.
std::optional<std::int64_t> planned_requests(const Spec& spec) {
  const LoadSpec& load = spec.load;
  if (!load.rate || !load.duration) return load.requests;
  const double expected = *load.rate * to_seconds(*load.duration);
  if (expected > static_cast<double>(kDrawnMax)) {
    const auto rounded = static_cast<std::int64_t>(expected);
    return std::min(rounded, load.requests.value_or(rounded));
  }
  // Warm-up by time comes first on the same schedule.
  const Duration start = load.warmup.time.value_or(Duration(0));
  ArrivalWalk walk(load.arrival, *load.rate, spec.run.seed);
  std::int64_t warmup_left = load.warmup.requests.value_or(0);
  std::optional<Duration> first = load.warmup.requests ? std::nullopt : std::optional(start);
  std::int64_t count = 0;
  for (;;) {
    const Duration at = walk.next();
    if (warmup_left > 0) {
      --warmup_left;
      continue;
    }
    if (!first) first = at;
    if (at < *first) continue;
    if (at >= *first + *load.duration) break;
    if (load.requests && count == *load.requests) break;
    ++count;
  }
  return count;
}

std::string plan_line(const char* what, const std::string& value) {
  return fmt::format("# {:<16} {}\n", what, value);
}

std::string planned_tokens(const Spec& spec, std::int64_t requests) {
  const bool own_text = !spec.workload.prompt.empty();
  if (requests > kDrawnMax) {
    const auto count = static_cast<double>(requests);
    const std::string input =
        own_text ? std::string("unknown, your prompt each time")
                 : fmt::format("about {:.0f}", count * mean_tokens(spec.workload.input));
    return plan_line("prompt tokens:", input) +
           plan_line("output tokens:",
                     fmt::format("about {:.0f}", count * mean_tokens(spec.workload.output)));
  }
  const RandomStream inputs(spec.run.seed, "input lengths");
  const RandomStream outputs(spec.run.seed, "output lengths");
  std::int64_t input = 0, output = 0;
  for (std::int64_t i = 0; i < requests; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    input += draw_length(spec.workload.input, inputs.at(index));
    output += draw_length(spec.workload.output, outputs.at(index));
  }
  return plan_line("prompt tokens:", own_text ? std::string("unknown, your prompt each time")
                                              : fmt::format("{}", input)) +
         plan_line("output tokens:", fmt::format("{}", output));
}

}  // namespace

std::string dry_run_text(const Spec& spec) {
  std::string out = "# Dry run: nothing is sent. Planned after warm-up:\n";
  if (const std::optional<std::int64_t> requests = planned_requests(spec)) {
    const bool upper = !spec.load.rate && spec.load.duration.has_value();
    out += plan_line("requests:", fmt::format("{}{}", upper ? "at most " : "", *requests));
    out += planned_tokens(spec, *requests);
  } else {
    out += plan_line("requests:", fmt::format("as many as {} slots finish in {}",
                                              spec.load.concurrency.value_or(0),
                                              format_duration(spec.load.duration.value_or(0s))));
    const std::string input = spec.workload.prompt.empty()
                                  ? fmt::format("{:.0f}", mean_tokens(spec.workload.input))
                                  : std::string("your prompt");
    out += plan_line("prompt tokens:", input + " per request");
    out += plan_line("output tokens:",
                     fmt::format("{:.0f} per request", mean_tokens(spec.workload.output)));
  }
  return out + spec_to_yaml(spec);
}

}  // namespace assay
