// One attempt of one request while it is in flight: hears what the target says and turns it into a
// RequestRecord by the definitions of docs/formats/ledger.md. No socket, no clock of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "base/stats/histogram.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "engine/load/builder.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {

enum class Phase : std::uint8_t { kWarmup, kSteady, kDrain };
inline constexpr int kPhaseCount = 3;

/// What all exchanges of a worker share.
struct ExchangeContext {
  Instant start{};  // of the run
  std::int32_t worker = 0;
  int choices = 1;
  bool keep_text = false;
  std::vector<std::string> secrets;  // taken out of every text that a server sends back
  WorkerRow counts;
  std::string server;  // Server header of the first reply
  std::array<Histogram, kPhaseCount> send_lag, receive_lag;
};

class Exchange;

/// Told when an exchange is over; the record may be taken then.
class ExchangeOwner {
 public:
  virtual ~ExchangeOwner() = default;
  virtual void on_exchange_end(Exchange& exchange, Instant at) = 0;
  /// The connection closed before one byte of a response. True: the request goes out again on
  /// another one.
  virtual bool send_again(Exchange& exchange, Instant at) = 0;
};

class Exchange : public ReplySink {
 public:
  Exchange(ExchangeContext& context, ExchangeOwner& owner) : context_(context), owner_(owner) {}

  /// Begins with the instant it was due; `slot` is the closed loop's, −1 in open loop.
  void begin(std::unique_ptr<PreparedRequest> request, RunTime scheduled, Phase phase,
             std::int64_t slot);
  void set_admitted(Instant at, std::int64_t connection, const OpenResult* fresh);
  /// Forgets that it was sent: it will be admitted and sent again.
  void begin_again();
  /// Ends without the target's word: refused, timed out, cancelled, no connection.
  void end_by_client(Outcome outcome, Instant at, std::string_view code, std::string_view text);

  [[nodiscard]] std::string_view wire() const { return request_->wire; }
  [[nodiscard]] std::int64_t slot() const { return slot_; }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const RequestRecord& record() const { return *record_; }
  [[nodiscard]] std::unique_ptr<RequestRecord> take_record() { return std::move(record_); }

  void on_send_start(Instant at) override;
  void on_sent(Instant at, std::int64_t bytes) override;
  void on_read(const Stamp& stamp, std::int64_t bytes) override;
  void on_status(int http_status, std::string_view server) override;
  void on_event(const TokenEvent& event, const Stamp& stamp) override;
  void on_error_body(std::string_view code, std::string_view text) override;
  void on_end(ReplyEnd end, Instant at, std::string_view detail) override;

 private:
  [[nodiscard]] RunTime run_time(Instant at) const { return at - context_.start; }
  void add_chunk(const TokenEvent& event, const Stamp& stamp);
  void add_usage(const Usage& usage);
  void note_error(std::string_view code, std::string_view text);
  [[nodiscard]] std::string redacted(std::string_view raw) const;
  [[nodiscard]] Outcome judge(ReplyEnd end) const;
  /// Why, where neither the server nor the wire said so.
  [[nodiscard]] std::string_view explanation() const;
  void close(Instant at);

  ExchangeContext& context_;
  ExchangeOwner& owner_;
  std::unique_ptr<PreparedRequest> request_;
  std::unique_ptr<RequestRecord> record_;
  ChunkWriter chunks_;
  Phase phase_ = Phase::kWarmup;
  std::int64_t slot_ = -1;
  int choices_finished_ = 0;
  bool end_seen_ = false, error_seen_ = false, output_seen_ = false, whole_broken_ = false;
  bool new_read_ = false;
  bool counts_known_ = true;       // every chunk so far told its tokens
  std::int64_t usage_before_ = 0;  // output tokens told by the last chunk with a usage
};

}  // namespace assay
