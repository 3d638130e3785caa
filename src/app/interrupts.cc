#include "app/interrupts.h"

#include <signal.h>

#include <ctime>
#include <functional>
#include <stop_token>
#include <utility>

namespace assay {

Interrupts::Interrupts(std::function<void(int nth)> on_signal) {
  sigset_t caught;
  sigemptyset(&caught);
  sigaddset(&caught, SIGINT);
  sigaddset(&caught, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &caught, &before_);
  waiter_ = std::jthread([caught, call = std::move(on_signal)](const std::stop_token& stop) {
    // Looks up often enough for a prompt end, seldom enough to cost nothing.
    constexpr timespec kPeriod{0, 50'000'000};
    int count = 0;
    while (!stop.stop_requested()) {
      if (sigtimedwait(&caught, nullptr, &kPeriod) > 0) call(++count);
    }
  });
}

Interrupts::~Interrupts() {
  waiter_.request_stop();
  waiter_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace assay
