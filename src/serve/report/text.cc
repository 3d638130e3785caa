#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "serve/report/lines.h"
#include "serve/report/report.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

constexpr std::size_t kMostLines = 30;
constexpr std::size_t kLinesAfterFailures = 5;  // thresholds, instrument, next (2), ledger
constexpr double kRuleBookTtftMs = 350;
constexpr double kRuleBookTpotMs = 15;

/// Four significant digits where there are decimals, whole numbers whole.
std::string show(double x) {
  if (!std::isfinite(x)) return "…";
  const double size = std::abs(x);
  if (size == 0) return "0";
  if (size >= 1000) return fmt::format("{:.0f}", x);
  if (size >= 100) return fmt::format("{:.1f}", x);
  if (size >= 10) return fmt::format("{:.2f}", x);
  return fmt::format("{:.3f}", x);
}

/// "1 request", "2 requests".
std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string show(const MaybeNumber& x) { return x ? show(*x) : "–"; }

std::string show(const MaybeInterval& range) {
  if (!range) return "";
  return fmt::format("[{}, {}]", show(range->low), show(range->high));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string show(const Percentile& p) {
  if (p.at_least) return ">= " + show(*p.at_least);
  return show(p.value);
}

std::string show(const LengthSpec& length) {
  switch (length.kind) {
    case LengthSpec::Kind::kFixed:
      return fmt::format("{:.0f}", length.a);
    case LengthSpec::Kind::kUniform:
      return fmt::format("{:.0f}–{:.0f}", length.a, length.b);
    case LengthSpec::Kind::kLogNormal:
      return fmt::format("lognormal {:g}, {:g}", length.a, length.b);
  }
  return "";
}

std::string show(const Extent& extent) {
  if (extent.time) return format_duration(*extent.time);
  return counted(extent.requests.value_or(0), "request");
}

void add_verdict(Lines& lines, const Measurement& m) {
  std::string verdict = m.validity.valid ? "VALID" : "INVALID";
  std::vector<std::string> parts;
  if (m.run.state != "complete") parts.push_back(m.run.state);
  if (!m.steady) parts.emplace_back("NOT STEADY");
  parts.push_back(m.run.server.empty() ? m.run.model : m.run.server + " " + m.run.model);
  parts.push_back(m.run.api);
  if (!m.run.urls.empty()) parts.push_back(m.run.urls.front());
  if (m.run.urls.size() > 1) parts.push_back(fmt::format("{} more", m.run.urls.size() - 1));
  lines.add(verdict, parts,
            !m.validity.valid ? Paint::kBad
            : m.steady        ? Paint::kGood
                              : Paint::kWarn);
  for (const Check& check : m.validity.checks) {
    if (check.kind != CheckKind::kMust || check.status != CheckStatus::kFail) continue;
    lines.add("",
              {fmt::format("{} {} {} (limit {}): {}", check.name, show(check.value), check.unit,
                           show(check.limit), check.advice)},
              Paint::kBad);
  }
}

void add_asked(Lines& lines, const Measurement& m) {
  const LoadSpec& load = m.spec.load;
  std::vector<std::string> parts;
  if (load.rate) {
    parts.push_back(fmt::format("open loop, {:g}/s {}", *load.rate, arrival_name(load.arrival)));
  } else {
    parts.push_back(fmt::format("closed loop, {} in flight (latency under back-pressure)",
                                load.concurrency.value_or(0)));
  }
  if (load.think > Duration{0}) parts.push_back("think " + format_duration(load.think));
  if (m.spec.workload.prompt.empty()) {
    parts.push_back(fmt::format("{} tokens in, {} out", show(m.spec.workload.input),
                                show(m.spec.workload.output)));
  } else {
    parts.push_back(
        fmt::format("one prompt of yours, {} tokens out", show(m.spec.workload.output)));
  }
  const bool warm = load.warmup.requests.value_or(0) > 0 || load.warmup.time.value_or(0s) > 0s;
  parts.push_back(warm ? "warm-up " + show(load.warmup) : "no warm-up");
  if (load.requests) parts.push_back(counted(*load.requests, "request"));
  if (load.duration) parts.push_back(format_duration(*load.duration));
  if (load.connections) parts.push_back(counted(*load.connections, "connection"));
  if (load.queue_depth) parts.push_back(fmt::format("queue {}", *load.queue_depth));
  lines.add("asked", parts);
}

/// Seconds for a sentence: four digits, no zeros at the end.
std::string seconds(double s) {
  return s >= 1000 ? fmt::format("{:.0f}", s) : fmt::format("{:.4g}", s);
}

void add_got(Lines& lines, const Measurement& m) {
  const std::string window = m.run.window_s ? ", window " + seconds(*m.run.window_s) + " s" : "";
  std::vector<std::string> parts{fmt::format(
      "{} in {} s{}", counted(m.requests.scheduled, "request"), seconds(m.run.duration_s), window)};
  for (std::size_t i = 0; i < m.requests.outcomes.size(); ++i) {
    const std::int64_t n = m.requests.outcomes.at(i);
    if (n > 0) parts.push_back(fmt::format("{} {}", n, outcome_name(static_cast<Outcome>(i))));
  }
  lines.add("got", parts);
}

std::string table_row(std::string_view name, const std::array<std::string, 6>& cells) {
  std::string row = pad_right(name, 16);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t width = i == 4 ? 24 : i == 5 ? 10 : 12;
    row += pad_left(cells.at(i), width);
  }
  return row;
}

