// The half of ServeConnection that turns emissions into bytes.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/sim/emission.h"
#include "engine/sim/reply_writer.h"
#include "engine/sim/serve_connection.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/serve_routes.h"
#include "engine/sim/sim_spec.h"

namespace assay::internal {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

ReplyWriter::Usage usage_of(const TokenSpec& spec, const ServeRequest& asked) {
  if (spec.usage == TokenSpec::Usage::kNone) return ReplyWriter::Usage::kNone;
  if (spec.usage == TokenSpec::Usage::kEach || asked.usage_in_each)
    return ReplyWriter::Usage::kEach;
  const bool told =
      asked.include_usage || !asked.stream || asked.dialect == ServeDialect::kLlamaCpp;
  return told ? ReplyWriter::Usage::kEnd : ReplyWriter::Usage::kNone;
}

std::string retry_after(const FaultRule& fault) {
  if (fault.retry_after.count() <= 0) return {};
  // Whole seconds, as HTTP has it, and never too early.
  const std::int64_t seconds = (fault.retry_after.count() + kNsPerSecond - 1) / kNsPerSecond;
  return fmt::format("retry-after: {}\r\n", seconds);
}

}  // namespace

void ServeConnection::on_emission(const Emission& emission) {
  if (!begun_) begin_reply(emission);
  if (emission.last()) stream_ = 0;
  if ((emission.flags & kEmitTokens) != 0) count_tokens(emission);
  if (asked_.stream) {
    write(emission);
  } else {
    write_whole(emission);
  }
  if (emission.last()) {
    count_end(emission);
    shard_.note_load();
  } else if ((emission.flags & kEmitHead) != 0) {
    shard_.note_load();
  }
  flush_with_instant(emission.at);
  if (!closed_) guard_unsent();
}

/// What comes in one instant after its first event leaves in one send, a turn of the loop later.
void ServeConnection::flush_with_instant(Duration at) {
  const bool same = std::exchange(last_emission_, at) == at;
  if (!same || timer_ != 0) return flush();
  timer_ = shard_.loop.at(shard_.loop.now(), [this] {
    timer_ = 0;
    flush();
  });
}

void ServeConnection::begin_reply(const Emission& emission) {
  begun_ = true;
  last_emission_ = Duration(-1);
  wire_ = emission.wire;
  pause_ = emission.pause;
  const SimSpec& spec = shard_.setup.spec;
  ReplyWriter::Reply reply;
  reply.dialect = asked_.dialect;
  reply.framing = framing_;
  reply.usage = usage_of(spec.tokens, asked_);
  reply.id = record_->request_id;  // as vLLM does: a client can tell which reply it has
  reply.model = spec.model;
  reply.request_id = record_->request_id;
  reply.created = shard_.loop.clocks().real_now().ns / kNsPerSecond;
  reply.prompt_tokens = asked_.prompt_tokens;
  reply.wire = emission.wire;
  writer_.begin(reply);
}

/// Metrics go by the engine's own instants, as an engine's do.
void ServeConnection::count_tokens(const Emission& emission) {
  ServeMetrics& metrics = shard_.metrics;
  const auto tokens = static_cast<std::int64_t>(emission.tokens);
  if (output_tokens_ == 0) {
    first_token_ = emission.at;
    metrics.ttft.add((emission.at - emission.arrived).count());
    metrics.queue.add((emission.started - emission.arrived).count());
    metrics.prefill.add((emission.at - emission.started).count());
    record_->admitted = run_time(shard_.engine.start() + emission.started);
  } else {
    metrics.itl.add((emission.at - last_token_).count() / tokens, tokens);
  }
  last_token_ = emission.at;
  output_tokens_ += tokens;
  if (emission.reasoning) reasoning_tokens_ += tokens;
  metrics.generation_tokens.add(tokens);
}

void ServeConnection::count_end(const Emission& emission) {
  ServeMetrics& metrics = shard_.metrics;
  if ((emission.flags & kEmitEnd) == 0) {
    // An HTTP error has been counted by refuse().
    if (outcome_ != Outcome::kHttpError) metrics.ended_error.add(1);
    return;
  }
  (output_tokens_ < asked_.output_tokens ? metrics.ended_stop : metrics.ended_length).add(1);
  metrics.e2e.add((last_token_ - emission.arrived).count());
  metrics.inference.add((last_token_ - emission.started).count());
  metrics.decode.add((last_token_ - first_token_).count());
  metrics.request_generation_tokens.add(output_tokens_);
  if (output_tokens_ > 1) {
    metrics.tpot.add((last_token_ - first_token_).count() / (output_tokens_ - 1));
  }
}

void ServeConnection::mark(MarkKind kind, std::size_t bytes, std::uint32_t tokens) {
  next_marks_.push_back({next_.size(), static_cast<std::uint32_t>(bytes), tokens, kind});
}

