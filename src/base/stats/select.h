// Order statistics of large series without sorting them and without touching their order. Radix
// selection: a histogram of the top 16 bits of the range finds the bucket of each wanted rank, only
// those buckets are gathered, and the search goes on inside them. Ten million values take two or
// three passes; few values are sorted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

/// The values at `ranks` (1 = smallest, at most values.size()), in the order asked.
std::vector<std::int64_t> select_ranks(std::span<const std::int64_t> values,
                                       std::span<const std::size_t> ranks);

}  // namespace assay
