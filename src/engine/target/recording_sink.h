// A ReplySink that writes down what it is told, for tests; views are copied.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/time.h"
#include "engine/net/stamp.h"
#include "engine/target/event.h"
#include "engine/target/target.h"

namespace assay {

struct RecordingSink final : ReplySink {
  struct Heard {
    std::string text, reasoning, finish_reason, error_code, error_text;
    bool malformed = false, end = false, whole = false, error = false;
    Usage usage;
    Instant at;
  };

  void on_send_start(Instant at) override {
    send_start = at;
    call("start");
  }
  void on_sent(Instant at, std::int64_t bytes) override {
    sent = at;
    bytes_sent = bytes;
    call("sent");
  }
  void on_read(const Stamp& /*stamp*/, std::int64_t bytes) override {
    bytes_read += bytes;
    if (!calls.ends_with("read ")) call("read");
  }
  void on_status(int http_status, std::string_view from) override {
    status = http_status;
    server = from;
    call("status");
  }
  void on_event(const TokenEvent& e, const Stamp& stamp) override {
    events.push_back({std::string(e.text), std::string(e.reasoning), std::string(e.finish_reason),
                      std::string(e.error_code), std::string(e.error_text), e.malformed, e.end,
                      e.whole, e.error, e.usage, stamp.at});
    text += e.text;
    call("event");
    if (at_event) at_event();
  }
  void on_error_body(std::string_view code, std::string_view body) override {
    error_code = code;
    error_text = body;
    call("error_body");
  }
  void on_end(ReplyEnd how, Instant at, std::string_view why) override {
    end = how;
    ended = at;
    detail = why;
    call("end");
    if (at_end) at_end();
  }
  void call(std::string_view name) { calls.append(name).append(" "); }

  std::string calls, text, server, error_code, error_text, detail;
  std::vector<Heard> events;
  int status = 0;
  std::int64_t bytes_sent = 0, bytes_read = 0;
  Instant send_start{}, sent{}, ended{};
  ReplyEnd end{};
  std::function<void()> at_event, at_end;
};

}  // namespace assay
