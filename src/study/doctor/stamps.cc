#include "study/doctor/stamps.h"

#include <cstdint>
#include <optional>

#include "base/core/result.h"
#include "base/stats/histogram.h"
#include "domain/ledger/ledger.h"

namespace assay {
namespace {

std::optional<double> receive_lag_p99_us(const Ledger& client) {
  std::optional<Histogram> all;
  for (const HistogramRow& row : client.histograms) {
    if (row.name != "receive_lag_ns") continue;
    const Result<Histogram> one = Histogram::decode_v2(row.hdr);
    if (!one) continue;
    if (!all) {
      all = *one;
    } else if (all->limits() == one->limits()) {
      all->merge(*one);
    }
  }
  const std::optional<std::int64_t> ns = all ? all->value_at_percentile(99) : std::nullopt;
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / 1e3;
}

}  // namespace

StampFacts stamp_facts(const Ledger& client) {
  StampFacts facts;
  std::int64_t kernel = 0;
  std::int64_t reads = 0;
  for (const WorkerRow& w : client.workers) {
    kernel += w.kernel_stamps;
    reads += w.kernel_stamps + w.user_stamps;
    facts.events += w.events;
  }
  if (reads > 0) facts.kernel_share = static_cast<double>(kernel) / static_cast<double>(reads);
  facts.receive_lag_p99_us = receive_lag_p99_us(client);
  return facts;
}

}  // namespace assay
