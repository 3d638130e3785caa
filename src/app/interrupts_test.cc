#include "app/interrupts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <utility>

namespace assay {
namespace {

TEST(Interrupts, CountsSignalsAndRestoresTheMask) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::promise<void> first, second;
  {
    const Interrupts interrupts([&](int nth) { (nth == 1 ? first : second).set_value(); });
    kill(getpid(), SIGINT);
    first.get_future().wait();
    kill(getpid(), SIGTERM);
    second.get_future().wait();
  }
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

}  // namespace
}  // namespace assay
