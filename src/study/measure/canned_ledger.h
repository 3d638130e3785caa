// Hand-made ledgers for the tests of measure and report: runs whose every instant is known, written
// in milliseconds. Not part of any library.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"

namespace assay {

inline RunTime at_ms(double ms) { return RunTime(std::llround(ms * 1e6)); }

/// One streamed reply. Chunks carry `chunk_tokens` tokens, known where `tokens_known`.
struct CannedReply {
  double scheduled_ms = 0;
  double send_after_ms = 0;               // from scheduled
  std::vector<double> chunks_after_ms{};  // from scheduled
  std::vector<int> chunk_tokens{};        // empty: unknown
  double done_after_ms = 0;               // from scheduled
  std::optional<std::int64_t> usage_output{}, usage_prompt{};
};

struct CannedRun {
  Ledger ledger;
  Spec spec;

  /// A complete run with a steady phase [0, steady_ms) and a drain behind it.
  explicit CannedRun(double steady_ms) {
    ledger.path = "canned.assay";
    ledger.meta = {{"state", "complete"},
                   {"model", "tiny"},
                   {"salt", "s4lt"},
                   {"start_wall", "2026-12-01T16:00:00Z"},
                   {"clock_steps", "0"}};
    ledger.phases = {
        {.id = 1, .name = "warmup", .start = at_ms(-1000), .end = at_ms(0)},
        {.id = 2, .name = "steady", .start = at_ms(0), .end = at_ms(steady_ms)},
        {.id = 3, .name = "drain", .start = at_ms(steady_ms), .end = at_ms(steady_ms)}};
    WorkerRow worker;
    worker.wall_ns = at_ms(steady_ms).count();
    worker.busy_ns = worker.wall_ns / 10;
    worker.kernel_stamps = 100;
    ledger.workers = {worker};
    spec.target.urls = {"http://127.0.0.1:8000"};
    spec.target.model = "tiny";
    spec.load.concurrency = 1;
    spec.load.duration = at_ms(steady_ms);
    spec.load.warmup = {.time = Duration{0}, .requests = std::nullopt};
  }

  /// A request of the steady phase that ended as `outcome` `done_after_ms` after it was scheduled.
  RequestRecord& add(double scheduled_ms, Outcome outcome, double done_after_ms) {
    RequestRecord r;
    r.id = static_cast<std::int64_t>(ledger.requests.size());
    r.phase = 2;
    r.scheduled = at_ms(scheduled_ms);
    r.admitted = r.scheduled;
    r.send_start = r.scheduled;
    r.sent = r.scheduled;
    r.done = at_ms(scheduled_ms + done_after_ms);
    r.outcome = outcome;
    r.reused = true;
    ledger.requests.push_back(std::move(r));
    return ledger.requests.back();
  }

  RequestRecord& add(const CannedReply& reply) {
    RequestRecord& r = add(reply.scheduled_ms, Outcome::kOk, reply.done_after_ms);
    r.send_start = at_ms(reply.scheduled_ms + reply.send_after_ms);
    r.admitted = r.send_start;
    r.tokens_server_output = reply.usage_output;
    r.tokens_server_prompt = reply.usage_prompt;
    ChunkWriter writer;
    writer.start(r.scheduled);
    for (std::size_t i = 0; i < reply.chunks_after_ms.size(); ++i) {
      Chunk chunk;
      chunk.at = at_ms(reply.scheduled_ms + reply.chunks_after_ms[i]);
      chunk.bytes = 4;
      chunk.flags = kChunkNewRead;
      if (!reply.chunk_tokens.empty()) {
        chunk.tokens = static_cast<std::uint32_t>(reply.chunk_tokens.at(i));
        chunk.flags |= kChunkTokensKnown;
      }
      if (i == 0) r.first_event = r.first_token = r.first_output = chunk.at;
      r.last_token = chunk.at;
      writer.append(chunk);
    }
    r.chunks = writer.take();
    r.reads = r.events = static_cast<std::int64_t>(reply.chunks_after_ms.size()) + 2;
    r.http_status = 200;
    r.finish_reason = "length";
    return r;
  }
};

}  // namespace assay
