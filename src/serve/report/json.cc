#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/text.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "serve/report/report.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

/// Nine significant digits: more than any figure is worth, few enough that the last bits of an
/// elementary function don't show.
double rounded(double x) {
  if (!std::isfinite(x)) return x;
  return parse_number(fmt::format("{:.9g}", x)).value_or(x);
}

void number(JsonWriter& json, std::string_view key, const MaybeNumber& x) {
  json.key(key);
  if (x) {
    json.value(rounded(*x));
  } else {
    json.null();
  }
}

void interval(JsonWriter& json, std::string_view key, const MaybeInterval& range) {
  json.key(key);
  if (!range) {
    json.null();
    return;
  }
  json.begin_array().value(rounded(range->low)).value(rounded(range->high)).end_array();
}

void write_run(JsonWriter& json, const RunFacts& run) {
  json.key("run").begin_object();
  json.field("file", run.file).field("state", run.state).field("model", run.model);
  json.field("api", run.api).field("started", run.started);
  number(json, "duration_s", run.duration_s);
  number(json, "window_s", run.window_s);
  number(json, "offered_rps", run.offered_rps);
  json.field("seed", run.seed).field("salt", run.salt).field("server", run.server);
  json.key("urls").begin_array();
  for (const std::string& url : run.urls) json.value(url);
  json.end_array().end_object();
}

std::string_view status_name(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return "pass";
    case CheckStatus::kFail:
      return "fail";
    case CheckStatus::kSkipped:
      break;
  }
  return "skipped";
}

void write_validity(JsonWriter& json, const Validity& validity) {
  json.key("validity").begin_object();
  json.field("verdict", validity.valid ? "valid" : "invalid").key("checks").begin_array();
  for (const Check& check : validity.checks) {
    json.begin_object().field("name", check.name).field("must", check.kind == CheckKind::kMust);
    json.field("status", status_name(check.status));
    number(json, "value", check.value);
    number(json, "limit", check.limit);
    json.field("unit", check.unit).field("advice", check.advice).end_object();
  }
  json.end_array().end_object();
}

void write_findings(JsonWriter& json, const std::vector<Finding>& findings) {
  json.key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().field("name", finding.name).field("text", finding.text).end_object();
  }
  json.end_array();
}

void write_requests(JsonWriter& json, const Requests& requests) {
  json.key("requests").begin_object();
  json.field("scheduled", requests.scheduled).field("sent", requests.sent);
  json.field("ok", requests.ok).field("failed", requests.failed);
  json.field("refused", requests.refused).key("outcomes").begin_object();
  for (std::size_t i = 0; i < requests.outcomes.size(); ++i) {
    json.field(outcome_name(static_cast<Outcome>(i)), requests.outcomes.at(i));
  }
  json.end_object().key("failures").begin_array();
  for (const FailureClass& failure : requests.failures) {
    json.begin_object().field("outcome", outcome_name(failure.outcome));
    json.field("code", failure.code).field("count", failure.count);
    json.field("example", failure.example).end_object();
  }
  json.end_array().end_object();
}

void write_distribution(JsonWriter& json, std::string_view key, const Distribution& d) {
  json.key(key);
  if (d.n == 0) {
    json.null();
    return;
  }
  json.begin_object().field("n", d.n).field("censored", d.censored);
  number(json, "mean", d.mean);
  interval(json, "mean_ci", d.mean_interval);
  number(json, "min", d.min);
  number(json, "max", d.max);
  for (std::size_t i = 0; i < d.percentiles.size(); ++i) {
    number(json, kPercentileNames.at(i), d.percentiles.at(i).value);
    interval(json, std::string(kPercentileNames.at(i)) + "_ci", d.percentiles.at(i).interval);
  }
  json.key("at_least").begin_object();
  for (std::size_t i = 0; i < d.percentiles.size(); ++i) {
    const MaybeNumber& bound = d.percentiles.at(i).at_least;
    if (bound) number(json, kPercentileNames.at(i), bound);
  }
  if (d.max_at_least) number(json, "max", d.max_at_least);
  json.end_object().key("needs_n").begin_object();
  for (std::size_t i = 0; i < d.percentiles.size(); ++i) {
    const Percentile& p = d.percentiles.at(i);
    if (d.n < p.needs) json.field(kPercentileNames.at(i), p.needs);
  }
  json.end_object();
  number(json, "effective_n", d.effective_n);
  json.end_object();
}

