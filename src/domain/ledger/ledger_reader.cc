#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/migration.h"
#include "domain/ledger/record.h"
#include "domain/ledger/schema.h"
#include "domain/ledger/sqlite.h"
#include "domain/ledger/writer_process.h"

namespace assay {

using internal::Database;
using internal::Statement;

namespace {

Unexpected damaged(std::string what) {
  return usage_error(std::move(what), "", "the ledger is damaged or was changed by hand");
}

/// Fills the fields of one row in column order. The first field that doesn't fit is kept as the
/// problem; the rest of the row is skipped.
class Filler {
 public:
  explicit Filler(sqlite3_stmt* row) : row_(row) {}

  void operator()(std::string_view name, std::int64_t& v) {
    if (take(name, SQLITE_INTEGER)) v = sqlite3_column_int64(row_, index_);
  }
  void operator()(std::string_view name, std::int32_t& v) {
    std::int64_t wide = 0;
    (*this)(name, wide);
    if (wide != static_cast<std::int32_t>(wide)) refuse(name, fmt::format("is {}", wide));
    v = static_cast<std::int32_t>(wide);
  }
  void operator()(std::string_view name, bool& v) {
    std::int64_t wide = 0;
    (*this)(name, wide);
    if (wide != 0 && wide != 1) refuse(name, fmt::format("is {}, not 0 or 1", wide));
    v = wide == 1;
  }
  void operator()(std::string_view name, double& v) {
    if (take(name, SQLITE_FLOAT)) v = sqlite3_column_double(row_, index_);
  }
  void operator()(std::string_view name, Duration& v) {
    std::int64_t ns = 0;
    (*this)(name, ns);
    v = Duration(ns);
  }
  void operator()(std::string_view name, Outcome& v) {
    if (!take(name, SQLITE_TEXT)) return;
    const auto outcome = outcome_from_name(bytes());
    if (!outcome) refuse(name, fmt::format("is '{}', which is no outcome", bytes()));
    v = outcome.value_or(Outcome::kOk);
  }
  void operator()(std::string_view name, std::string& v) {
    if (!next_is_null() && take(name, SQLITE_TEXT)) v = bytes();
  }
  template <typename S>
  void operator()(std::string_view name, internal::Blob<S> v) {
    if (!next_is_null() && take(name, SQLITE_BLOB)) v.bytes = bytes();
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& v) {
    if (!next_is_null()) (*this)(name, v.emplace());
  }

  /// "outcome is 'fine', which is no outcome"; empty when every field fitted.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  bool next_is_null() {
    if (sqlite3_column_type(row_, index_ + 1) != SQLITE_NULL) return false;
    ++index_;
    return true;
  }
  bool take(std::string_view name, int type) {
    const int found = sqlite3_column_type(row_, ++index_);
    if (found == type) return true;
    refuse(name, found == SQLITE_NULL ? "is NULL" : "has the wrong type");
    return false;
  }
  std::string_view bytes() {
    const void* data = sqlite3_column_blob(row_, index_);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row_, index_));
    return data == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(data), size);
  }
  void refuse(std::string_view name, std::string_view why) {
    if (problem_.empty()) problem_ = fmt::format("{} {}", name, why);
  }

  sqlite3_stmt* row_;
  int index_ = -1;
  std::string problem_;
};

/// Calls `each(row handle, row number)` for every row; it returns a Result<>.
template <typename Each>
Result<> for_each_row(sqlite3* db, std::string_view sql, Each&& each) {
  Statement statement = TRY(internal::prepare(db, sql));
  std::int64_t number = 0;
  int code = statement.step();
  for (; code == SQLITE_ROW; code = statement.step()) TRY(each(statement.handle(), ++number));
  if (code != SQLITE_DONE) return fail(internal::sqlite_error(db, code));
  return {};
}

