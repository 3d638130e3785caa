#include "engine/target/null_target.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/text.h"
#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {
namespace {

class NullChannel final : public Channel {
 public:
  NullChannel(Loop& loop, NullTiming timing) : loop_(loop), timing_(timing) {}
  ~NullChannel() override { loop_.cancel(timer_); }
  NullChannel(const NullChannel&) = delete;
  NullChannel& operator=(const NullChannel&) = delete;

  void open(OpenDone done) override {
    timer_ = loop_.at(loop_.now() + timing_.connect, [this, done = std::move(done)] {
      open_ = true;
      done({.ok = true,
            .error = {},
            .tls_failed = false,
            .dns = {},
            .tcp = timing_.connect,
            .tls = {}});
    });
  }

  void on_idle_closed(IdleClosed /*callback*/) override {}

  void send(std::string_view wire, ReplySink& sink) override {
    sink_ = &sink;
    tokens_left_ = parse_int(wire).value_or(1);
    tokens_sent_ = 0;
    sink_->on_send_start(loop_.now());
    sink_->on_sent(loop_.now(), static_cast<std::int64_t>(wire.size()));
    timer_ = loop_.at(loop_.now() + timing_.first, [this] { tick(); });
  }

  void cancel() override {
    loop_.cancel(timer_);
    sink_ = nullptr;
    open_ = false;
  }

  [[nodiscard]] bool reusable() const override { return open_; }

 private:
  void tick() {
    const Instant now = loop_.now();
    const Stamp stamp{now, now, StampSource::kKernel};
    if (tokens_sent_ == 0) sink_->on_status(200, "null");
    do {
      if (sink_ != nullptr) sink_->on_read(stamp, 1);
      TokenEvent event;
      event.text = "x";
      event.tokens = 1;
      if (sink_ != nullptr) sink_->on_event(event, stamp);
      if (sink_ == nullptr) return;  // cancelled by one of its callbacks
      ++tokens_sent_;
    } while (timing_.gap.count() == 0 && tokens_sent_ < tokens_left_);
    if (tokens_sent_ < tokens_left_) {
      timer_ = loop_.at(now + timing_.gap, [this] { tick(); });
      return;
    }
    TokenEvent last;
    last.finish_reason = "length";
    last.choices_finished = 1;
    last.end = true;
    last.usage.output = tokens_sent_;
    sink_->on_event(last, stamp);
    ReplySink* const sink = std::exchange(sink_, nullptr);
    if (sink != nullptr) sink->on_end(ReplyEnd::kComplete, now, {});
  }

  Loop& loop_;
  NullTiming timing_;
  ReplySink* sink_ = nullptr;
  Loop::TimerId timer_ = 0;
  std::int64_t tokens_left_ = 0;
  std::int64_t tokens_sent_ = 0;
  bool open_ = false;
};

}  // namespace

std::string NullTarget::encode(const RequestPlan& plan) const {
  return std::to_string(plan.tokens_output);
}

std::unique_ptr<Channel> NullTarget::channel(Loop& loop) {
  return std::make_unique<NullChannel>(loop, timing_);
}

}  // namespace assay