void add_row(Lines& lines, std::string_view name, const Distribution& d) {
  if (d.n == 0) return;
  const auto& p = d.percentiles;
  lines.add_raw(table_row(name, {show(d.mean), show(p[kP50]), show(p[kP90]), show(p[kP99]),
                                 show(p[kP99].interval), fmt::format("{}", d.n)}));
}

/// What the dashes in the table mean, with the n that they need.
void add_table_notes(Lines& lines, const Measurement& m) {
  std::vector<std::string> parts;
  const Distribution& ttft = m.latency.ttft_ms.n > 0 ? m.latency.ttft_ms : m.latency.e2e_ms;
  for (const std::size_t i : {kP50, kP90, kP99}) {
    const Percentile& p = ttft.percentiles.at(i);
    if (ttft.n > 0 && ttft.n < p.needs) {
      parts.push_back(
          fmt::format("{} needs n ≥ {}, have {}", kPercentileNames.at(i), p.needs, ttft.n));
    }
  }
  const Percentile& p99 = ttft.percentiles[kP99];
  if (m.steady && p99.value && !p99.interval) {
    parts.push_back(fmt::format("no p99 interval: {} values that hang together are worth {:.0f}",
                                ttft.n, ttft.effective_n));
  }
  if (m.latency.e2e_ms.censored > 0) {
    parts.push_back(
        fmt::format("{} cut off: counted as at least what they took", m.latency.e2e_ms.censored));
  }
  lines.add("", parts, Paint::kDim);
  if (m.latency.itl_ms.n == 0 && m.spec.target.stream && m.latency.ttft_ms.n > 0) {
    lines.add("", {"no ITL: " + m.latency.itl_ms.why_null}, Paint::kDim);
  } else if (m.latency.itl_left_out > 0) {
    lines.add("",
              {fmt::format("ITL without {} replies whose tokens per chunk are not known",
                           m.latency.itl_left_out)},
              Paint::kDim);
  }
}

void add_table(Lines& lines, const Measurement& m) {
  const Latency& l = m.latency;
  if (l.e2e_ms.n == 0 && l.ttft_ms.n == 0) return;
  lines.add_raw(table_row("ms", {"mean", "p50", "p90", "p99", "p99 95 % interval", "n"}));
  add_row(lines, "TTFT", l.ttft_ms);
  add_row(lines, "  from send", l.service_ttft_ms);
  if (m.tokens.reasoning.value_or(0) > 0) add_row(lines, "TTFO", l.ttfo_ms);
  add_row(lines, "TPOT", l.tpot_ms);
  if (l.itl_ms.n > 0) {
    add_row(lines, "ITL", l.itl_ms);
  } else {
    add_row(lines, "ICL (chunks)", l.icl_ms);
  }
  add_row(lines, "worst gap", l.worst_gap_ms);
  add_row(lines, "E2E", l.e2e_ms);
  if (!m.spec.target.stream) add_row(lines, "  from send", l.service_e2e_ms);
  add_table_notes(lines, m);
}

