#include "study/measure/beyond_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/text.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "study/measure/measurement.h"

namespace assay {
namespace {

double busiest_second(const Ledger& ledger) {
  constexpr std::int64_t kSecond = 1000;  // ms
  RunTime last{0};
  for (const RequestRecord& r : ledger.requests) last = std::max(last, r.done.value_or(last));
  std::vector<std::int64_t> by_ms(static_cast<std::size_t>(last / 1ms) + 1);
  std::int64_t from = static_cast<std::int64_t>(by_ms.size());
  std::int64_t to = 0;
  for (const RequestRecord& r : ledger.requests) {
    ChunkReader reader(r.chunks, r.scheduled);
    while (const std::optional<Chunk> chunk = reader.next()) {
      const std::int64_t ms =
          std::clamp<std::int64_t>(chunk->at / 1ms, 0, static_cast<std::int64_t>(by_ms.size()) - 1);
      ++by_ms[static_cast<std::size_t>(ms)];
      from = std::min(from, ms);
      to = std::max(to, ms + 1);
    }
  }
  if (to <= from) return 0;
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (std::int64_t ms = from; ms < to; ++ms) {
    now += by_ms[static_cast<std::size_t>(ms)];
    if (ms - kSecond >= from) now -= by_ms[static_cast<std::size_t>(ms - kSecond)];
    most = std::max(most, now);
  }
  return static_cast<double>(most) * 1e3 / static_cast<double>(std::min(to - from, kSecond));
}

std::int64_t most_in_flight(const Ledger& ledger) {
  std::vector<RunTime> sent;
  std::vector<RunTime> ended;
  for (const RequestRecord& r : ledger.requests) {
    if (!r.send_start || !r.done) continue;
    sent.push_back(*r.send_start);
    ended.push_back(*r.done);
  }
  std::ranges::sort(sent);
  std::ranges::sort(ended);
  std::size_t over = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    while (over < ended.size() && ended[over] <= sent[i]) ++over;
    most = std::max(most, i + 1 - std::min(over, i + 1));
  }
  return static_cast<std::int64_t>(most);
}

}  // namespace

Peaks peaks_of(const Ledger& ledger) {
  return {.events_per_s = busiest_second(ledger), .streams = most_in_flight(ledger)};
}

Check beyond_audit(const Ledger& ledger) {
  Check check;
  check.name = "audit";
  const std::optional<double> events = parse_number(ledger.meta_or(meta::kAuditEventsPerS));
  const std::optional<std::int64_t> streams = parse_int(ledger.meta_or(meta::kAuditStreams));
  if (!events || !streams) {
    check.advice = "the instrument was not audited on this machine";
    return check;
  }
  const Peaks peaks = peaks_of(ledger);
  check.unit = "share";
  check.limit = 1;
  // An audit that trusts nothing is exceeded by any run.
  const double by_events = peaks.events_per_s / std::max(*events, 1.0);
  const double by_streams =
      static_cast<double>(peaks.streams) / static_cast<double>(std::max<std::int64_t>(*streams, 1));
  check.value = std::max(by_events, by_streams);
  const bool beyond = *check.value > 1 || *events <= 0 || *streams <= 0;
  check.status = beyond ? CheckStatus::kFail : CheckStatus::kPass;
  if (beyond) {
    check.advice = fmt::format(
        "the run reached {:.0f} events/s and {} streams; assay's figures are proven up to {:.0f} "
        "and "
        "{} here: lower the load, or repeat assay audit",
        peaks.events_per_s, peaks.streams, *events, *streams);
  }
  return check;
}

}  // namespace assay
