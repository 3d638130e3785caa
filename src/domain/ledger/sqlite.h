// SQLite handles that close themselves, and its error codes as sentences. Only this room sees them;
// sqlite3.h stays out of headers. A handle belongs to one thread at a time. Statements must die
// before their database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay::internal {

struct CloseDatabase {
  void operator()(sqlite3* db) const;
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const;
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

/// A prepared statement. Binding keeps pointers only: what is bound must live until run() or
/// step() returns. A bind that fails is reported by the next run() or step().
class Statement {
 public:
  void bind_null(int index);
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind_text(int index, std::string_view text);
  void bind_blob(int index, std::string_view bytes);

  /// Runs to the end and resets, so that it can be bound and run again. The code is SQLite's:
  /// 0 = well.
  int run();
  /// One row further: SQLITE_ROW, SQLITE_DONE or an error code.
  int step();
  [[nodiscard]] sqlite3_stmt* handle() const { return handle_.get(); }

 private:
  void note(int code);

  friend Result<Statement> prepare(sqlite3* db, std::string_view sql);
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> handle_;
  int bind_code_ = 0;
};

/// Opens a plain path, whatever it looks like to SQLite (":memory:", "file:…"), with
/// SQLITE_OPEN_* flags. `parameters` are those of an SQLite URI ("immutable=1"), empty for none.
Result<Database> open_database(const std::string& path, int flags,
                               std::string_view parameters = {});
/// An empty database that lives in memory.
Result<Database> memory_database();
Result<Statement> prepare(sqlite3* db, std::string_view sql);
/// Runs every statement of `sql`.
Result<> execute(sqlite3* db, const char* sql);
/// First column of the first row; 0 where there is no row.
Result<std::int64_t> query_int(sqlite3* db, std::string_view sql);

/// The last error of `db` as a sentence with its remedy; `where` is left to the caller, who knows
/// the path as the user wrote it.
Error sqlite_error(sqlite3* db, int code);
Error not_a_ledger(std::string_view why);

}  // namespace assay::internal
