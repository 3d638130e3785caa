// How ledgers of older schemas are read: a step's SQL turns schema `from` into `from + 1`, on a
// copy in memory, so the file itself is never changed by reading. Schema 1 is the first, so there
// are no steps yet.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/core/result.h"
#include "domain/ledger/sqlite.h"

namespace assay::internal {

struct Migration {
  std::int64_t from = 0;
  const char* sql = "";
};

inline constexpr std::array<Migration, 0> kMigrations{};

/// A copy of `db`, which has schema `from`, brought to schema `to` by `steps`. Refuses when a step
/// is missing.
Result<Database> migrated_copy(sqlite3* db, std::int64_t from, std::int64_t to,
                               std::span<const Migration> steps);

}  // namespace assay::internal
