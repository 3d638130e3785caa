#include "study/doctor/endpoint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "study/doctor/stamps.h"

namespace assay {
namespace {

/// The kernel switches its stamps on a little after the first socket asked for them, so the first
/// reads of these few may lack one.
constexpr double kLeastKernelStamps = 0.90;

std::optional<double> at_rank(const std::vector<std::int64_t>& ns, std::size_t rank, double unit) {
  if (ns.empty()) return std::nullopt;
  return static_cast<double>(select_ranks(ns, std::span(&rank, 1)).front()) / unit;
}

std::optional<double> quantile(const std::vector<std::int64_t>& ns, double p, double unit) {
  return ns.empty() ? std::nullopt : at_rank(ns, nearest_rank(p, ns.size()), unit);
}

}  // namespace

EndpointAudit audit_endpoint(const Ledger& client) {
  EndpointAudit out;
  out.model = client.meta_or(meta::kModel);
  out.server = client.meta_or(meta::kServer);
  std::vector<std::int64_t> handshakes;
  std::vector<std::int64_t> floors;
  std::vector<std::int64_t> lags;
  for (const RequestRecord& r : client.requests) {
    ++out.requests;
    if (r.tcp) handshakes.push_back(r.tcp->count());
    if (r.send_start) {
      const RunTime due = std::max(r.scheduled, r.admitted.value_or(r.scheduled));
      lags.push_back((*r.send_start - due).count());
    }
    if (r.outcome != Outcome::kOk) {
      if (out.failed++ == 0) out.example = r.error_text;
    } else if (r.first_token && r.send_start) {
      floors.push_back((*r.first_token - *r.send_start).count());
    }
  }
  out.round_trip_min_us = at_rank(handshakes, 1, 1e3);
  out.round_trip_p50_us = quantile(handshakes, 0.50, 1e3);
  out.floor_min_ms = at_rank(floors, 1, 1e6);
  out.floor_p50_ms = quantile(floors, 0.50, 1e6);
  out.send_lag_p99_us = quantile(lags, 0.99, 1e3);
  const StampFacts stamps = stamp_facts(client);
  out.kernel_stamp_share = stamps.kernel_share;
  out.receive_lag_p99_us = stamps.receive_lag_p99_us;
  out.pass = !floors.empty() && out.failed == 0 &&
             out.kernel_stamp_share.value_or(0) >= kLeastKernelStamps;
  return out;
}

}  // namespace assay
