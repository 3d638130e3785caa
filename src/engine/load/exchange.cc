#include "engine/load/exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/load/builder.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

constexpr std::size_t kErrorTextMax = 500;

std::size_t index_of(Phase phase) { return static_cast<std::size_t>(phase); }

/// Takes out each piece of `text` that begins like the secret, whole or torn off: error bodies and
/// excerpts are cut before they come here, and most of a key is as bad as all of it.
void redact(std::string& text, std::string_view secret) {
  constexpr std::size_t kTelling = 8;  // fewer bytes of a longer secret tell nobody anything
  constexpr std::string_view kRedacted = "[redacted]";
  const std::string_view head = secret.substr(0, kTelling);
  if (head.empty()) return;
  for (std::size_t at = text.find(head); at != std::string::npos; at = text.find(head, at)) {
    const std::string_view rest = std::string_view(text).substr(at);
    const auto same = std::ranges::mismatch(rest, secret).in1 - rest.begin();
    text.replace(at, static_cast<std::size_t>(same), kRedacted);
    at += kRedacted.size();
  }
}

/// At most kErrorTextMax bytes, cut between characters.
void cut_short(std::string& text) {
  if (text.size() <= kErrorTextMax) return;
  std::size_t end = kErrorTextMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  text.resize(end);
}

}  // namespace

void Exchange::begin(std::unique_ptr<PreparedRequest> request, RunTime scheduled, Phase phase,
                     std::int64_t slot) {
  request_ = std::move(request);
  phase_ = phase;
  slot_ = slot;
  choices_finished_ = 0;
  end_seen_ = error_seen_ = output_seen_ = whole_broken_ = false;
  new_read_ = false;
  counts_known_ = true;
  usage_before_ = 0;
  record_ = std::make_unique<RequestRecord>();
  record_->id = request_->id;
  record_->worker = context_.worker;
  record_->phase = static_cast<std::int32_t>(phase);
  record_->item = std::move(request_->item);
  record_->request_id = std::move(request_->request_id);
  record_->tokens_planned = request_->tokens_planned;
  record_->tokens_asked_output = request_->tokens_output;
  record_->scheduled = scheduled;
  if (context_.keep_text) record_->text.emplace();
  chunks_.start(scheduled);
  ++context_.counts.requests;
}

void Exchange::set_admitted(Instant at, std::int64_t connection, const OpenResult* fresh) {
  record_->admitted = run_time(at);
  record_->connection = connection;
  record_->reused = fresh == nullptr;
  if (fresh == nullptr) return;
  record_->dns = fresh->dns;
  record_->tcp = fresh->tcp;
  record_->tls = fresh->tls;
}

void Exchange::begin_again() {
  record_->admitted = record_->send_start = record_->sent = std::nullopt;
  record_->connection = std::nullopt;
  record_->bytes_out = 0;
}

void Exchange::on_send_start(Instant at) {
  record_->send_start = run_time(at);
  const RunTime due = std::max(record_->scheduled, record_->admitted.value_or(record_->scheduled));
  context_.send_lag[index_of(phase_)].record((*record_->send_start - due).count());
}

void Exchange::on_sent(Instant at, std::int64_t bytes) {
  record_->sent = run_time(at);
  record_->bytes_out = bytes;
  // The bytes are the kernel's now; a long stream need not carry its prompt along. On a connection
  // that was used before they may have to go out again.
  if (!record_->reused) request_.reset();
}

void Exchange::on_read(const Stamp& stamp, std::int64_t bytes) {
  new_read_ = true;
  request_.reset();
  ++record_->reads;
  record_->bytes_in += bytes;
  if (!record_->first_byte) record_->first_byte = run_time(stamp.at);
  ++context_.counts.reads;
  if (stamp.source == StampSource::kKernel) {
    ++context_.counts.kernel_stamps;
    context_.receive_lag[index_of(phase_)].record((stamp.user - stamp.at).count());
  } else {
    ++context_.counts.user_stamps;
  }
}

void Exchange::on_status(int http_status, std::string_view server) {
  record_->http_status = http_status;
  if (context_.server.empty()) context_.server = redacted(server);
}

void Exchange::on_event(const TokenEvent& event, const Stamp& stamp) {
  ++record_->events;
  ++context_.counts.events;
  if (event.malformed) {
    ++context_.counts.malformed;
    whole_broken_ = whole_broken_ || event.whole;
    return;
  }
  if (!event.whole && !record_->first_event) record_->first_event = run_time(stamp.at);
  if (event.error) note_error(event.error_code, event.error_text);
  if (event.has_output()) {
    output_seen_ = true;
    if (!event.whole) add_chunk(event, stamp);
    if (record_->text) record_->text->append(event.text);
  }
  if (event.usage.any()) add_usage(event.usage);
  if (!event.finish_reason.empty()) record_->finish_reason = redacted(event.finish_reason);
  choices_finished_ += static_cast<int>(event.choices_finished);
  end_seen_ = end_seen_ || event.end;
}

