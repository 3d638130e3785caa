// Target: what `load` sends requests to. Two kinds exist: HTTP endpoints in their dialects, and
// `null`, which answers at once in this process and shows the load engine's own ceiling. `load`
// owns when a request goes and where its record lands; a Target owns bytes and connections.
//
// A Channel carries one request at a time: an HTTP/1.1 connection, or a seat at an in-process
// engine. It lives on one Loop and calls its ReplySink from that loop only. From inside send() come
// on_send_start and, where the whole request went at once, on_sent; every other call comes later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"

namespace assay {

/// What to ask, in the target's terms. Encoded into bytes ahead of time, off the hot path.
struct RequestPlan {
  std::string prompt;
  std::int64_t tokens_output = 0;
  std::string request_id;  // sent as x-request-id
};

/// How opening a channel went.
struct OpenResult {
  bool ok = false;
  std::string error;  // one sentence, where not ok
  bool tls_failed = false;
  Duration dns{0}, tcp{0}, tls{0};
};

/// Why a reply is over, on the wire.
enum class ReplyEnd : std::uint8_t {
  kComplete,  // the body ended as HTTP says it should
  kClosed,    // the peer closed before that
  kReset,     // the connection broke (ECONNRESET, EPIPE, …)
  kProtocol,  // not HTTP, or over a stated bound
};

class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// The first send() is about to happen / the send() that took the last byte is about to happen.
  virtual void on_send_start(Instant at) = 0;
  virtual void on_sent(Instant at, std::int64_t bytes) = 0;
  /// Every read, before its events.
  virtual void on_read(const Stamp& stamp, std::int64_t bytes) = 0;
  virtual void on_status(int http_status, std::string_view server) = 0;
  virtual void on_event(const TokenEvent& event, const Stamp& stamp) = 0;
  /// The start of a body that is no stream of ours (an HTTP error), for its message.
  virtual void on_error_body(std::string_view code, std::string_view text) = 0;
  /// Last call for this request. `detail` explains anything but kComplete.
  virtual void on_end(ReplyEnd end, Instant at, std::string_view detail) = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;
  using OpenDone = std::function<void(const OpenResult&)>;
  /// Called when an open, idle channel is closed by the peer.
  using IdleClosed = std::function<void()>;

  virtual void open(OpenDone done) = 0;
  virtual void on_idle_closed(IdleClosed callback) = 0;
  /// `wire` was made by Target::encode and must live until on_sent. The channel must be
  /// open and idle.
  virtual void send(std::string_view wire, ReplySink& sink) = 0;
  /// Drops the request in flight: no further call to its sink. The channel is closed.
  virtual void cancel() = 0;
  /// After a reply's end: may it carry another request?
  [[nodiscard]] virtual bool reusable() const = 0;
};

class Target {
 public:
  virtual ~Target() = default;
  /// Request bytes for a plan. Thread-safe; called by the builder.
  [[nodiscard]] virtual std::string encode(const RequestPlan& plan) const = 0;
  /// A new channel on `loop`, not yet open. Called from the loop's thread.
  [[nodiscard]] virtual std::unique_ptr<Channel> channel(Loop& loop) = 0;
  /// Choices that a reply must finish to be whole: the user's `n`.
  [[nodiscard]] virtual int choices() const = 0;
};

}  // namespace assay
