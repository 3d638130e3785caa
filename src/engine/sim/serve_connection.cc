#include "engine/sim/serve_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/net/stamp.h"
#include "engine/sim/http_request.h"
#include "engine/sim/model.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/serve_routes.h"

namespace assay::internal {
namespace {

/// Of a client that doesn't read; one that comes to it is let go.
constexpr std::size_t kUnsentMax = std::size_t{64} * 1024 * 1024;
/// Between the two sends that tear a character.
constexpr Duration kTearPause = 200us;
constexpr std::size_t kRequestIdMax = 256;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0xc0U; }

}  // namespace

ServeConnection::ServeConnection(ServeShard& shard, std::int64_t number)
    : shard_(shard), number_(number), socket_(shard.loop, *this) {}

ServeConnection::~ServeConnection() {
  shard_.loop.cancel(timer_);
  if (stream_ != 0) shard_.engine.cancel(stream_);
}

void ServeConnection::on_read(std::string_view bytes, const Stamp& stamp) {
  last_read_ = stamp.at;
  bytes_read_ += static_cast<std::int64_t>(bytes.size());
  reader_.feed(bytes);
  next_requests();
}

/// A loop and no recursion: a reply that is sent at once asks for the next request from in here.
void ServeConnection::next_requests() {
  if (in_requests_) return;
  in_requests_ = true;
  while (!busy_ && !closed_) {
    const std::optional<HttpRequest> request = reader_.next();
    if (request) {
      next_request(*request);
    } else if (reader_.refused() != 0) {
      busy_ = true;
      keep_alive_ = false;
      answer(unreadable_reply(reader_.refused()), {});
    } else {
      break;
    }
  }
  in_requests_ = false;
}

void ServeConnection::next_request(const HttpRequest& request) {
  busy_ = true;
  keep_alive_ = request.keep_alive;
  framing_ = request.http_1_0 ? ReplyWriter::Framing::kUntilClose : ReplyWriter::Framing::kChunked;
  const Route way = route(request, {shard_.setup.spec.model, shard_.setup.metrics});
  if (!way.generates) return answer(way.reply, request.header("x-request-id"));
  generate(request, *way.generates);
}

void ServeConnection::answer(const PlainReply& reply, std::string_view request_id) {
  const bool keep = keep_alive_ && !shard_.stopping();
  append_http(next_, reply, {.request_id = request_id, .keep_alive = keep});
  then_ = keep ? Then::kKeep : Then::kClose;
  flush();
}

void ServeConnection::begin_record(const HttpRequest& request) {
  record_ = std::make_unique<RequestRecord>();
  record_->id = shard_.next_record_id();
  record_->worker = shard_.index;
  record_->connection = number_;
  record_->request_id = request.header("x-request-id").substr(0, kRequestIdMax);
  if (record_->request_id.empty()) record_->request_id = fmt::format("sim-{}", record_->id);
  record_->scheduled = run_time(last_read_);
  record_->send_start = record_->sent = record_->scheduled;
  record_->reused = served_++ > 0;
  record_->bytes_out = std::exchange(bytes_read_, 0);
  chunks_.start(record_->scheduled);
  outcome_ = Outcome::kOk;
  begun_ = false;
  output_tokens_ = reasoning_tokens_ = 0;
  text_.clear();
  reasoning_.clear();
  ++shard_.counts.requests;
}

void ServeConnection::generate(const HttpRequest& request, ServeDialect dialect) {
  begin_record(request);
  std::expected<ServeRequest, ServeError> asked = read_serve_request(dialect, request.body);
  if (!asked) return refuse(asked.error(), {});
  asked_ = *std::move(asked);
  if (shard_.setup.strict_model && asked_.model != shard_.setup.spec.model) {
    return refuse({.status = 404,
                   .message = fmt::format("the model '{}' does not exist: this server has '{}'",
                                          asked_.model, shard_.setup.spec.model),
                   .param = "model",
                   .code = "model_not_found"},
                  {});
  }
  record_->tokens_server_prompt = asked_.prompt_tokens;
  record_->tokens_asked_output = asked_.output_tokens;
  shard_.metrics.prompt_tokens.add(asked_.prompt_tokens);
  shard_.metrics.request_prompt_tokens.add(asked_.prompt_tokens);
  shard_.metrics.request_max_tokens.add(asked_.output_tokens);
  stream_ = shard_.engine.submit({asked_.prompt_tokens, asked_.output_tokens}, *this);
  shard_.note_load();
}

/// Answers with an error in place of a stream; `headers` are further ones.
void ServeConnection::refuse(const ServeError& error, std::string headers) {
  record_->http_status = error.status;
  record_->error_code = error.code.empty() ? error.type : error.code;
  record_->error_text = error.message;
  outcome_ = Outcome::kHttpError;
  shard_.metrics.ended_error.add(1);
  PlainReply reply = error_reply(error);
  reply.headers = std::move(headers);
  answer(reply, record_->request_id);
}

