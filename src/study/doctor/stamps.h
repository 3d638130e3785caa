// What the workers of one run say of its reads: who stamped them, and how late they were seen.
#pragma once

#include <cstdint>
#include <optional>

#include "domain/ledger/ledger.h"

namespace assay {

struct StampFacts {
  std::optional<double> kernel_share;        // of reads
  std::optional<double> receive_lag_p99_us;  // user − kernel stamp, all phases
  std::int64_t events = 0;                   // server-sent ones, comments not counted
};

StampFacts stamp_facts(const Ledger& client);

}  // namespace assay