template <typename Row>
Result<> read_table(sqlite3* db, std::string_view table, std::string_view order,
                    std::vector<Row>& rows) {
  const std::string sql =
      fmt::format("SELECT {} FROM {} ORDER BY {}", internal::column_list<Row>(), table, order);
  return for_each_row(db, sql, [&](sqlite3_stmt* handle, std::int64_t number) -> Result<> {
    Filler filler(handle);
    internal::each_column(rows.emplace_back(), filler);
    if (filler.problem().empty()) return {};
    const std::int64_t row = order == "id" ? sqlite3_column_int64(handle, 0) : number;
    return damaged(fmt::format("table {}, row {}: {}", table, row, filler.problem()));
  });
}

Result<> read_meta(sqlite3* db, Ledger& ledger) {
  return for_each_row(
      db, "SELECT key, value FROM meta",
      [&](sqlite3_stmt* handle, std::int64_t number) -> Result<> {
        std::string key, value;
        Filler filler(handle);
        filler("key", key);
        filler("value", value);
        if (!filler.problem().empty()) {
          return damaged(fmt::format("table meta, row {}: {}", number, filler.problem()));
        }
        ledger.meta.insert_or_assign(std::move(key), std::move(value));
        return {};
      });
}

/// Both sides are sorted by id.
Result<> read_texts(sqlite3* db, std::vector<RequestRecord>& requests) {
  auto request = requests.begin();
  return for_each_row(
      db, "SELECT id, body FROM text ORDER BY id",
      [&](sqlite3_stmt* handle, std::int64_t) -> Result<> {
        std::int64_t id = 0;
        std::string body;
        Filler filler(handle);
        filler("id", id);
        filler("body", body);
        while (request != requests.end() && request->id < id) ++request;
        if (!filler.problem().empty() || request == requests.end() || request->id != id) {
          return damaged(fmt::format("table text, row {}: no request has this id", id));
        }
        request->text = std::move(body);
        return {};
      });
}

/// "id INTEGER, name TEXT, …" as the file has it; empty for a table that isn't there or isn't a
/// plain STRICT table.
Result<std::string> table_shape(sqlite3* db, std::string_view table) {
  std::string shape;
  const std::string sql = fmt::format(
      "SELECT c.name || ' ' || c.type FROM pragma_table_list AS t, pragma_table_info('{0}') AS c "
      "WHERE t.schema = 'main' AND t.name = '{0}' AND t.type = 'table' AND t.strict = 1 "
      "ORDER BY c.cid",
      table);
  TRY(for_each_row(db, sql, [&](sqlite3_stmt* handle, std::int64_t) -> Result<> {
    std::string column;
    Filler filler(handle);
    filler("column", column);
    shape += (shape.empty() ? "" : ", ") + column;
    return {};
  }));
  return shape;
}

/// The file's tables against those that the schema's own SQL makes.
Result<> check_tables(sqlite3* db) {
  Database model = TRY(internal::memory_database());
  TRY(internal::execute(model.get(), internal::kSchemaSql));
  for (const char* table : internal::kTables) {
    const std::string wanted = TRY(table_shape(model.get(), table));
    const std::string found = TRY(table_shape(db, table));
    if (found == wanted) continue;
    if (found.empty()) return damaged(fmt::format("table {} is missing or isn't STRICT", table));
    return damaged(fmt::format("table {} has the columns {} instead of {}", table, found, wanted));
  }
  return {};
}

/// 0 for a file that isn't there.
std::int64_t file_size(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

/// SQLite reads a torn last page as if zeros followed, which can look like rows of nothing. Pages
/// that a killed checkpoint left torn are still in the -wal.
Result<> check_whole_pages(sqlite3* db, const std::string& path) {
  const std::int64_t page = TRY(internal::query_int(db, "PRAGMA page_size"));
  if (file_size(path) % page == 0 || file_size(path + "-wal") > 0) return {};
  return damaged("the file is cut short in the middle of a page");
}

/// A plain look first: SQLite's own words for a missing file or a folder are of no help.
Result<> check_file(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return usage_error(fmt::format("the ledger can't be opened: {}", std::strerror(errno)), "",
                       "give the NAME.assay file that `assay run` wrote");
  }
  if (!S_ISREG(info.st_mode)) return fail(internal::not_a_ledger("not an ordinary file"));
  if (info.st_size == 0) return fail(internal::not_a_ledger("the file is empty"));
  return {};
}

