#include "serve/report/audit.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/text.h"
#include "serve/report/lines.h"
#include "serve/report/report.h"
#include "study/doctor/audit.h"
#include "study/doctor/endpoint.h"

namespace assay {
namespace {

using MaybeFigure = std::optional<double>;

constexpr std::size_t kNameWidth = 24;

std::string show(const MaybeFigure& x) {
  if (!x || !std::isfinite(*x)) return "–";
  const double size = std::abs(*x);
  return fmt::format("{:.{}f}", *x, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/// Whole cells of a narrow table: us, or the unit is said.
std::string show_us(const MaybeFigure& ms) {
  if (!ms || !std::isfinite(*ms)) return "–";
  const double size = std::abs(*ms);
  if (size >= 1000) return fmt::format("{:.1f}s", *ms / 1e3);
  if (size >= 10) return fmt::format("{:.0f}ms", *ms);
  return fmt::format("{:.{}f}", *ms * 1e3, size >= 0.1 ? 0 : 1);
}

std::string show_share(const MaybeFigure& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "–";
}

std::string whole(const MaybeFigure& x) { return x ? fmt::format("{:.0f}", *x) : "–"; }

std::string row(std::string_view name, std::size_t width, const std::vector<std::string>& cells) {
  std::string out = pad_right(name, kNameWidth);
  for (const std::string& cell : cells) out += pad_left(cell, width);
  return out;
}

std::string trust_sentence(const Audit& audit) {
  if (audit.trust.streams == 0 || audit.trust.events_per_s == 0) {
    return "don't trust runs here: the instrument's own limits break on the lowest rung";
  }
  return fmt::format("trust runs up to {:.0f} events/s and {} streams here",
                     audit.trust.events_per_s, audit.trust.streams);
}

void add_instrument_table(Lines& lines, const Audit& audit) {
  constexpr std::size_t kWidth = 10;
  lines.add_raw(
      row("p99 in us", kWidth,
          {"streams", "events/s", "stamp err", "send lag", "recv lag", "kernel", "CPU s/M"}));
  for (const Rung& rung : audit.rungs) {
    lines.add_raw(row(rung.asked.name, kWidth,
                      {std::to_string(rung.asked.streams), whole(rung.events_per_s),
                       show(rung.stamp_error_p99_us), show(rung.send_lag_p99_us),
                       show(rung.receive_lag_p99_us), show_share(rung.kernel_stamp_share),
                       show(rung.cpu_s_per_m_events)}),
                  rung.limit_broken ? Paint::kWarn : Paint::kPlain);
  }
}

/// Of each figure its bias, p50, p99 and worst.
void add_error_table(Lines& lines, const Audit& audit) {
  constexpr std::size_t kWidth = 6;
  std::vector<std::string> head;
  for (const char* figure : {"TTFT", "ITL", "E2E"}) {
    head.emplace_back(figure);
    for (const char* part : {"p50", "p99", "max"}) head.emplace_back(part);
  }
  lines.add_raw(row("error in us, first bias", kWidth, head));
  for (const Rung& rung : audit.rungs) {
    std::vector<std::string> cells;
    for (const ErrorSummary* e : {&rung.ttft, &rung.itl, &rung.e2e}) {
      for (const MaybeFigure& ms : {e->bias_ms, e->p50_ms, e->p99_ms, e->max_ms}) {
        cells.push_back(show_us(ms));
      }
    }
    lines.add_raw(row(rung.asked.name, kWidth, cells));
  }
}

void add_stall(Lines& lines, const Audit& audit) {
  for (const Rung& rung : audit.rungs) {
    if (!rung.late) continue;
    lines.add("stall", {fmt::format("{} of {} requests late from schedule, {} of them told as late",
                                    *rung.late, rung.requests, *rung.late - *rung.late_untold),
                        fmt::format("the schedule slipped by {} us", show(rung.schedule_slip_us))});
  }
}

void add_broken(Lines& lines, const Audit& audit) {
  for (const Rung& rung : audit.rungs) {
    if (!rung.limit_broken) continue;
    const bool must = rung.asked.standing == Standing::kMust;
    lines.add(must ? "BROKEN" : "ends at", {rung.asked.name + ": " + *rung.limit_broken},
              must ? Paint::kBad : Paint::kWarn);
  }
}

double rounded(double x) { return parse_number(fmt::format("{:.9g}", x)).value_or(x); }

void number(JsonWriter& json, std::string_view key, const MaybeFigure& x) {
  json.key(key);
  if (x && std::isfinite(*x)) {
    json.value(rounded(*x));
  } else {
    json.null();
  }
}

void write_errors(JsonWriter& json, std::string_view key, const ErrorSummary& e) {
  json.key(key).begin_object().field("n", e.n);
  number(json, "bias_ms", e.bias_ms);
  number(json, "p50_ms", e.p50_ms);
  number(json, "p99_ms", e.p99_ms);
  number(json, "max_ms", e.max_ms);
  json.end_object();
}

void write_rung(JsonWriter& json, const Rung& rung) {
  json.begin_object().field("name", rung.asked.name).field("streams", rung.asked.streams);
  number(json, "events_per_s", rung.events_per_s);
  number(json, "ttft_bias_ms", rung.ttft.bias_ms);
  number(json, "ttft_err_p99_ms", rung.ttft.p99_ms);
  number(json, "itl_err_p99_ms", rung.itl.p99_ms);
  number(json, "stamp_err_p99_us", rung.stamp_error_p99_us);
  number(json, "send_lag_p99_us", rung.send_lag_p99_us);
  number(json, "kernel_stamp_share", rung.kernel_stamp_share);
  number(json, "cpu_s_per_m_events", rung.cpu_s_per_m_events);
  json.field("limit_broken", rung.limit_broken);
  json.field("must", rung.asked.standing == Standing::kMust);
  number(json, "receive_lag_p99_us", rung.receive_lag_p99_us);
  number(json, "itl_p99_off_share", rung.itl_p99_share);
  write_errors(json, "ttft_error", rung.ttft);
  write_errors(json, "itl_error", rung.itl);
  write_errors(json, "e2e_error", rung.e2e);
  json.field("requests", rung.requests).field("failed", rung.failed);
  json.field("unmatched", rung.unmatched).field("events", rung.chunks);
  json.field("events_lost", rung.chunks_lost);
  json.field("late", rung.late).field("late_untold", rung.late_untold);
  number(json, "schedule_slip_us", rung.schedule_slip_us);
  json.end_object();
}

void write_tail(JsonWriter& json, const Audit& audit) {
  json.key("host").begin_object().field("name", audit.host.name);
  json.field("kernel", audit.host.kernel).field("cores", audit.host.cores).end_object();
  json.field("at", audit.at).key("notes").begin_array();
  for (const std::string& note : audit.notes) json.value(note);
  json.end_array();
}

}  // namespace

std::string render_audit_text(const Audit& audit, const TextStyle& style) {
  Lines lines(style);
  std::vector<std::string> facts{fmt::format("audit of {}, {} cores, Linux {}", audit.host.name,
                                             audit.host.cores, audit.host.kernel)};
  facts.insert(facts.end(), audit.notes.begin(), audit.notes.end());
  lines.add(audit.pass ? "PASS" : "FAIL", facts, audit.pass ? Paint::kGood : Paint::kBad);
  if (!audit.rungs.empty()) {
    add_instrument_table(lines, audit);
    add_error_table(lines, audit);
  }
  add_stall(lines, audit);
  add_broken(lines, audit);
  for (const LeftOut& left : audit.left_out) {
    lines.add("left out", {left.rung + ": " + left.why}, Paint::kDim);
  }
  lines.add("so", {trust_sentence(audit)}, audit.pass ? Paint::kGood : Paint::kBad);
  return lines.text();
}

std::string render_audit_json(const Audit& audit) {
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", "assay.audit/1");
  json.field("verdict", audit.pass ? "pass" : "fail").key("rungs").begin_array();
  for (const Rung& rung : audit.rungs) write_rung(json, rung);
  json.end_array().key("trust").begin_object();
  number(json, "events_per_s", audit.trust.events_per_s);
  json.field("streams", audit.trust.streams).end_object();
  json.key("left_out").begin_array();
  for (const LeftOut& left : audit.left_out) {
    json.begin_object().field("name", left.rung).field("why", left.why).end_object();
  }
  json.end_array();
  write_tail(json, audit);
  json.end_object();
  return json.take() + "\n";
}

std::string render_endpoint_text(const EndpointAudit& audit, const TextStyle& style) {
  Lines lines(style);
  const auto ms = [](const MaybeFigure& x) { return x ? fmt::format("{:.3f} ms", *x) : "–"; };
  lines.add(audit.pass ? "PASS" : "FAIL",
            {"the way to " + audit.url, audit.server, audit.model,
             fmt::format("{} requests, {} failed", audit.requests, audit.failed)},
            audit.pass ? Paint::kGood : Paint::kBad);
  lines.add("the way",
            {"round trip, a TCP handshake: fastest " + show(audit.round_trip_min_us) + " us",
             "median " + show(audit.round_trip_p50_us) + " us"});
  lines.add("floor", {"send to first token, alone: fastest " + ms(audit.floor_min_ms),
                      "median " + ms(audit.floor_p50_ms)});
  lines.add("stamps", {"by the kernel " + show_share(audit.kernel_stamp_share),
                       "receive lag p99 " + show(audit.receive_lag_p99_us) + " us",
                       "send lag p99 " + show(audit.send_lag_p99_us) + " us"});
  if (audit.failed > 0) lines.add("failed", {audit.example}, Paint::kBad);
  lines.add("so", {"this server keeps no truth to compare with: assay audit without --target says "
                   "how wrong assay is on this machine"});
  return lines.text();
}

std::string render_endpoint_json(const EndpointAudit& audit) {
  Rung rung;
  rung.asked.name = "target";
  rung.asked.streams = 1;
  rung.requests = audit.requests;
  rung.failed = audit.failed;
  rung.send_lag_p99_us = audit.send_lag_p99_us;
  rung.receive_lag_p99_us = audit.receive_lag_p99_us;
  rung.kernel_stamp_share = audit.kernel_stamp_share;
  JsonWriter json(JsonWriter::Style::kPretty);
  json.begin_object().field("schema", "assay.audit/1");
  json.field("verdict", audit.pass ? "pass" : "fail").key("rungs").begin_array();
  write_rung(json, rung);
  json.end_array().key("trust").begin_object();
  json.key("events_per_s").null().key("streams").null().end_object();
  json.key("target").begin_object().field("url", audit.url).field("model", audit.model);
  json.field("server", audit.server).field("example", audit.example);
  number(json, "round_trip_min_us", audit.round_trip_min_us);
  number(json, "round_trip_p50_us", audit.round_trip_p50_us);
  number(json, "floor_min_ms", audit.floor_min_ms);
  number(json, "floor_p50_ms", audit.floor_p50_ms);
  json.end_object().end_object();
  return json.take() + "\n";
}

}  // namespace assay
