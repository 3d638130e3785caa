#include "study/measure/client.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/core/result.h"
#include "base/stats/histogram.h"
#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void add_workers(Client& client, const Ledger& ledger) {
  std::int64_t reads = 0;
  std::int64_t kernel = 0;
  for (const WorkerRow& w : ledger.workers) {
    reads += w.kernel_stamps + w.user_stamps;
    kernel += w.kernel_stamps;
    add_count(client.workers, 1);
    add_count(client.malformed, w.malformed);
    add_count(client.builder_stalls, w.builder_stalls);
    add_count(client.connects, w.connects);
    add_count(client.sent_again, w.sent_again);
    if (w.wall_ns > 0) {
      client.busy_share = std::max(client.busy_share.value_or(0), ratio(w.busy_ns, w.wall_ns));
    }
  }
  if (reads > 0) client.kernel_stamp_share = ratio(kernel, reads);
}

/// For a run that was killed before its workers could sum up.
void add_stamps_of_chunks(Client& client, const Ledger& ledger) {
  std::int64_t chunks = 0;
  std::int64_t kernel = 0;
  for (const RequestRecord& r : ledger.requests) {
    ChunkReader reader(r.chunks, r.scheduled);
    while (const std::optional<Chunk> chunk = reader.next()) {
      ++chunks;
      if ((chunk->flags & kChunkUserStamp) == 0) ++kernel;
    }
  }
  if (chunks > 0) client.kernel_stamp_share = ratio(kernel, chunks);
}

/// Receive lags of all workers in the phases after warm-up. A row that can't be
/// decoded, or has other limits than the first, is left out.
LagSummary receive_lags(const Ledger& ledger) {
  const auto warmup = std::ranges::find(ledger.phases, "warmup", &PhaseRow::name);
  std::optional<Histogram> all;
  for (const HistogramRow& row : ledger.histograms) {
    const bool warming = warmup != ledger.phases.end() && row.phase == warmup->id;
    if (row.name != "receive_lag_ns" || warming) continue;
    const Result<Histogram> one = Histogram::decode_v2(row.hdr);
    if (!one) continue;
    if (!all) {
      all = *one;
    } else if (all->limits() == one->limits()) {
      all->merge(*one);
    }
  }
  LagSummary out;
  if (!all || all->count() == 0) return out;
  out.n = all->count();
  const auto us = [](std::optional<std::int64_t> ns) -> MaybeNumber {
    if (!ns) return std::nullopt;
    return static_cast<double>(*ns) / 1e3;
  };
  out.p50 = us(all->value_at_percentile(50));
  out.p90 = us(all->value_at_percentile(90));
  out.p99 = us(all->value_at_percentile(99));
  out.p99_9 = us(all->value_at_percentile(99.9));
  out.max = us(all->max());
  return out;
}

}  // namespace

MaybeTime send_lag(const RequestRecord& record) {
  if (!record.send_start) return std::nullopt;
  const RunTime ready = std::max(record.scheduled, record.admitted.value_or(record.scheduled));
  return std::max(RunTime{0}, *record.send_start - ready);
}

LagSummary lag_summary(std::span<const std::int64_t> lags_ns) {
  LagSummary out;
  const std::size_t n = lags_ns.size();
  out.n = static_cast<std::int64_t>(n);
  if (n == 0) return out;
  std::vector<std::size_t> ranks;
  for (const double p : kPercentiles) ranks.push_back(nearest_rank(p, n));
  ranks.push_back(n);
  const std::vector<std::int64_t> ns = select_ranks(lags_ns, ranks);
  const std::array<MaybeNumber*, 5> fields{&out.p50, &out.p90, &out.p99, &out.p99_9, &out.max};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    *fields.at(i) = static_cast<double>(ns[i]) / 1e3;
  }
  return out;
}

Client client_of(const Ledger& ledger, const Population& population) {
  Client client;
  std::vector<std::int64_t> lags;
  lags.reserve(population.measured.size());
  for (const std::size_t i : population.measured) {
    if (const MaybeTime lag = send_lag(ledger.requests[i])) lags.push_back(lag->count());
  }
  client.send_lag_us = lag_summary(lags);
  client.receive_lag_us = receive_lags(ledger);
  std::int64_t reads = 0;
  for (const RequestRecord& r : ledger.requests) {
    client.events += r.events;
    reads += r.reads;
  }
  if (reads > 0) client.events_per_read = ratio(client.events, reads);
  add_workers(client, ledger);
  if (ledger.workers.empty()) add_stamps_of_chunks(client, ledger);
  return client;
}

}  // namespace assay
