#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/ledger/schema.h"
#include "domain/ledger/sqlite.h"
#include "domain/ledger/writer_process.h"

namespace assay {

using internal::Database;
using internal::Statement;

namespace {

/// Binds the fields of one row in column order. A missing value, and a text that is empty, is NULL.
class Binder {
 public:
  explicit Binder(Statement& statement) : statement_(statement) {}

  void operator()(std::string_view, std::int64_t v) { statement_.bind(++index_, v); }
  void operator()(std::string_view, std::int32_t v) { statement_.bind(++index_, std::int64_t{v}); }
  void operator()(std::string_view, bool v) { statement_.bind(++index_, std::int64_t{v}); }
  void operator()(std::string_view, double v) { statement_.bind(++index_, v); }
  void operator()(std::string_view, Duration v) { statement_.bind(++index_, v.count()); }
  void operator()(std::string_view, Outcome v) { statement_.bind_text(++index_, outcome_name(v)); }
  void operator()(std::string_view, const std::string& v) {
    ++index_;
    v.empty() ? statement_.bind_null(index_) : statement_.bind_text(index_, v);
  }
  template <typename S>
  void operator()(std::string_view, internal::Blob<S> v) {
    ++index_;
    v.bytes.empty() ? statement_.bind_null(index_) : statement_.bind_blob(index_, v.bytes);
  }
  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& v) {
    v ? (*this)(name, *v) : statement_.bind_null(++index_);
  }

 private:
  Statement& statement_;
  int index_ = 0;
};

template <typename Row>
Result<Statement> prepare_insert(sqlite3* db, std::string_view table,
                                 std::string_view verb = "INSERT") {
  int columns = 0;
  const Row row{};
  internal::each_column(row, [&](std::string_view, const auto&) { ++columns; });
  std::string places = "?";
  for (int i = 1; i < columns; ++i) places += ",?";
  return internal::prepare(db, fmt::format("{} INTO {}({}) VALUES({})", verb, table,
                                           internal::column_list<Row>(), places));
}

/// O_EXCL: two runs that pick the same name at once can't both get it.
Result<> make_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  if (fd >= 0) {
    ::close(fd);
    return {};
  }
  if (errno == EEXIST) {
    return usage_error("this file exists already, and a ledger is never overwritten", path,
                       "name another one with --out, or move this one away");
  }
  return usage_error(fmt::format("the ledger can't be created here: {}", std::strerror(errno)),
                     path, "choose another folder with --out");
}

void remove_files(const std::string& path) {
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((path + suffix).c_str());
}

/// The schema goes into the main file itself, before WAL mode, so that the file is a ledger even if
/// its -wal gets lost. Nothing of value is in it yet: no sync.
Result<> write_schema(sqlite3* db) {
  TRY(internal::execute(db, "PRAGMA synchronous=OFF; BEGIN"));
  TRY(internal::execute(db, fmt::format("PRAGMA application_id={}; PRAGMA user_version={}",
                                        kLedgerApplicationId, kLedgerSchema)
                                .c_str()));
  return internal::execute(db, internal::kSchemaSql);
}

Result<> enter_wal(sqlite3* db) {
  // A file system without shared memory keeps the rollback journal, which is as safe and slower.
  return internal::execute(db, "COMMIT; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
}

constexpr int kBusyTimeoutMs = 2000;

}  // namespace

LedgerWriter::LedgerWriter(std::string path, Database db)
    : path_(std::move(path)), db_(std::move(db)) {}

LedgerWriter::~LedgerWriter() {
  // Nobody is left to hear of an error here; the reader finds `interrupted` either way.
  if (db_) static_cast<void>(close("interrupted"));
}

Result<std::unique_ptr<LedgerWriter>> LedgerWriter::create(
    const std::string& path, const std::map<std::string, std::string>& meta) {
  TRY(make_file(path));
  auto fill = [&]() -> Result<std::unique_ptr<LedgerWriter>> {
    Database db = TRY(internal::open_database(path, SQLITE_OPEN_READWRITE));
    sqlite3_busy_timeout(db.get(), kBusyTimeoutMs);
    TRY(write_schema(db.get()));
    std::unique_ptr<LedgerWriter> writer(new LedgerWriter(path, std::move(db)));
    TRY(writer->prepare_all());
    for (const auto& [key, value] : meta) TRY(writer->set_meta(key, value));
    TRY(writer->set_meta(meta::kState, "running"));
    TRY(writer->set_meta(meta::kWriterPid, internal::this_process()));
    TRY(enter_wal(writer->db_.get()));
    return writer;
  };
  auto writer = fill();
  if (!writer) {
    remove_files(path);
    writer.error().where = path;
  }
  return writer;
}

