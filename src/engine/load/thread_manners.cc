#include "engine/load/thread_manners.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace assay {
namespace {

/// Since Linux 6.12 the fair scheduler takes a thread's wish for a slice; the shortest it grants. A
/// thread with a shorter slice than the running one preempts it on waking; with the default (about
/// 3 ms) a timer can fire that late. Older kernels ignore the wish.
constexpr std::uint64_t kSliceNs = 100'000;

void ask(std::uint32_t policy, int nicer_by) {
  constexpr int kNicest = 19;
  sched_attr wish{};
  wish.size = sizeof wish;
  wish.sched_policy = policy;
  wish.sched_nice = std::min(getpriority(PRIO_PROCESS, 0) + nicer_by, kNicest);
  wish.sched_runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace

void run_promptly() { ask(SCHED_NORMAL, 0); }

void give_way() {
  constexpr int kNicerBy = 10;
  ask(SCHED_BATCH, kNicerBy);
}

}  // namespace assay
