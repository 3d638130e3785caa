#include "domain/ledger/migration.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/core/result.h"
#include "domain/ledger/sqlite.h"

namespace assay::internal {
namespace {

Result<Database> copy_to_memory(sqlite3* db) {
  Database copy = TRY(memory_database());
  sqlite3_backup* backup = sqlite3_backup_init(copy.get(), "main", db, "main");
  if (backup == nullptr) return fail(sqlite_error(copy.get(), sqlite3_errcode(copy.get())));
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return fail(sqlite_error(copy.get(), code));
  return copy;
}

}  // namespace

Result<Database> migrated_copy(sqlite3* db, std::int64_t from, std::int64_t to,
                               std::span<const Migration> steps) {
  Database copy = TRY(copy_to_memory(db));
  for (std::int64_t schema = from; schema < to; ++schema) {
    const auto step = std::ranges::find(steps, schema, &Migration::from);
    if (step == steps.end()) {
      return usage_error(fmt::format("made by an older assay: schema {}, and this binary reads "
                                     "schema {} only",
                                     from, to),
                         "", "report it with the assay that wrote it");
    }
    TRY(execute(copy.get(), step->sql));
  }
  return copy;
}

}  // namespace assay::internal