Result<> LedgerWriter::prepare_all() {
  sqlite3* db = db_.get();
  begin_ = TRY(internal::prepare(db, "BEGIN IMMEDIATE"));
  commit_ = TRY(internal::prepare(db, "COMMIT"));
  meta_ = TRY(internal::prepare(db, "INSERT OR REPLACE INTO meta(key, value) VALUES(?,?)"));
  text_ = TRY(internal::prepare(db, "INSERT INTO text(id, body) VALUES(?,?)"));
  request_ = TRY(prepare_insert<RequestRecord>(db, "request"));
  phase_ = TRY(prepare_insert<PhaseRow>(db, "phase", "INSERT OR REPLACE"));
  worker_ = TRY(prepare_insert<WorkerRow>(db, "worker"));
  histogram_ = TRY(prepare_insert<HistogramRow>(db, "histogram"));
  event_ = TRY(prepare_insert<EventRow>(db, "event"));
  return {};
}

Result<> LedgerWriter::run(Statement& statement) {
  const int code = statement.run();
  if (code == SQLITE_OK) return {};
  if ((code & 0xff) == SQLITE_CONSTRAINT) {
    return fail({ExitCode::kInternal, "a row with this id was written before", path_,
                 "this is a bug in assay: report it"});
  }
  Error error = internal::sqlite_error(db_.get(), code);
  error.where = path_;
  broken_ = error;
  return fail(std::move(error));
}

/// SQLite ends the transaction by itself on some errors; `broken_` sees to it that no new one
/// begins silently after that.
Result<> LedgerWriter::begin() {
  CHECK(db_ != nullptr, "the ledger {} is closed", path_);
  if (broken_) return fail(*broken_);
  if (sqlite3_get_autocommit(db_.get()) == 0) return {};
  return run(begin_);
}

template <typename Row>
Result<> LedgerWriter::insert(Statement& statement, const Row& row) {
  TRY(begin());
  internal::each_column(row, Binder(statement));
  return run(statement);
}

Result<> LedgerWriter::set_meta(std::string_view key, std::string_view value) {
  TRY(begin());
  meta_.bind_text(1, key);
  meta_.bind_text(2, value);
  return run(meta_);
}

Result<> LedgerWriter::append(const RequestRecord& record) {
  TRY(insert(request_, record));
  if (!record.text) return {};
  text_.bind(1, record.id);
  text_.bind_text(2, *record.text);
  return run(text_);
}

Result<> LedgerWriter::append(const PhaseRow& row) { return insert(phase_, row); }
Result<> LedgerWriter::append(const WorkerRow& row) { return insert(worker_, row); }
Result<> LedgerWriter::append(const HistogramRow& row) { return insert(histogram_, row); }
Result<> LedgerWriter::append(const EventRow& row) { return insert(event_, row); }

Result<> LedgerWriter::commit() {
  CHECK(db_ != nullptr, "the ledger {} is closed", path_);
  if (broken_) return fail(*broken_);
  if (sqlite3_get_autocommit(db_.get()) != 0) return {};
  return run(commit_);
}

Result<Closed> LedgerWriter::close(std::string_view state) {
  auto finish = [&]() -> Result<Closed> {
    TRY(set_meta(meta::kState, state));
    TRY(commit());
    const int code = TRY(internal::prepare(db_.get(), "PRAGMA journal_mode=DELETE")).run();
    if (code == SQLITE_OK) return Closed::kOneFile;
    if ((code & 0xff) == SQLITE_BUSY) return Closed::kWithWal;
    Error error = internal::sqlite_error(db_.get(), code);
    error.where = path_;
    return fail(std::move(error));
  };
  Result<Closed> result = finish();
  for (Statement* statement :
       {&begin_, &commit_, &meta_, &request_, &text_, &phase_, &worker_, &histogram_, &event_}) {
    *statement = Statement();
  }
  db_.reset();
  return result;
}

}  // namespace assay