void ServeConnection::flush() {
  if (sending_ || closed_ || timer_ != 0) return;
  if (next_.empty()) return all_sent(shard_.loop.now());
  out_.swap(next_);
  out_marks_.swap(next_marks_);
  sent_ = settled_ = 0;
  send_piece();
}

/// Everything that is due, or as little as a fault of the wire lets through.
std::size_t ServeConnection::piece() const {
  const std::size_t left = out_.size() - sent_;
  if ((wire_ & kWireSlowLoris) != 0) return std::min<std::size_t>(left, 1);
  if ((wire_ & kWireSplitUtf8) != 0) {
    for (std::size_t i = sent_; i + 1 < out_.size(); ++i) {
      if (starts_character(out_[i])) return i + 1 - sent_;
    }
  }
  return left;
}

void ServeConnection::send_piece() {
  piece_size_ = piece();
  sending_ = true;
  socket_.send(std::string_view(out_).substr(sent_, piece_size_));
}

void ServeConnection::on_send_start(Instant at) {
  if (record_ && !record_->first_byte) record_->first_byte = run_time(at);
}

void ServeConnection::on_sent(Instant at) {
  sending_ = false;
  sent_ += piece_size_;
  ++shard_.counts.reads;
  if (record_) {
    ++record_->reads;
    record_->bytes_in += static_cast<std::int64_t>(piece_size_);
    const RunTime then = run_time(at);
    bool new_send = true;
    while (settled_ < out_marks_.size() && out_marks_[settled_].end <= sent_) {
      settle(out_marks_[settled_++], then, std::exchange(new_send, false) ? kChunkNewRead : 0);
    }
  }
  if (sent_ < out_.size()) {
    const Duration pause = (wire_ & kWireSlowLoris) != 0 ? pause_ : kTearPause;
    timer_ = shard_.loop.at(at + pause, [this] {
      timer_ = 0;
      send_piece();
    });
    return;
  }
  out_.clear();
  out_marks_.clear();
  if (!next_.empty()) return flush();
  all_sent(at);
}

void ServeConnection::settle(const Mark& mark, RunTime at, std::uint8_t flags) {
  ++record_->events;
  ++shard_.counts.events;
  if (!record_->first_event) record_->first_event = at;
  if (mark.kind == MarkKind::kEvent) return;
  if (!record_->first_token) record_->first_token = at;
  if (mark.kind == MarkKind::kTokens && !record_->first_output) record_->first_output = at;
  record_->last_token = at;
  if (shard_.truth == nullptr) return;
  if (mark.kind == MarkKind::kReasoning) flags |= kChunkReasoning;
  flags |= kChunkTokensKnown;
  chunks_.append({at, mark.bytes, mark.tokens, flags});
}

/// Nothing is left to send for now; `at` is the instant of the last send.
void ServeConnection::all_sent(Instant at) {
  const Then then = std::exchange(then_, Then::kMore);
  if (then == Then::kMore) return;
  if (then == Then::kSilence) return;  // until the client closes
  close_record(run_time(at));
  busy_ = false;
  wire_ = 0;
  if (then == Then::kKeep && !shard_.stopping()) return next_requests();
  if (then == Then::kReset) {
    socket_.reset();
  } else {
    socket_.close();
  }
  drop();
}

void ServeConnection::close_record(RunTime at) {
  if (!record_) return;
  record_->done = at;
  record_->outcome = outcome_;
  if (!record_->http_status && record_->first_byte) record_->http_status = 200;
  if (outcome_ != Outcome::kHttpError) {
    record_->tokens_server_output = output_tokens_;
    if (shard_.setup.spec.tokens.reasoning > 0) {
      record_->tokens_server_reasoning = reasoning_tokens_;
    }
  }
  record_->chunks = chunks_.take();
  shard_.push(std::move(record_));
}

void ServeConnection::on_closed(std::error_code /*error*/, Instant at) {
  if (record_) {
    outcome_ = Outcome::kCancelled;
    if (stream_ != 0) shard_.metrics.ended_abort.add(1);
    close_record(run_time(at));
  }
  drop();
}

void ServeConnection::cut() {
  if (closed_) return;
  socket_.close();
  on_closed({}, shard_.loop.now());
}

void ServeConnection::drop() {
  if (std::exchange(closed_, true)) return;
  shard_.loop.cancel(std::exchange(timer_, 0));
  if (stream_ != 0) {
    shard_.engine.cancel(std::exchange(stream_, 0));
    shard_.note_load();
  }
  shard_.forget(number_);
}

void ServeConnection::guard_unsent() {
  if (next_.size() <= kUnsentMax) return;
  socket_.reset();
  on_closed({}, shard_.loop.now());
}

}  // namespace assay::internal
