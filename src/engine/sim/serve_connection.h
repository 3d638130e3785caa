// One connection to the engine's server: reads requests, hands those that generate to the shard's
// engine, sends what the engine emits, and notes at which instant each event really left. One reply
// at a time; requests that come early wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/net/loop.h"
#include "engine/net/socket.h"
#include "engine/net/stamp.h"
#include "engine/sim/emission.h"
#include "engine/sim/http_request.h"
#include "engine/sim/model.h"
#include "engine/sim/reply_writer.h"
#include "engine/sim/serve_request.h"
#include "engine/sim/serve_routes.h"
#include "engine/sim/serve_shard.h"

namespace assay::internal {

class ServeConnection final : private SocketHandler, private SimStream {
 public:
  ServeConnection(ServeShard& shard, std::int64_t number);
  ~ServeConnection() override;
  ServeConnection(const ServeConnection&) = delete;
  ServeConnection& operator=(const ServeConnection&) = delete;

  void adopt(int descriptor) { socket_.adopt(descriptor); }
  [[nodiscard]] bool busy() const { return busy_; }
  /// Closes now; a reply under way is recorded as cancelled.
  void cut();

 private:
  /// What becomes of the connection once everything is sent.
  enum class Then : std::uint8_t { kMore, kKeep, kClose, kReset, kSilence };
  enum class MarkKind : std::uint8_t { kEvent, kTokens, kReasoning };
  /// An event that ends at `end` in the bytes under way.
  struct Mark {
    std::size_t end = 0;
    std::uint32_t bytes = 0, tokens = 0;
    MarkKind kind = MarkKind::kEvent;
  };

  void on_connect(std::error_code /*error*/) override {}
  void on_send_start(Instant at) override;
  void on_sent(Instant at) override;
  void on_read(std::string_view bytes, const Stamp& stamp) override;
  void on_closed(std::error_code error, Instant at) override;
  void on_emission(const Emission& emission) override;

  // Requests.
  void next_requests();
  void next_request(const HttpRequest& request);
  void answer(const PlainReply& reply, std::string_view request_id);
  void generate(const HttpRequest& request, ServeDialect dialect);
  void begin_record(const HttpRequest& request);
  void refuse(const ServeError& error, std::string headers);

  // Replies: serve_reply.cc.
  void begin_reply(const Emission& emission);
  void flush_with_instant(Duration at);
  void count_tokens(const Emission& emission);
  void count_end(const Emission& emission);
  void write(const Emission& emission);
  void write_whole(const Emission& emission);
  void write_fault(const FaultRule& fault);
  void refuse_by(const FaultRule& fault);
  void end_orderly();
  void mark(MarkKind kind, std::size_t bytes = 0, std::uint32_t tokens = 0);
  ReplyWriter::Counts totals();

  // Bytes.
  void flush();
  void send_piece();
  [[nodiscard]] std::size_t piece() const;
  void settle(const Mark& mark, RunTime at, std::uint8_t flags);
  void all_sent(Instant at);
  void close_record(RunTime at);
  void guard_unsent();
  void drop();
  [[nodiscard]] RunTime run_time(Instant at) const { return at - shard_.setup.origin; }

  ServeShard& shard_;
  const std::int64_t number_;
  Socket socket_;
  HttpRequestReader reader_;
  Instant last_read_{};
  std::int64_t bytes_read_ = 0;  // since the last request
  bool busy_ = false, keep_alive_ = true, closed_ = false, in_requests_ = false;
  std::int64_t served_ = 0;  // requests on this connection

  // The reply under way.
  ServeRequest asked_;
  ReplyWriter writer_;
  bool begun_ = false;
  StreamId stream_ = 0;
  std::unique_ptr<RequestRecord> record_;  // while a request is with us that generates
  ChunkWriter chunks_;
  std::int64_t output_tokens_ = 0, reasoning_tokens_ = 0;
  Duration first_token_{0}, last_token_{0}, last_emission_{0};  // as the engine has it
  std::string text_, reasoning_;                                // of a reply that is not streamed
  ReplyWriter::Framing framing_ = ReplyWriter::Framing::kChunked;
  Outcome outcome_ = Outcome::kOk;
  Then then_ = Then::kMore;
  std::uint8_t wire_ = 0;
  Duration pause_{0};
  Loop::TimerId timer_ = 0;

  std::string out_, next_;  // being sent; waiting behind it
  std::vector<Mark> out_marks_, next_marks_;
  std::size_t sent_ = 0, piece_size_ = 0, settled_ = 0;
  bool sending_ = false;
};

}  // namespace assay::internal