void write_latency(JsonWriter& json, const Measurement& m) {
  const Latency& l = m.latency;
  const std::vector<std::pair<std::string_view, const Distribution*>> all{
      {"ttft_ms", &l.ttft_ms},
      {"ttfo_ms", &l.ttfo_ms},
      {"tpot_ms", &l.tpot_ms},
      {"itl_ms", &l.itl_ms},
      {"icl_ms", &l.icl_ms},
      {"worst_gap_ms", &l.worst_gap_ms},
      {"e2e_ms", &l.e2e_ms},
      {"tail_ms", &l.tail_ms},
      {"service_ttft_ms", &l.service_ttft_ms},
      {"service_e2e_ms", &l.service_e2e_ms}};
  json.key("latency").begin_object();
  for (const auto& [key, distribution] : all) write_distribution(json, key, *distribution);
  json.key("why_null").begin_object();
  for (const auto& [key, distribution] : all) {
    if (distribution->n == 0) json.field(key, distribution->why_null);
  }
  json.end_object();
  json.field("population", m.steady ? "steady" : "whole_run");
  json.field("itl_requests", l.itl_requests).field("itl_requests_left_out", l.itl_left_out);
  json.field("itl_gaps_spread", l.itl_spread);
  json.field("tpot_first_assumed", l.tpot_first_assumed);
  number(json, "tokens_per_chunk", l.tokens_per_chunk);
  number(json, "chunks_per_read", l.chunks_per_read);
  json.end_object();
}

void write_rates(JsonWriter& json, const Throughput& t) {
  const std::vector<std::pair<std::string, const Rate*>> all{
      {"output_tokens_per_s", &t.output_tokens_per_s},
      {"input_tokens_per_s", &t.input_tokens_per_s},
      {"effective_tokens_per_s", &t.effective_tokens_per_s},
      {"requests_per_s", &t.requests_per_s},
      {"per_user_tokens_per_s", &t.per_user_tokens_per_s},
      {"per_gpu_tokens_per_s", &t.per_gpu_tokens_per_s}};
  for (const auto& [key, rate] : all) {
    number(json, key, rate->value);
    interval(json, key + "_ci", rate->interval);
  }
}

void write_goodput(JsonWriter& json, const Goodput& goodput) {
  json.key("goodput").begin_object();
  number(json, "good_rps", goodput.good_rps.value);
  interval(json, "good_rps_ci", goodput.good_rps.interval);
  number(json, "good_share", goodput.good_share);
  interval(json, "good_share_ci", goodput.good_share_interval);
  const bool asked = !goodput.slo.empty();
  json.field("good", asked ? MaybeCount(goodput.good) : std::nullopt);
  json.field("cohort", asked ? MaybeCount(goodput.cohort) : std::nullopt);
  json.key("slo").begin_object();
  for (const SloResult& slo : goodput.slo) {
    json.key(slo_metric_name(slo.metric)).begin_object();
    number(json, "limit_ms", slo.limit_ms);
    number(json, "target_share", slo.target);
    number(json, "share", slo.share);
    interval(json, "share_ci", slo.share_interval);
    json.field("met", slo.met).field("null_passed", slo.null_passed).end_object();
  }
  json.end_object().end_object();
}

void write_tokens(JsonWriter& json, const Tokens& tokens) {
  json.key("tokens").begin_object().field("source", tokens.source);
  json.field("output", tokens.output).field("prompt_planned", tokens.prompt_planned);
  json.field("prompt_server", tokens.prompt_server).field("cached", tokens.cached);
  json.field("prompt_planned_counted", tokens.prompt_planned_counted);
  json.field("template_per_request", tokens.template_per_request);
  number(json, "cached_per_request", tokens.cached_per_request);
  json.field("reasoning", tokens.reasoning).key("replies_by_source").begin_object();
  for (const auto& [name, count] : tokens.replies_by_source) json.field(name, count);
  json.end_object().end_object();
}

void write_lag(JsonWriter& json, std::string_view key, const LagSummary& lag) {
  json.key(key).begin_object().field("n", lag.n);
  number(json, "p50", lag.p50);
  number(json, "p90", lag.p90);
  number(json, "p99", lag.p99);
  number(json, "p99_9", lag.p99_9);
  number(json, "max", lag.max);
  json.end_object();
}

void write_client(JsonWriter& json, const Client& client) {
  json.key("client").begin_object();
  write_lag(json, "send_lag_us", client.send_lag_us);
  write_lag(json, "receive_lag_us", client.receive_lag_us);
  number(json, "kernel_stamp_share", client.kernel_stamp_share);
  json.field("events", client.events);
  number(json, "events_per_read", client.events_per_read);
  number(json, "busy_share", client.busy_share);
  json.field("workers", client.workers).field("malformed_events", client.malformed);
  json.field("connects", client.connects).field("sent_again", client.sent_again);
  json.field("builder_stalls", client.builder_stalls);
  json.end_object();
}

}  // namespace

std::string render_json(const Measurement& m) {
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", "assay.report/1");
  write_run(json, m.run);
  write_validity(json, m.validity);
  write_findings(json, m.findings);
  write_requests(json, m.requests);
  write_latency(json, m);
  json.key("throughput").begin_object();
  write_rates(json, m.throughput);
  json.key("whole_run").begin_object();
  write_rates(json, m.whole_run);
  number(json, "duration_s", m.run.duration_s);
  json.end_object().end_object();
  write_goodput(json, m.goodput);
  write_tokens(json, m.tokens);
  write_client(json, m.client);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace assay
