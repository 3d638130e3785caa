// How the threads of a run share cores when there are fewer cores than threads: a worker's send has
// a microsecond, building and writing are a second ahead or behind. Asks the scheduler only for
// what needs no privilege; where it refuses, things stay as they are.
#pragma once

namespace assay {

/// The calling thread is a worker: it may run as soon as its timer fires, even where another
/// thread's slice has not ended.
void run_promptly();

/// The calling thread builds or writes: it never preempts a worker, gets less where they compete,
/// and gives way within a tenth of a millisecond.
void give_way();

}  // namespace assay