std::string rate_text(const Rate& rate, std::string_view unit) {
  if (!rate.value) return "";
  const std::string range = show(rate.interval);
  return fmt::format("{} {}{}{}", show(*rate.value), unit, range.empty() ? "" : " ", range);
}

std::string whole_run_text(const Rate& rate, std::string_view unit) {
  return rate.value ? "whole run " + show(*rate.value) + std::string(unit) : "";
}

/// "planned 5120, server 5300 (+18 each)": the chat template of each request, where it explains the
/// difference, else the difference.
std::string prompt_agreement(const Tokens& tokens) {
  if (tokens.prompt_planned_counted.value_or(0) <= 0) return "";
  constexpr double kExplained = 0.005;
  const auto planned = static_cast<double>(*tokens.prompt_planned_counted);
  const auto counted = static_cast<double>(*tokens.prompt_server_planned);
  const std::int64_t each = tokens.template_per_request.value_or(0);
  const double templates = static_cast<double>(each * tokens.prompts_counted);
  const bool explained = each > 0 && counted - planned - templates <= kExplained * planned;
  return fmt::format("planned {:.0f}, server {:.0f} ({})", planned, counted,
                     explained ? fmt::format("+{} each", each)
                               : fmt::format("{:+.1f} %", 100 * (counted / planned - 1)));
}

void add_rates(Lines& lines, const Measurement& m) {
  const Throughput& t = m.throughput;
  const Throughput& whole = m.whole_run;
  lines.add("output", {rate_text(t.output_tokens_per_s, "tokens/s"),
                       whole_run_text(whole.output_tokens_per_s,
                                      t.output_tokens_per_s.value ? "" : " tokens/s"),
                       rate_text(t.per_gpu_tokens_per_s, "tokens/s per GPU"),
                       rate_text(t.per_user_tokens_per_s, "tokens/s per user")});
  std::string cached;
  if (m.tokens.cached && m.tokens.prompt_server.value_or(0) > 0) {
    cached = "cache hits " + percent(static_cast<double>(*m.tokens.cached) /
                                     static_cast<double>(*m.tokens.prompt_server));
  }
  lines.add(
      "input",
      {rate_text(t.input_tokens_per_s, "tokens/s"),
       t.input_tokens_per_s.value ? "" : whole_run_text(whole.input_tokens_per_s, " tokens/s"),
       prompt_agreement(m.tokens), cached});
  std::string tokens = fmt::format("{} by {}", counted(m.tokens.output.value_or(0), "output token"),
                                   m.tokens.source);
  if (m.tokens.source == "none") tokens = "output tokens unknown: the server sent no usage";
  lines.add("ended ok",
            {rate_text(t.requests_per_s, "requests/s"),
             whole_run_text(whole.requests_per_s, t.requests_per_s.value ? "" : " requests/s"),
             m.requests.ok > 0 ? tokens : ""});
}

void add_goodput(Lines& lines, const Measurement& m) {
  const Goodput& g = m.goodput;
  if (g.slo.empty() || !g.good_share) return;
  std::vector<std::string> parts{
      fmt::format("{} good {}", percent(*g.good_share),
                  g.good_share_interval
                      ? fmt::format("[{:.1f}, {:.1f}]", 100 * g.good_share_interval->low,
                                    100 * g.good_share_interval->high)
                      : ""),
      rate_text(g.good_rps, "/s")};
  bool all_met = true;
  for (const SloResult& slo : g.slo) {
    all_met = all_met && slo.met;
    parts.push_back(fmt::format("{} ≤ {:g} ms: {} of {:g} % {}", slo_metric_name(slo.metric),
                                slo.limit_ms, percent(slo.share.value_or(0)), 100 * slo.target,
                                slo.met ? "met" : "NOT MET"));
  }
  lines.add("goodput", parts, all_met ? Paint::kPlain : Paint::kWarn);
}

void add_split(Lines& lines, const Measurement& m) {
  const TtftSplit& s = m.ttft_split;
  if (s.n == 0) return;
  lines.add("TTFT is",
            {fmt::format("client wait {} ms", show(s.client_wait_ms)),
             fmt::format("connect {}", show(s.connect_ms)),
             fmt::format("send lag {}", show(s.send_lag_ms)),
             fmt::format("server queue + prefill {} (not separable)", show(s.to_first_token_ms))});
}