/// Read-only. A -wal that a killed writer left is read along, for which SQLite needs to make or map
/// NAME-shm. Where the folder doesn't let it, the file alone may be read if there is nothing beside
/// it.
Result<Database> open_for_reading(const std::string& path) {
  TRY(check_file(path));
  constexpr const char* kProbe = "SELECT count(*) FROM sqlite_schema";
  Database db = TRY(internal::open_database(path, SQLITE_OPEN_READONLY));
  sqlite3_busy_timeout(db.get(), 2000);
  const auto probe = internal::query_int(db.get(), kProbe);
  if (probe) return db;
  const int code = sqlite3_errcode(db.get()) & 0xff;
  if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) return fail(probe.error());
  if (file_size(path + "-journal") > 0) {
    return usage_error("the run was killed in the middle of a write", "",
                       fmt::format("mend it once with: sqlite3 '{}' .tables", path));
  }
  if (file_size(path + "-wal") > 0) {
    return usage_error(
        "the run ended without closing its ledger, and the folder is read-only", "",
        fmt::format("copy it and {}-wal together to a folder that you can write to", path));
  }
  db = TRY(internal::open_database(path, SQLITE_OPEN_READONLY, "immutable=1"));
  TRY(internal::query_int(db.get(), kProbe));
  return db;
}

/// The same file, or a migrated copy of it.
Result<Database> at_this_schema(Database db) {
  if (TRY(internal::query_int(db.get(), "PRAGMA application_id")) != kLedgerApplicationId) {
    return fail(internal::not_a_ledger("an SQLite file of another program"));
  }
  const std::int64_t schema = TRY(internal::query_int(db.get(), "PRAGMA user_version"));
  if (schema > kLedgerSchema) {
    return usage_error(fmt::format("made by a newer assay: schema {}, this binary reads up to {}",
                                   schema, kLedgerSchema),
                       "", "use that assay, or a newer one");
  }
  if (schema == kLedgerSchema) return db;
  return internal::migrated_copy(db.get(), schema, kLedgerSchema, internal::kMigrations);
}

Result<> settle_state(Ledger& ledger) {
  const std::string state = ledger.meta_or(meta::kState);
  if (state != "running" && state != "complete" && state != "interrupted") {
    return damaged(fmt::format("table meta: the state is '{}'", state));
  }
  if (state == "running" && !internal::process_alive(ledger.meta_or(meta::kWriterPid))) {
    ledger.meta.insert_or_assign(std::string(meta::kState), "interrupted");
  }
  return {};
}

Result<Ledger> read_all(const std::string& path) {
  Database file = TRY(open_for_reading(path));
  TRY(check_whole_pages(file.get(), path));
  const Database db = TRY(at_this_schema(std::move(file)));
  // One transaction: a ledger that is still being written is seen as of one instant.
  TRY(internal::execute(db.get(), "PRAGMA trusted_schema=OFF; BEGIN"));
  TRY(check_tables(db.get()));
  Ledger ledger;
  ledger.path = path;
  TRY(read_meta(db.get(), ledger));
  TRY(settle_state(ledger));
  TRY(read_table(db.get(), "phase", "id", ledger.phases));
  TRY(read_table(db.get(), "request", "id", ledger.requests));
  TRY(read_texts(db.get(), ledger.requests));
  TRY(read_table(db.get(), "worker", "id", ledger.workers));
  TRY(read_table(db.get(), "histogram", "rowid", ledger.histograms));
  TRY(read_table(db.get(), "event", "rowid", ledger.events));
  return ledger;
}

}  // namespace

std::string Ledger::meta_or(std::string_view key, std::string_view fallback) const {
  const auto found = meta.find(std::string(key));
  return std::string(found == meta.end() ? fallback : std::string_view(found->second));
}

Result<Ledger> read_ledger(const std::string& path) {
  auto ledger = read_all(path);
  if (!ledger) {
    // Whatever stops a reader, the input is what can't be read.
    ledger.error().code = ExitCode::kUsage;
    ledger.error().where = path;
  }
  return ledger;
}

}  // namespace assay
