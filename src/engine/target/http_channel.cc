#include "engine/target/http_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/http_response.h"
#include "engine/net/socket.h"
#include "engine/net/sse.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/openai.h"
#include "engine/target/target.h"

namespace assay::internal {
namespace {
/// What the end of a body may take after [DONE] (design: definitions).
constexpr Duration kEndGrace = 100ms;
}  // namespace

void ReplyDecoder::start(ReplySink& sink) {
  sink_ = &sink;
  http_.reset();
  sse_.reset();
  kind_ = Body::kUnknown;
  end_seen_ = over_ = false;
  body_.clear();
  error_.clear();
}

bool ReplyDecoder::feed(std::string_view bytes, const Stamp& stamp) {
  stamp_ = stamp;
  const bool ok = http_.feed(bytes, *this);
  return error_.empty() && (ok || http_.complete());
}

bool ReplyDecoder::finish() {
  const bool whole = http_.finish(*this);
  finish_stream();
  return whole && error_.empty();
}

void ReplyDecoder::finish_stream() {
  if (kind_ != Body::kStream || end_seen_) return;
  over_ = true;
  sse_.finish(*this);
}

void ReplyDecoder::on_head(const HttpHead& head) {
  if (sink_ == nullptr) return;
  sink_->on_status(head.status, head.server);
  if (head.status >= 200 && head.status < 300) return;
  kind_ = Body::kError;
  if (head.status >= 300 && head.status < 400 && !head.location.empty()) {
    kind_ = Body::kRedirect;
    body_ = fmt::format("a redirect, which is not followed: give this URL instead: {}",
                        head.location.substr(0, kErrorBodyMax));
  }
}

void ReplyDecoder::on_body(std::string_view bytes) {
  if (kind_ == Body::kRedirect || !error_.empty()) return;  // its own text says less
  if (kind_ == Body::kUnknown) {
    // Content types lie; the first byte that is no blank tells an event stream from an object.
    const std::string_view seen = trim(bytes);
    if (!seen.empty()) {
      kind_ = seen.front() == '{' || seen.front() == '[' ? Body::kWhole : Body::kStream;
    }
  }
  if (kind_ == Body::kStream || kind_ == Body::kUnknown) {
    if (!sse_.feed(bytes, *this)) {
      error_ = fmt::format("an event of the stream has over {} bytes", SseDecoder::kEventMax);
    }
    return;
  }
  const std::size_t bound = kind_ == Body::kError ? kErrorBodyMax : kWholeBodyMax;
  body_.append(bytes.substr(0, bound - std::min(bound, body_.size())));
}

void ReplyDecoder::on_message_end() {
  if (kind_ == Body::kWhole) hand_over_whole();
  finish_stream();
  if (sink_ == nullptr || (kind_ != Body::kError && kind_ != Body::kRedirect)) return;
  const TokenEvent event = dialect_.decode_error_body(body_);
  sink_->on_error_body(event.error_code, event.error_text);
}

void ReplyDecoder::hand_over_whole() {
  if (sink_ == nullptr) return;
  const std::size_t size = body_.size();
  body_.append(SseDecoder::kPadding, ' ');
  TokenEvent event = dialect_.decode({}, std::string_view(body_).substr(0, size));
  event.whole = true;
  // An unstreamed reply has no end mark of its own: its end is the end of the body.
  event.end = !event.malformed && !event.error;
  sink_->on_event(event, stamp_);
}

void ReplyDecoder::on_sse_event(std::string_view type, std::string_view data) {
  if (sink_ == nullptr) return;
  const TokenEvent event = dialect_.decode(type, data);
  // An event without its blank line may be torn, and is dropped; an end mark can't be.
  if (over_ && !event.end) return;
  end_seen_ = end_seen_ || event.end;
  sink_->on_event(event, stamp_);
}

HttpChannel::HttpChannel(EpollLoop& loop, const std::vector<Address>& addresses,
                         OpenAiDecoder& dialect)
    : loop_(loop), addresses_(addresses), decoder_(dialect) {}

HttpChannel::~HttpChannel() { loop_.cancel(end_timer_); }

void HttpChannel::open(OpenDone done) {
  open_done_ = std::move(done);
  next_address_ = 0;
  opening_since_ = loop_.now();
  try_next_address();
}

void HttpChannel::try_next_address() {
  end_timer_ = 0;
  SocketHandler& handler = *this;
  socket_ = std::make_unique<Socket>(loop_, handler);
  socket_->connect(addresses_[next_address_++]);
}

void HttpChannel::on_idle_closed(IdleClosed callback) { idle_closed_ = std::move(callback); }

void HttpChannel::on_connect(std::error_code error) {
  if (error && next_address_ < addresses_.size()) {
    // Not from inside the socket's own callback.
    end_timer_ = loop_.at(loop_.now(), [this] { try_next_address(); });
    return;
  }
  OpenResult result;
  result.ok = !error;
  result.tcp = loop_.now() - opening_since_;
  if (error) {
    result.error = fmt::format("{}: {}", addresses_[next_address_ - 1].text, error.message());
    socket_->close();
  }
  reusable_ = result.ok;
  const OpenDone done = std::move(open_done_);
  done(result);
}

void HttpChannel::send(std::string_view wire, ReplySink& sink) {
  CHECK(sink_ == nullptr && reusable_, "the channel is not free");
  sink_ = &sink;
  reusable_ = false;
  wire_size_ = static_cast<std::int64_t>(wire.size());
  decoder_.start(sink);
  socket_->send(wire);
}

void HttpChannel::cancel() {
  sink_ = nullptr;
  decoder_.mute();
  reusable_ = false;
  loop_.cancel(std::exchange(end_timer_, 0));
  if (socket_) socket_->close();
}

void HttpChannel::on_send_start(Instant at) {
  if (sink_ != nullptr) sink_->on_send_start(at);
}

void HttpChannel::on_sent(Instant at) {
  if (sink_ != nullptr) sink_->on_sent(at, wire_size_);
}

void HttpChannel::on_read(std::string_view bytes, const Stamp& stamp) {
  if (sink_ == nullptr) {
    // Nobody asked for these bytes: the connection can't be trusted any more.
    on_closed({}, stamp.at);
    return;
  }
  sink_->on_read(stamp, static_cast<std::int64_t>(bytes.size()));
  const bool ok = decoder_.feed(bytes, stamp);
  if (sink_ == nullptr) return;  // cancelled by one of its callbacks
  if (!ok) return end(ReplyEnd::kProtocol, stamp.at, decoder_.error());
  if (decoder_.complete()) return end(ReplyEnd::kComplete, stamp.at, {});
  if (decoder_.end_seen() && end_timer_ == 0) {
    end_seen_at_ = stamp.at;
    end_timer_ = loop_.at(loop_.now() + kEndGrace, [this] {
      end(ReplyEnd::kComplete, end_seen_at_, "no end of the body within 100 ms after [DONE]");
    });
  }
}

void HttpChannel::on_closed(std::error_code error, Instant at) {
  reusable_ = false;
  if (sink_ == nullptr) {
    socket_->close();
    if (idle_closed_) {
      const IdleClosed callback = idle_closed_;
      callback();
    }
    return;
  }
  const bool started = decoder_.started();  // before finish(), which may call it failed
  const bool whole = !error && decoder_.finish();
  if (sink_ == nullptr) return;  // cancelled by one of its callbacks
  if (whole) return end(ReplyEnd::kComplete, at, {});
  if (error || !started) {
    return end(ReplyEnd::kReset, at,
               error ? error.message() : "the connection closed before a response");
  }
  end(ReplyEnd::kClosed, at, decoder_.error());
}

void HttpChannel::end(ReplyEnd how, Instant at, const std::string& detail) {
  loop_.cancel(end_timer_);
  end_timer_ = 0;
  reusable_ =
      how == ReplyEnd::kComplete && decoder_.complete() && decoder_.keep_alive() && socket_->open();
  if (!reusable_) socket_->close();
  ReplySink* const sink = std::exchange(sink_, nullptr);
  // Last: the sink may send again on this channel, or destroy it.
  sink->on_end(how, at, detail);
}

}  // namespace assay::internal
