// One HTTP/1.1 connection as a Channel: socket, response decoder, event stream decoder and dialect
// in a row.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/http_response.h"
#include "engine/net/socket.h"
#include "engine/net/sse.h"
#include "engine/net/stamp.h"
#include "engine/target/openai.h"
#include "engine/target/target.h"

namespace assay::internal {

/// Turns the bytes of one reply into calls on a ReplySink; no socket in it, so tests feed it bytes
/// torn at will.
class ReplyDecoder final : private HttpResponseSink, private SseSink {
 public:
  explicit ReplyDecoder(OpenAiDecoder& dialect) : dialect_(dialect) {}

  void start(ReplySink& sink);
  /// False: the reply broke HTTP or a bound; error() says how. `bytes` need SseDecoder::kPadding
  /// behind them.
  bool feed(std::string_view bytes, const Stamp& stamp);
  /// The peer closed: true when that is how this reply was to end.
  bool finish();
  /// No further call to the sink, also when called from inside one.
  void mute() { sink_ = nullptr; }

  [[nodiscard]] bool complete() const { return http_.complete(); }
  [[nodiscard]] bool started() const { return http_.started(); }
  [[nodiscard]] bool keep_alive() const { return http_.keep_alive(); }
  /// The stream said [DONE].
  [[nodiscard]] bool end_seen() const { return end_seen_; }
  [[nodiscard]] const std::string& error() const { return error_.empty() ? http_.error() : error_; }

 private:
  static constexpr std::size_t kErrorBodyMax = 8 * 1024;
  static constexpr std::size_t kWholeBodyMax = 64 * 1024 * 1024;
  enum class Body : std::uint8_t { kUnknown, kStream, kWhole, kError, kRedirect };

  void on_head(const HttpHead& head) override;
  void on_body(std::string_view bytes) override;
  void on_message_end() override;
  void on_sse_event(std::string_view type, std::string_view data) override;
  void hand_over_whole();
  void finish_stream();

  OpenAiDecoder& dialect_;
  ReplySink* sink_ = nullptr;  // null: muted
  HttpResponseDecoder http_;
  SseDecoder sse_;
  Stamp stamp_;
  Body kind_ = Body::kUnknown;
  bool end_seen_ = false;
  bool over_ = false;  // no more bytes come: what is left may be torn
  std::string body_;   // of an error or of an unstreamed reply
  std::string error_;
};

class HttpChannel final : public Channel, private SocketHandler {
 public:
  HttpChannel(EpollLoop& loop, const std::vector<Address>& addresses, OpenAiDecoder& dialect);
  ~HttpChannel() override;
  HttpChannel(const HttpChannel&) = delete;
  HttpChannel& operator=(const HttpChannel&) = delete;

  void open(OpenDone done) override;
  void on_idle_closed(IdleClosed callback) override;
  void send(std::string_view wire, ReplySink& sink) override;
  void cancel() override;
  [[nodiscard]] bool reusable() const override { return reusable_; }

 private:
  void on_connect(std::error_code error) override;
  void on_send_start(Instant at) override;
  void on_sent(Instant at) override;
  void on_read(std::string_view bytes, const Stamp& stamp) override;
  void on_closed(std::error_code error, Instant at) override;
  void try_next_address();
  void end(ReplyEnd how, Instant at, const std::string& detail);

  EpollLoop& loop_;
  const std::vector<Address>& addresses_;
  std::size_t next_address_ = 0;
  std::unique_ptr<Socket> socket_;
  Instant opening_since_{};
  OpenDone open_done_;
  IdleClosed idle_closed_;
  ReplyDecoder decoder_;
  ReplySink* sink_ = nullptr;  // of the request in flight
  std::int64_t wire_size_ = 0;
  Loop::TimerId end_timer_ = 0;
  Instant end_seen_at_{};
  bool reusable_ = false;
};

}  // namespace assay::internal
