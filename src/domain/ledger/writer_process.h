// Which process writes a ledger, as text that a later reader can check: process id, start time in
// ticks since boot (field 22 of /proc/PID/stat, proc(5)) and boot id, so that neither a reused id
// nor another boot passes for the writer.
#pragma once

#include <string>
#include <string_view>

namespace assay::internal {

/// Identity of this process; empty where /proc can't be read.
std::string this_process();
/// Whether the process of that identity still runs here. A zombie does not.
bool process_alive(std::string_view identity);

}  // namespace assay::internal
