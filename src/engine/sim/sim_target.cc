#include "engine/sim/sim_target.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/stamp.h"
#include "engine/sim/emission.h"
#include "engine/sim/model.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/sim_text.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

constexpr std::string_view kServerName = "assay-sim";

/// A seat at the engine.
class SimChannel final : public Channel, private SimStream {
 public:
  explicit SimChannel(std::shared_ptr<SimEngine> engine) : engine_(std::move(engine)) {}
  ~SimChannel() override { leave(); }
  SimChannel(const SimChannel&) = delete;
  SimChannel& operator=(const SimChannel&) = delete;

  void open(OpenDone done) override {
    opening_ = engine_->loop().at(engine_->loop().now(), [this, done = std::move(done)] {
      opening_ = 0;
      open_ = true;
      OpenResult result;
      result.ok = true;
      done(result);
    });
  }

  void on_idle_closed(IdleClosed /*callback*/) override {}

  void send(std::string_view wire, ReplySink& sink) override {
    sink_ = &sink;
    const std::size_t blank = wire.find(' ');
    SimRequest request;
    request.prompt_tokens = parse_int(wire.substr(0, blank)).value_or(1);
    request.output_tokens = parse_int(wire.substr(blank + 1)).value_or(1);
    prompt_tokens_ = request.prompt_tokens;
    output_tokens_ = reasoning_tokens_ = 0;
    const Instant now = engine_->loop().now();
    sink_->on_send_start(now);
    sink_->on_sent(now, static_cast<std::int64_t>(wire.size()));
    stream_ = engine_->submit(request, *this);
  }

  void cancel() override {
    leave();
    open_ = false;
  }

  [[nodiscard]] bool reusable() const override { return open_; }

 private:
  void leave() {
    engine_->loop().cancel(opening_);
    sink_ = nullptr;
    if (stream_ != 0) engine_->cancel(std::exchange(stream_, 0));
  }

  void on_emission(const Emission& emission) override;
  void tell(const TokenEvent& event) {
    if (sink_ != nullptr) sink_->on_event(event, stamp_);
  }
  void tell_tokens(const Emission& emission);
  void tell_finish();
  void tell_fault(const FaultRule& fault);
  void tell_error(FaultKind kind);
  void end(ReplyEnd how, std::string_view detail);
  [[nodiscard]] Usage usage() const {
    Usage out;
    out.prompt = prompt_tokens_;
    out.output = output_tokens_;
    if (engine_->core().spec().tokens.reasoning > 0) out.reasoning = reasoning_tokens_;
    return out;
  }

  std::shared_ptr<SimEngine> engine_;
  ReplySink* sink_ = nullptr;
  StreamId stream_ = 0;
  Loop::TimerId opening_ = 0;
  Stamp stamp_;
  std::string text_;
  std::int64_t prompt_tokens_ = 0, output_tokens_ = 0, reasoning_tokens_ = 0;
  bool open_ = false;
};

void SimChannel::on_emission(const Emission& emission) {
  const Instant now = engine_->loop().now();
  stamp_ = {now, now, StampSource::kKernel};
  if (emission.last()) stream_ = 0;
  const bool bytes = emission.fault == nullptr || emission.flags != kEmitFault ||
                     emission.fault->kind < FaultKind::kReset;
  if (bytes) sink_->on_read(stamp_, 1);
  if ((emission.flags & kEmitHead) != 0 && sink_ != nullptr) sink_->on_status(200, kServerName);
  if ((emission.flags & kEmitRole) != 0) tell(TokenEvent{});
  if ((emission.flags & kEmitMalformed) != 0) {
    TokenEvent event;
    event.malformed = true;
    tell(event);
  }
  if ((emission.flags & kEmitTokens) != 0) tell_tokens(emission);
  if ((emission.flags & kEmitFinish) != 0) tell_finish();
  if ((emission.flags & kEmitFault) != 0) tell_fault(*emission.fault);
  if ((emission.flags & kEmitEnd) == 0) return;
  TokenEvent done;
  done.end = true;
  tell(done);
  end(ReplyEnd::kComplete, {});
}

void SimChannel::tell_tokens(const Emission& emission) {
  text_.clear();
  append_sim_tokens(text_, emission.stream, emission.first_token, emission.tokens);
  output_tokens_ += emission.tokens;
  TokenEvent event;
  if (emission.reasoning) {
    reasoning_tokens_ += emission.tokens;
    event.reasoning = text_;
  } else {
    event.text = text_;
  }
  if (engine_->core().spec().tokens.usage == TokenSpec::Usage::kEach) event.usage = usage();
  tell(event);
}

void SimChannel::tell_finish() {
  TokenEvent finish;
  finish.finish_reason = "length";
  finish.choices_finished = 1;
  tell(finish);
  if (engine_->core().spec().tokens.usage == TokenSpec::Usage::kNone) return;
  TokenEvent counted;
  counted.usage = usage();
  tell(counted);
}

void SimChannel::tell_error(FaultKind kind) {
  TokenEvent event;
  event.error = true;
  if (kind != FaultKind::kErrorString) event.error_code = "internal_error";
  event.error_text = "the simulated engine failed as asked";
  tell(event);
}

void SimChannel::tell_fault(const FaultRule& fault) {
  if (sink_ == nullptr) return;
  switch (fault.kind) {
    case FaultKind::kHttpError: {
      const bool full = &fault == &engine_->core().spec().refusal;
      sink_->on_status(fault.status, kServerName);
      if (sink_ == nullptr) return;
      sink_->on_error_body(full ? "queue_full" : "unavailable",
                           full ? "the queue is full" : "the simulated engine refused as asked");
      return end(ReplyEnd::kComplete, {});
    }
    case FaultKind::kErrorObject:
    case FaultKind::kErrorString:
    case FaultKind::kErrorEvent:
      tell_error(fault.kind);
      return end(ReplyEnd::kComplete, {});
    case FaultKind::kReset:
      open_ = false;
      return end(ReplyEnd::kReset, "the connection was reset");
    case FaultKind::kClose:
      open_ = false;
      return end(ReplyEnd::kClosed, "the connection was closed in mid-stream");
    case FaultKind::kMissingEnd:
      return end(ReplyEnd::kComplete, "the stream has no end");
    case FaultKind::kHalfOpen:
      return;  // silence, until the client has had enough
    case FaultKind::kMalformed:
    case FaultKind::kSlowLoris:
    case FaultKind::kComments:
    case FaultKind::kCrLf:
    case FaultKind::kSplitUtf8:
      CHECK(false, "{} ends no stream", fault_name(fault.kind));
  }
}

void SimChannel::end(ReplyEnd how, std::string_view detail) {
  ReplySink* const sink = std::exchange(sink_, nullptr);
  if (sink != nullptr) sink->on_end(how, engine_->loop().now(), detail);
}

}  // namespace

SimTarget::SimTarget(SimSpec spec, std::uint64_t seed) : spec_(std::move(spec)), seed_(seed) {}
SimTarget::~SimTarget() = default;

std::string SimTarget::encode(const RequestPlan& plan) const {
  return fmt::format("{} {}", count_sim_tokens(plan.prompt), plan.tokens_output);
}

std::unique_ptr<Channel> SimTarget::channel(Loop& loop) {
  if (!engine_) engine_ = std::make_shared<SimEngine>(loop, spec_, seed_);
  CHECK(&engine_->loop() == &loop, "one engine, one loop");
  return std::make_unique<SimChannel>(engine_);
}

}  // namespace assay