ReplyWriter::Counts ServeConnection::totals() {
  record_->finish_reason = output_tokens_ < asked_.output_tokens ? "stop" : "length";
  return {record_->finish_reason, output_tokens_, reasoning_tokens_};
}

void ServeConnection::write(const Emission& emission) {
  if ((emission.flags & kEmitHead) != 0) writer_.head(next_);
  if ((emission.flags & kEmitRole) != 0 && writer_.role(next_)) mark(MarkKind::kEvent);
  if ((emission.flags & kEmitMalformed) != 0) {
    writer_.malformed(next_);
    mark(MarkKind::kEvent);
    ++shard_.counts.malformed;
  }
  if ((emission.flags & kEmitTokens) != 0) {
    const std::size_t bytes =
        writer_.tokens(next_, {emission.stream, emission.first_token,
                               static_cast<std::int64_t>(emission.tokens), emission.reasoning});
    mark(emission.reasoning && asked_.dialect == ServeDialect::kChat ? MarkKind::kReasoning
                                                                     : MarkKind::kTokens,
         bytes, emission.tokens);
  }
  if ((emission.flags & kEmitFinish) != 0) {
    for (int events = writer_.finish(next_, totals()); events > 0; --events) {
      mark(MarkKind::kEvent);
    }
  }
  if ((emission.flags & kEmitFault) != 0) return write_fault(*emission.fault);
  if ((emission.flags & kEmitEnd) == 0) return;
  if (writer_.done(next_)) mark(MarkKind::kEvent);
  end_orderly();
}

void ServeConnection::end_orderly() {
  writer_.end(next_);
  const bool keep = keep_alive_ && framing_ == ReplyWriter::Framing::kChunked;
  then_ = keep ? Then::kKeep : Then::kClose;
}

void ServeConnection::write_fault(const FaultRule& fault) {
  switch (fault.kind) {
    case FaultKind::kHttpError:
      return refuse_by(fault);
    case FaultKind::kErrorObject:
    case FaultKind::kErrorString:
    case FaultKind::kErrorEvent:
      outcome_ = Outcome::kStreamError;
      record_->error_text = simulated_failure().message;
      writer_.error(next_, fault.kind);
      mark(MarkKind::kEvent);
      return end_orderly();
    case FaultKind::kReset:
      outcome_ = Outcome::kReset;
      then_ = Then::kReset;
      return;
    case FaultKind::kClose:
      outcome_ = Outcome::kTruncated;
      then_ = Then::kClose;
      return;
    case FaultKind::kMissingEnd:
      outcome_ = Outcome::kTruncated;
      return end_orderly();
    case FaultKind::kHalfOpen:
      then_ = Then::kSilence;
      return;
    case FaultKind::kMalformed:
    case FaultKind::kSlowLoris:
    case FaultKind::kComments:
    case FaultKind::kCrLf:
    case FaultKind::kSplitUtf8:
      CHECK(false, "{} ends no stream", fault_name(fault.kind));
  }
}

void ServeConnection::refuse_by(const FaultRule& fault) {
  const bool full = &fault == &shard_.engine.core().spec().refusal;
  refuse({.status = fault.status,
          .message = full ? "the queue is full" : "the simulated engine refused as asked",
          .type = fault.status == 429 ? "rate_limit_error" : "server_error",
          .code = full ? "queue_full" : "unavailable"},
         retry_after(fault));
}

/// A reply that is not streamed gathers its text and leaves at its end.
void ServeConnection::write_whole(const Emission& emission) {
  if ((emission.flags & kEmitTokens) != 0) {
    writer_.append_text(emission.reasoning ? reasoning_ : text_,
                        {emission.stream, emission.first_token,
                         static_cast<std::int64_t>(emission.tokens), emission.reasoning});
  }
  if (!emission.last()) return;
  if ((emission.flags & kEmitFault) != 0) {
    const FaultKind kind = emission.fault->kind;
    const bool error = kind == FaultKind::kErrorObject || kind == FaultKind::kErrorString ||
                       kind == FaultKind::kErrorEvent;
    if (error) return refuse(simulated_failure(), {});
    if (kind != FaultKind::kMissingEnd) return write_fault(*emission.fault);
  }
  ReplyWriter::Counts counts = totals();
  if ((emission.flags & kEmitFault) != 0) {
    outcome_ = Outcome::kTruncated;
    record_->finish_reason.clear();
    counts.finish_reason = {};
  }
  if (asked_.dialect != ServeDialect::kChat) reasoning_.append(text_).swap(text_);
  if (asked_.dialect != ServeDialect::kChat) reasoning_.clear();
  PlainReply reply;
  reply.body = writer_.whole({text_, reasoning_, counts});
  answer(reply, record_->request_id);
}

}  // namespace assay::internal
