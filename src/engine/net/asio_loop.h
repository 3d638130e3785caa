// The Loop over real time and real sockets: one io_context, one thread, one timerfd. With
// Pacing::kPrecise it spins through the last 60 us before each timer, which brings its lateness
// from tens of microseconds to none, for a core of CPU. It owns the read buffer that every socket
// of the loop reads into.
#pragma once

#include <cstddef>
#include <memory>

#include "base/core/time.h"
#include "engine/net/loop.h"

namespace boost::asio {
class io_context;
}

namespace assay {

class AsioLoop final : public Loop {
 public:
  enum class Pacing { kTimer, kPrecise };
  /// Readable bytes behind every read, so that a vectorised parser may run over its end.
  static constexpr std::size_t kReadPadding = 64;
  static constexpr std::size_t kReadSize = 64 * 1024;

  explicit AsioLoop(Clocks clocks = {}, Pacing pacing = Pacing::kTimer);
  ~AsioLoop() override;
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  [[nodiscard]] Instant now() const override { return clocks_.now(); }
  void post(Task task) override;  // thread-safe
  TimerId at(Instant when, Task task) override;
  void cancel(TimerId id) override;

  /// Runs until stop(), or until no work is left: an open timer or socket wait is work.
  void run();
  /// Runs until stop(), also while there is nothing to do: for a loop that other threads post to.
  void run_until_stopped();
  void stop();  // thread-safe

  [[nodiscard]] const Clocks& clocks() const { return clocks_; }
  /// kReadSize bytes and kReadPadding more; free for use until the next turn of the loop.
  [[nodiscard]] char* read_buffer() { return read_buffer_.get(); }
  [[nodiscard]] boost::asio::io_context& context();

 private:
  struct Core;
  void arm();
  void run_due();

  Clocks clocks_;
  Pacing pacing_;
  std::unique_ptr<char[]> read_buffer_;
  std::unique_ptr<Core> core_;
};

}  // namespace assay