void Exchange::add_chunk(const TokenEvent& event, const Stamp& stamp) {
  const RunTime at = run_time(stamp.at);
  if (!record_->first_token) record_->first_token = at;
  if (!record_->first_output && (!event.text.empty() || event.tool)) record_->first_output = at;
  record_->last_token = at;
  Chunk chunk;
  chunk.at = at;
  chunk.bytes =
      static_cast<std::uint32_t>(event.text.size() + event.reasoning.size()) + event.tool_bytes;
  if (new_read_) chunk.flags |= kChunkNewRead;
  if (stamp.source == StampSource::kUser) chunk.flags |= kChunkUserStamp;
  if (!event.reasoning.empty()) chunk.flags |= kChunkReasoning;
  if (event.tool) chunk.flags |= kChunkTool;
  if (event.tokens) {
    chunk.tokens = *event.tokens;
    chunk.flags |= kChunkTokensKnown;
  } else if (event.usage.output && counts_known_) {
    // A usage on every chunk counts up: its step is this chunk's tokens. A usage that appears only
    // at the end says nothing about its own chunk, hence counts_known_.
    chunk.tokens =
        static_cast<std::uint32_t>(std::max<std::int64_t>(0, *event.usage.output - usage_before_));
    chunk.flags |= kChunkTokensKnown;
  } else {
    counts_known_ = false;
  }
  new_read_ = false;
  chunks_.append(chunk);
}

void Exchange::add_usage(const Usage& usage) {
  if (usage.prompt) record_->tokens_server_prompt = usage.prompt;
  if (usage.cached) record_->tokens_server_cached = usage.cached;
  if (usage.output) record_->tokens_server_output = usage_before_ = *usage.output;
  if (usage.reasoning) record_->tokens_server_reasoning = usage.reasoning;
}

void Exchange::on_error_body(std::string_view code, std::string_view text) {
  note_error(code, text);
}

void Exchange::note_error(std::string_view code, std::string_view text) {
  if (error_seen_) return;  // the first error is the cause, later ones its echo
  error_seen_ = true;
  record_->error_code = redacted(code);
  record_->error_text = redacted(text);
  cut_short(record_->error_code);
  cut_short(record_->error_text);
}

std::string Exchange::redacted(std::string_view raw) const {
  std::string out(raw);
  for (const std::string& secret : context_.secrets) redact(out, secret);
  return out;
}

Outcome Exchange::judge(ReplyEnd end) const {
  const int status = record_->http_status.value_or(0);
  if (status != 0 && (status < 200 || status >= 300)) return Outcome::kHttpError;
  if (error_seen_) return Outcome::kStreamError;
  if (whole_broken_) return Outcome::kProtocol;
  if (end_seen_ || choices_finished_ >= context_.choices) {
    return output_seen_ ? Outcome::kOk : Outcome::kEmpty;
  }
  if (end == ReplyEnd::kReset) return Outcome::kReset;
  if (end == ReplyEnd::kProtocol) return Outcome::kProtocol;
  return Outcome::kTruncated;
}

std::string_view Exchange::explanation() const {
  if (record_->outcome == Outcome::kEmpty) return "the reply ended well and held no output";
  if (record_->outcome != Outcome::kTruncated) return {};
  return record_->events == 0
             ? "the reply holds no event of a stream"
             : "the stream ended with neither [DONE] nor a finish_reason of every choice";
}

void Exchange::on_end(ReplyEnd end, Instant at, std::string_view detail) {
  const bool unheard = end == ReplyEnd::kReset && record_->reads == 0 && request_ != nullptr;
  if (unheard && owner_.send_again(*this, at)) return;
  record_->outcome = judge(end);
  if (record_->outcome != Outcome::kOk && record_->error_text.empty()) {
    note_error({}, detail.empty() ? explanation() : detail);
  }
  if (whole_broken_ && record_->error_text.empty())
    record_->error_text = "the reply is no JSON object";
  close(at);
}

void Exchange::end_by_client(Outcome outcome, Instant at, std::string_view code,
                             std::string_view text) {
  record_->outcome = outcome;
  record_->error_code = code;
  record_->error_text = text;
  close(at);
}

void Exchange::close(Instant at) {
  record_->done = run_time(at);
  record_->chunks = chunks_.take();
  // Only now: a secret may have come in several events.
  if (record_->text) record_->text = redacted(*record_->text);
  request_.reset();
  owner_.on_exchange_end(*this, at);
}

}  // namespace assay
