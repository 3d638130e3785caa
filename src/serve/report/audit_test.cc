#include "serve/report/audit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text.h"
#include "serve/report/lines.h"
#include "study/doctor/audit.h"
#include "study/doctor/endpoint.h"

namespace assay {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = "src/serve/report/golden/" + name;
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, golden) << path << ": run with ASSAY_UPDATE_GOLDEN=1 to accept";
}

ErrorSummary errors(std::int64_t n, double bias_ms, double p50_ms, double p99_ms, double max_ms) {
  return {.n = n, .bias_ms = bias_ms, .p50_ms = p50_ms, .p99_ms = p99_ms, .max_ms = max_ms};
}

Rung rung(const std::string& name, RungKind kind, Standing standing, std::int64_t streams,
          double events_per_s) {
  Rung r;
  r.asked.name = name;
  r.asked.kind = kind;
  r.asked.standing = standing;
  r.asked.streams = streams;
  r.requests = 2 * streams;
  r.chunks = 40 * streams;
  r.events_per_s = events_per_s;
  r.ttft = errors(2 * streams, 0.0061, 0.0055, 0.0112, 0.21);
  r.itl = errors(38 * streams, -0.00001, 0.0021, 0.0080, 12.4);
  r.e2e = errors(2 * streams, 0.0062, 0.0057, 0.0118, 1234.5);
  r.itl_p99_share = 0.00021;
  r.stamp_error_p99_us = 9.14;
  r.send_lag_p99_us = 61.5;
  r.receive_lag_p99_us = 1204;
  r.kernel_stamp_share = 0.9998;
  r.cpu_s_per_m_events = 3.87;
  return r;
}

Audit whole_ladder() {
  std::vector<Rung> rungs{
      rung("1 stream", RungKind::kStreams, Standing::kMust, 1, 100),
      rung("1,000 streams", RungKind::kStreams, Standing::kMust, 1000, 19'987.4),
      rung("10,000 streams", RungKind::kStreams, Standing::kReach, 10'000, 99'930),
      rung("1,000 requests/s", RungKind::kRate, Standing::kMust, 256, 1001),
      rung("a stall, 4 connections", RungKind::kStall, Standing::kMust, 4, 180),
      rung("80,000 events/s", RungKind::kEvents, Standing::kReach, 1000, 80'012),
      rung("120,000 events/s", RungKind::kEvents, Standing::kReach, 1000, 118'400),
  };
  rungs[2].stamp_error_p99_us = 14.2;
  rungs[2].limit_broken = "stamp_err_p99_us 14.2 > 10";
  rungs[3].itl = {};  // one token a reply has no gap
  rungs[3].itl_p99_share = std::nullopt;
  rungs[4].requests = 160;
  rungs[4].late = 57;
  rungs[4].late_untold = 0;
  rungs[4].schedule_slip_us = 0.0005;
  rungs[6].limit_broken = "stamp_err_p99_us 411 > 100, itl_p99_off_share 0.031 > 0.01";
  Audit audit = judge_ladder(rungs);
  audit.left_out = {{"160,000 events/s", "beyond the step that broke"}};
  audit.host = {.name = "bench1", .kernel = "6.1.0", .cores = 2};
  audit.at = "2026-12-01T16:00:00Z";
  audit.notes = {"assay 0.1.0", "client on 1, simulated engine on 1 cores of their own"};
  return audit;
}

Audit broken_instrument() {
  Audit audit = whole_ladder();
  for (Rung& r : audit.rungs) {
    r.ttft.bias_ms = 1.006;
    r.limit_broken = "ttft_bias_ms 1.006 > 1, stamp_err_p99_us 1009 > 100";
  }
  audit.rungs[4].late_untold = 3;
  Audit again = judge_ladder(audit.rungs);
  again.host = audit.host;
  again.at = audit.at;
  again.notes = {"FAULT PUT IN: stamps late by 1ms"};
  return again;
}

EndpointAudit endpoint() {
  return {.pass = true,
          .url = "http://10.0.0.7:8000",
          .model = "tiny",
          .server = "uvicorn",
          .requests = 20,
          .failed = 0,
          .example = "",
          .round_trip_min_us = 212.4,
          .round_trip_p50_us = 240,
          .floor_min_ms = 18.25,
          .floor_p50_ms = 19,
          .send_lag_p99_us = 41,
          .receive_lag_p99_us = 88,
          .kernel_stamp_share = 1};
}

TEST(AuditReport, MatchesTheGoldens) {
  expect_golden("audit.txt", render_audit_text(whole_ladder(), {}));
  expect_golden("audit.json", render_audit_json(whole_ladder()));
  expect_golden("audit_broken.txt", render_audit_text(broken_instrument(), {}));
  expect_golden("audit_target.txt", render_endpoint_text(endpoint(), {}));
  expect_golden("audit_target.json", render_endpoint_json(endpoint()));
}

TEST(AuditReport, TextFitsItsColumns) {
  for (const Audit& audit : {whole_ladder(), broken_instrument(), Audit()}) {
    const std::string text = render_audit_text(audit, {});
    for (const std::string_view line : split(text, '\n')) EXPECT_LE(columns(line), 100U) << line;
  }
}

TEST(AuditReport, TheLastLineIsTheAnswer) {
  const auto last_line = [](const std::string& text) {
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  EXPECT_EQ(last_line(render_audit_text(whole_ladder(), {})),
            "so        trust runs up to 80012 events/s and 1000 streams here\n");
  EXPECT_EQ(last_line(render_audit_text(broken_instrument(), {})),
            "so        don't trust runs here: the instrument's own limits break on the lowest "
            "rung\n");
}

TEST(AuditReport, WhatIsUnknownIsNullAndNeverNan) {
  Audit audit;
  audit.rungs.emplace_back();
  const std::string json = render_audit_json(audit);
  EXPECT_NE(json.find("\"ttft_bias_ms\": null"), std::string::npos) << json;
  EXPECT_EQ(json.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace assay
