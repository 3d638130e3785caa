#include "engine/sim/sim_spec.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/core/json_writer.h"
#include "base/core/time.h"
#include "engine/sim/distribution.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, kFaultKindCount> kFaultNames = {
    "http_error",  "error_object", "error_string", "error_event", "reset", "half_open", "close",
    "missing_end", "malformed",    "slow_loris",   "comments",    "crlf",  "split_utf8"};

constexpr std::array kSimFlags = std::to_array<SimFlag>({
    {"--servers", "servers", "N", "1", "servers, each with one request at a time"},
    {"--service", "service", "DIST", "none",
     "time that a whole reply takes: det:50ms, exp:50ms, lognormal:50ms,0.5 (median, sigma), "
     "gamma:50ms,0.7 (mean, coefficient of variation), table:FILE"},
    {"--ttft", "ttft", "DIST", "det:50ms", "instead of --service: time to the first token"},
    {"--gap", "gap", "DIST", "det:10ms", "instead of --service: time of each further token"},
    {"--batch", "batch_max", "N", "none",
     "instead of servers: continuous batching of up to N streams"},
    {"--queue", "queue", "N", "unlimited", "requests that may wait; more are refused with 503"},
});

void write_engine(const SimSpec& spec, JsonWriter& json) {
  if (const auto* servers = std::get_if<ServersSpec>(&spec.engine)) {
    json.field("servers", servers->servers);
    if (servers->service) {
      json.field("service", servers->service->text());
    } else {
      json.field("ttft", servers->ttft.text()).field("gap", servers->gap.text());
    }
    json.key("slow").begin_object();
    json.field("servers", servers->slow_servers).field("factor", servers->slow_factor);
    json.end_object();
    return;
  }
  const auto& batch = std::get<BatchSpec>(spec.engine);
  json.field("batch_max", batch.batch_max);
  json.field("step", format_duration(batch.step_base));
  json.field("step_per_stream", format_duration(batch.step_per_stream));
  json.field("prefill_per_token", format_duration(batch.prefill_per_token));
}

void write_fault(const FaultRule& rule, JsonWriter& json) {
  json.begin_object();
  json.field("do", fault_name(rule.kind));
  if (rule.nth) json.field("nth", *rule.nth);
  if (rule.every) json.field("every", *rule.every);
  if (rule.share) json.field("share", *rule.share);
  json.field("after", rule.after).field("status", rule.status);
  json.field("retry_after", format_duration(rule.retry_after));
  json.field("pause", format_duration(rule.pause));
  json.end_object();
}

std::string output_text(const OutputSpec& output) {
  switch (output.kind) {
    case OutputSpec::Kind::kFixed:
      return fmt::format("fixed:{}", static_cast<std::int64_t>(output.tokens));
    case OutputSpec::Kind::kGeometric:
      return fmt::format("geometric:{}", output.tokens);
    case OutputSpec::Kind::kAsked:
      break;
  }
  return "asked";
}

void write_stalls(const SimSpec& spec, JsonWriter& json) {
  if (!spec.random_stalls) {
    json.key("stalls").begin_array();
    for (const StallSpec& stall : spec.stalls) {
      json.begin_object();
      json.field("at", format_duration(stall.at)).field("for", format_duration(stall.length));
      json.end_object();
    }
    json.end_array();
    return;
  }
  json.key("random_stalls").begin_object();
  json.field("every", spec.random_stalls->every.text());
  json.field("for", spec.random_stalls->length.text());
  json.end_object();
}

}  // namespace

std::string_view fault_name(FaultKind kind) { return kFaultNames[static_cast<std::size_t>(kind)]; }

std::span<const SimFlag> sim_flags() { return kSimFlags; }

std::string sim_spec_to_json(const SimSpec& spec) {
  constexpr std::array<std::string_view, 3> kHeads = {"accepted", "served", "first"};
  constexpr std::array<std::string_view, 3> kUsages = {"none", "end", "each"};
  JsonWriter json;
  json.begin_object();
  json.field("model", spec.model);
  write_engine(spec, json);
  if (spec.queue) json.field("queue", *spec.queue);
  json.key("refuse").begin_object();
  json.field("status", spec.refusal.status);
  json.field("retry_after", format_duration(spec.refusal.retry_after)).end_object();
  json.field("output", output_text(spec.output));
  const TokenSpec& tokens = spec.tokens;
  json.key("tokens").begin_object();
  json.field("per_chunk", tokens.per_chunk).field("role", tokens.role);
  json.field("reasoning", tokens.reasoning);
  json.field("head", kHeads[static_cast<std::size_t>(tokens.head)]);
  json.field("usage", kUsages[static_cast<std::size_t>(tokens.usage)]).end_object();
  json.key("cold").begin_object();
  json.field("first_call", format_duration(spec.cold.first_call));
  json.field("tokenizer", format_duration(spec.cold.tokenizer));
  json.field("new_length", format_duration(spec.cold.new_length));
  json.field("length_step", spec.cold.length_step).end_object();
  write_stalls(spec, json);
  json.key("faults").begin_array();
  for (const FaultRule& rule : spec.faults) write_fault(rule, json);
  json.end_array().end_object();
  return json.take();
}

}  // namespace assay