void add_failures(Lines& lines, const Measurement& m) {
  std::size_t shown = 0;
  std::int64_t others = m.requests.failed + m.requests.refused;
  for (const FailureClass& failure : m.requests.failures) {
    if (lines.left(kMostLines) <= kLinesAfterFailures + 1 || shown == 4) break;
    ++shown;
    others -= failure.count;
    lines.add(shown == 1 ? "failed" : "",
              {fmt::format("{} × {}{}{}", failure.count, outcome_name(failure.outcome),
                           failure.code.empty() ? "" : " " + failure.code,
                           failure.example.empty() ? "" : ": " + failure.example)},
              Paint::kWarn);
  }
  if (shown < m.requests.failures.size()) {
    lines.add(shown == 0 ? "failed" : "",
              {shown == 0 ? fmt::format("{}: see --format json", counted(others, "request"))
                          : fmt::format("and {} of other kinds", others)},
              shown == 0 ? Paint::kWarn : Paint::kPlain);
  }
}

std::string threshold(std::string_view name, const Distribution& d, double limit_ms) {
  const MaybeNumber& p50 = d.percentiles[kP50].value ? d.percentiles[kP50].value : d.mean;
  if (!p50) return "";
  return fmt::format("{} {} {} ms, asked < {:g} ms: {}", name,
                     d.percentiles[kP50].value ? "p50" : "mean", show(*p50), limit_ms,
                     *p50 < limit_ms ? "met" : "not met");
}

void add_instrument(Lines& lines, const Measurement& m) {
  const Client& c = m.client;
  const auto lag = [](std::string_view name, const LagSummary& summary) {
    return summary.p99 ? fmt::format("{} p99 {} us", name, show(*summary.p99)) : std::string();
  };
  lines.add("client",
            {lag("send lag", c.send_lag_us), lag("receive lag", c.receive_lag_us),
             c.kernel_stamp_share ? "kernel stamps " + percent(*c.kernel_stamp_share) : "",
             c.busy_share ? fmt::format("busy {} of {}", percent(*c.busy_share),
                                        counted(c.workers.value_or(0), "worker"))
                          : "",
             counted(c.events, "event")});
}

void add_next(Lines& lines, const Measurement& m) {
  std::vector<std::string> looks;
  for (const Finding& finding : m.findings) {
    if (finding.name != "errors") looks.push_back(finding.text);
  }
  for (const Check& check : m.validity.checks) {
    const bool advisory = check.kind == CheckKind::kAdvisory;
    // A finding says it already.
    const bool said = check.name == "short_replies";
    if (!advisory || said || check.status != CheckStatus::kFail) continue;
    looks.push_back(fmt::format("{} {} (limit {}): {}", check.name, show(check.value),
                                show(check.limit), check.advice));
  }
  for (std::size_t i = 0; i < looks.size() && lines.left(kMostLines) > 1; ++i) {
    lines.add(i == 0 ? "look at" : "", {looks[i]}, Paint::kWarn);
  }
}

}  // namespace

std::string render_text(const Measurement& m, const TextStyle& style) {
  Lines lines(style);
  const bool rule_book = !m.spec.workload.prompt.empty() && m.requests.scheduled == 1;
  if (rule_book && m.latency.ttft_ms.mean && m.latency.ttft_ms.censored == 0) {
    lines.add_raw(fmt::format("TTFT: {:.1f} ms", *m.latency.ttft_ms.mean));
  }
  add_verdict(lines, m);
  add_asked(lines, m);
  add_got(lines, m);
  add_table(lines, m);
  add_rates(lines, m);
  add_goodput(lines, m);
  add_split(lines, m);
  add_failures(lines, m);
  lines.add("rule book", {threshold("TTFT", m.latency.ttft_ms, kRuleBookTtftMs),
                          threshold("TPOT", m.latency.tpot_ms, kRuleBookTpotMs)});
  add_instrument(lines, m);
  add_next(lines, m);
  const std::string_view command = m.run.simulated ? "assay sim run" : "assay run";
  lines.add("ledger", {m.run.file, fmt::format("repeat with {} --from {}", command, m.run.file)});
  lines.keep(kMostLines);
  return lines.text();
}

}  // namespace assay
