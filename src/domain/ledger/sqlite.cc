#include "domain/ledger/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/result.h"

namespace assay::internal {
namespace {

/// Everything that SQLite's URI syntax could take for its own is written as %XX.
std::string as_uri(const std::string& path, std::string_view parameters) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
  std::string uri = "file:";
  // A relative path could begin with a colon or two slashes; ./ in front makes it a path only.
  if (!path.starts_with('/')) uri += "./";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      fmt::format_to(std::back_inserter(uri), "%{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (!parameters.empty()) {
    uri += '?';
    uri += parameters;
  }
  return uri;
}

}  // namespace

void CloseDatabase::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void FinalizeStatement::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::note(int code) {
  if (code != SQLITE_OK) bind_code_ = code;
}
void Statement::bind_null(int index) { note(sqlite3_bind_null(handle_.get(), index)); }
void Statement::bind(int index, std::int64_t value) {
  note(sqlite3_bind_int64(handle_.get(), index, value));
}
void Statement::bind(int index, double value) {
  note(sqlite3_bind_double(handle_.get(), index, value));
}
void Statement::bind_text(int index, std::string_view text) {
  // A null pointer would bind NULL, and an empty view may have one.
  const char* data = text.data() == nullptr ? "" : text.data();
  note(sqlite3_bind_text64(handle_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}
void Statement::bind_blob(int index, std::string_view bytes) {
  note(sqlite3_bind_blob64(handle_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC));
}

int Statement::step() {
  if (const int code = std::exchange(bind_code_, 0); code != SQLITE_OK) return code;
  return sqlite3_step(handle_.get());
}

int Statement::run() {
  int code = step();
  while (code == SQLITE_ROW) code = sqlite3_step(handle_.get());
  sqlite3_reset(handle_.get());
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

Result<Database> open_database(const std::string& path, int flags, std::string_view parameters) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(as_uri(path, parameters).c_str(), &raw,
                                   flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);  // SQLite hands out a handle on failure too: it carries the message
  if (code != SQLITE_OK) return fail(sqlite_error(db.get(), code));
  return db;
}

Result<Database> memory_database() {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open(":memory:", &raw);
  Database db(raw);
  if (code != SQLITE_OK) return fail(sqlite_error(raw, code));
  return db;
}

Result<Statement> prepare(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return fail(sqlite_error(db, code));
  Statement statement;
  statement.handle_.reset(raw);
  return statement;
}

Result<> execute(sqlite3* db, const char* sql) {
  const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(sqlite_error(db, code));
  return {};
}

Result<std::int64_t> query_int(sqlite3* db, std::string_view sql) {
  Statement statement = TRY(prepare(db, sql));
  const int code = statement.step();
  if (code == SQLITE_ROW) return sqlite3_column_int64(statement.handle(), 0);
  if (code != SQLITE_DONE) return fail(sqlite_error(db, code));
  return 0;
}

Error sqlite_error(sqlite3* db, int code) {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return not_a_ledger("not an SQLite file");
    case SQLITE_CORRUPT:
      return {ExitCode::kUsage, "the ledger is damaged: part of it is missing or overwritten", "",
              "sqlite3's .recover command may save the rest"};
    case SQLITE_FULL:
      return {ExitCode::kInternal, "no room is left on the disk", "",
              "free some space, or write the ledger elsewhere with --out"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ExitCode::kInternal, "another process holds a lock on the ledger", "",
              "close the program that has it open"};
    case SQLITE_READONLY:
      return {ExitCode::kInternal, "the ledger or its folder can't be written", "",
              "check their permissions"};
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
      const int system = db == nullptr ? 0 : sqlite3_system_errno(db);
      const char* why = system == 0 ? sqlite3_errstr(code) : std::strerror(system);
      return {ExitCode::kInternal, fmt::format("the ledger can't be read or written: {}", why), "",
              "check the disk, and the permissions of the file and its folder"};
    }
    default:
      return {
          ExitCode::kInternal,
          fmt::format("SQLite says: {}", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db)),
          "", "unless the file was changed by hand, report this"};
  }
}

Error not_a_ledger(std::string_view why) {
  return {ExitCode::kUsage, fmt::format("this is not an assay ledger: {}", why), "",
          "give the NAME.assay file that `assay run` wrote"};
}

}  // namespace assay::internal
