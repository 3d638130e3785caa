#include "app/audit_ladder.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "engine/probe/limits.h"
#include "study/doctor/audit.h"

namespace assay {
namespace {

constexpr std::int64_t kMustStreams = 1000;  // more than that reaches
constexpr double kMustRate = 1000;           // requests/s
constexpr std::int64_t kStepStreams = 1000;  // of the steps of events/s
constexpr std::int64_t kRateConnections = 256;

/// "10,000".
std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<std::int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

/// A closed loop of replies that each last about `reply`.
RungPlan closed_loop(std::int64_t streams, Duration gap, Duration reply) {
  RungPlan plan;
  plan.asked.streams = streams;
  plan.ttft = 50ms;
  plan.gap = gap;
  plan.tokens = 1 + reply / gap;
  plan.load.concurrency = streams;
  plan.load.warmup = {.time = reply / 2, .requests = std::nullopt};
  plan.load.duration = reply;
  return plan;
}

RungPlan streams_rung(LadderSize size, std::int64_t streams) {
  const Duration gap = streams >= 10'000 ? 100ms : streams >= 1000 ? 50ms : 10ms;
  RungPlan plan =
      closed_loop(streams, gap, size == LadderSize::kQuick ? Duration(600ms) : Duration(2s));
  plan.asked.kind = RungKind::kStreams;
  plan.asked.standing = streams <= kMustStreams ? Standing::kMust : Standing::kReach;
  plan.asked.name = streams == 1 ? "1 stream" : grouped(streams) + " streams";
  return plan;
}

RungPlan step_rung(LadderSize size, std::int64_t events_per_s) {
  const Duration gap = Duration(1s) * kStepStreams / events_per_s;
  RungPlan plan =
      closed_loop(kStepStreams, gap, size == LadderSize::kQuick ? Duration(1s) : Duration(2s));
  plan.asked.kind = RungKind::kEvents;
  plan.asked.standing = Standing::kReach;
  plan.asked.events_per_s = static_cast<double>(events_per_s);
  plan.asked.name = grouped(events_per_s) + " events/s";
  return plan;
}

/// All at once, on connections that are open.
RungPlan starts_rung(LadderSize size) {
  RungPlan plan;
  plan.asked.kind = RungKind::kStarts;
  plan.asked.streams = kMustStreams;
  plan.asked.name = grouped(kMustStreams) + " starts at once";
  plan.ttft = size == LadderSize::kQuick ? 300ms : 500ms;
  plan.gap = 50ms;
  plan.tokens = size == LadderSize::kQuick ? 10 : 50;
  plan.load.concurrency = kMustStreams;
  plan.load.requests = kMustStreams;
  plan.load.warmup = {.time = 0s, .requests = std::nullopt};
  return plan;
}

RungPlan rate_rung(LadderSize size, std::int64_t requests_per_s) {
  RungPlan plan;
  const auto rate = static_cast<double>(requests_per_s);
  plan.asked.kind = RungKind::kRate;
  plan.asked.standing = rate <= kMustRate ? Standing::kMust : Standing::kReach;
  plan.asked.streams = kRateConnections;
  plan.asked.requests_per_s = rate;
  plan.asked.name = grouped(requests_per_s) + " requests/s";
  plan.ttft = 1ms;
  plan.load.rate = rate;
  plan.load.arrival = Arrival::kConstant;
  plan.load.connections = kRateConnections;
  plan.load.warmup = {.time = 500ms, .requests = std::nullopt};
  plan.load.duration = size == LadderSize::kQuick ? 1s : 3s;
  return plan;
}

RungPlan stall_rung(LadderSize size) {
  RungPlan plan;
  constexpr double kRate = 20;
  constexpr std::int64_t kConnections = 4;
  plan.asked.kind = RungKind::kStall;
  plan.asked.streams = kConnections;
  plan.asked.requests_per_s = kRate;
  plan.asked.late_after = 150ms;
  plan.asked.name = "a stall, 4 connections";
  plan.ttft = 50ms;
  plan.gap = 10ms;
  plan.tokens = 5;
  plan.load.rate = kRate;
  plan.load.arrival = Arrival::kConstant;
  plan.load.connections = kConnections;
  plan.load.warmup = {.time = 0s, .requests = std::nullopt};
  const bool quick = size == LadderSize::kQuick;
  plan.load.duration = quick ? 3s : 8s;
  plan.pause =
      quick ? ServerPause{.after = 500ms, .length = 1s} : ServerPause{.after = 2s, .length = 2s};
  return plan;
}

}  // namespace

Ladder audit_ladder(LadderSize size, const HostLimits& limits) {
  const bool quick = size == LadderSize::kQuick;
  Ladder ladder;
  const auto add = [&](RungPlan plan) {
    const Result<> fits = check_connections(limits, plan.asked.streams, 1, Transport::kTcp);
    if (fits) {
      ladder.rungs.push_back(std::move(plan));
    } else {
      ladder.left_out.push_back({plan.asked.name, fits.error().text()});
    }
  };
  for (const std::int64_t streams : {1, 100, 1000}) add(streams_rung(size, streams));
  if (!quick) add(streams_rung(size, 10'000));
  add(starts_rung(size));
  add(rate_rung(size, 1000));
  if (!quick) add(rate_rung(size, 10'000));
  add(stall_rung(size));
  if (quick) {
    for (const std::int64_t step : {20'000, 40'000}) add(step_rung(size, step));
    for (const char* name : {"10,000 streams", "10,000 requests/s", "more than 40,000 events/s"}) {
      ladder.left_out.push_back({name, "--quick leaves it out"});
    }
  } else {
    for (const std::int64_t step : {20'000, 40'000, 80'000, 120'000, 160'000, 200'000, 250'000}) {
      add(step_rung(size, step));
    }
  }
  return ladder;
}

}  // namespace assay
