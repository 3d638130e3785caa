// Ctrl-C and termination as calls instead of signals. While one lives, SIGINT and SIGTERM are
// blocked in the thread that made it and in threads started from there; a thread of its own waits
// for them. Make it before any other thread.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace assay {

class Interrupts {
 public:
  /// `on_signal(nth)` is called from the waiting thread, nth counting from 1.
  explicit Interrupts(std::function<void(int nth)> on_signal);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  sigset_t before_{};
  std::jthread waiter_;
};

}  // namespace assay
