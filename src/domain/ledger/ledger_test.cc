#include "domain/ledger/ledger.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/ledger/schema.h"
#include "domain/ledger/sqlite.h"
#include "domain/ledger/test_folder.h"

namespace assay {
namespace {

using internal::TestFolder;

std::unique_ptr<LedgerWriter> create(const std::string& path) {
  auto writer = LedgerWriter::create(path, {{"seed", "7"}});
  EXPECT_TRUE(writer) << writer.error().text();
  return std::move(*writer);
}

/// A complete ledger with two requests, each with a text.
void write_small(const std::string& path) {
  const auto writer = create(path);
  for (int id = 0; id < 2; ++id) {
    RequestRecord record;
    record.id = id;
    record.text = "reply";
    ASSERT_TRUE(writer->append(record));
  }
  ASSERT_TRUE(writer->close("complete"));
}

void run_sql(const std::string& path, const std::string& sql) {
  const auto db = internal::open_database(path, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(db) << db.error().text();
  const auto done = internal::execute(db->get(), sql.c_str());
  ASSERT_TRUE(done) << done.error().text();
}

/// The refusal's text without the path that it begins with.
std::string refusal(const std::string& path) {
  const auto ledger = read_ledger(path);
  if (ledger) return "was read";
  EXPECT_EQ(ledger.error().code, ExitCode::kUsage);
  EXPECT_EQ(ledger.error().where, path);
  EXPECT_FALSE(ledger.error().hint.empty()) << ledger.error().what;
  return ledger.error().what;
}

/// Gives every field a value of its own, so that two that are swapped show.
struct FillDistinct {
  std::int64_t next = 1;

  void operator()(std::string_view, std::int64_t& v) { v = next++; }
  void operator()(std::string_view, std::int32_t& v) { v = static_cast<std::int32_t>(next++); }
  void operator()(std::string_view, bool& v) { v = true; }
  void operator()(std::string_view, double& v) { v = static_cast<double>(next++) + 0.5; }
  void operator()(std::string_view, Duration& v) { v = Duration(next++); }
  void operator()(std::string_view, Outcome& v) { v = Outcome::kStreamError; }
  void operator()(std::string_view name, std::string& v) { v = std::string(name) + "·\n"; }
  void operator()(std::string_view, internal::Blob<std::string> v) {
    v.bytes = std::string("\0\x7f\xff", 3);
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& v) {
    (*this)(name, v.emplace());
  }
};

/// Writes a row as "column=value", null apart from 0.
struct Show {
  std::string out;

  void put(std::string_view name, const std::string& v) {
    out.append(name).append("=").append(v).append(" ");
  }
  void operator()(std::string_view name, std::integral auto v) { put(name, std::to_string(v)); }
  void operator()(std::string_view name, double v) { put(name, std::to_string(v)); }
  void operator()(std::string_view name, Duration v) { put(name, std::to_string(v.count())); }
  void operator()(std::string_view name, Outcome v) { put(name, std::string(outcome_name(v))); }
  void operator()(std::string_view name, const std::string& v) { put(name, "'" + v + "'"); }
  void operator()(std::string_view name, internal::Blob<const std::string> v) {
    put(name, "x'" + v.bytes + "'");
  }
  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& v) {
    v ? (*this)(name, *v) : put(name, "null");
  }
};

template <typename Row>
std::string show(const Row& row) {
  Show shown;
  internal::each_column(row, shown);
  return shown.out;
}

TEST(Ledger, EveryFieldComesBack) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  RequestRecord full;
  PhaseRow phase;
  WorkerRow worker;
  HistogramRow histogram;
  EventRow event;
  FillDistinct fill;
  internal::each_column(full, fill);
  internal::each_column(phase, fill);
  internal::each_column(worker, fill);
  internal::each_column(histogram, fill);
  internal::each_column(event, fill);
  full.text = "";

  const auto writer = create(path);
  ASSERT_TRUE(writer->append(full));
  ASSERT_TRUE(writer->append(phase));
  ASSERT_TRUE(writer->append(worker));
  ASSERT_TRUE(writer->append(histogram));
  ASSERT_TRUE(writer->append(event));
  ASSERT_TRUE(writer->set_meta("model", "m"));
  ASSERT_TRUE(writer->close("complete"));

  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(show(ledger->requests.at(0)), show(full));
  EXPECT_EQ(ledger->requests.at(0).text, "");
  EXPECT_EQ(show(ledger->phases.at(0)), show(phase));
  EXPECT_EQ(show(ledger->workers.at(0)), show(worker));
  EXPECT_EQ(show(ledger->histograms.at(0)), show(histogram));
  EXPECT_EQ(show(ledger->events.at(0)), show(event));
  EXPECT_EQ(ledger->path, path);
  EXPECT_EQ(ledger->meta_or("seed"), "7");
  EXPECT_EQ(ledger->meta_or("model"), "m");
  EXPECT_EQ(ledger->meta_or(meta::kState), "complete");
  EXPECT_EQ(ledger->meta_or("no such key", "-"), "-");
}

TEST(Ledger, NullStaysApartFromZero) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  RequestRecord nothing;
  RequestRecord zero;
  zero.id = 1;
  zero.admitted = zero.done = zero.dns = RunTime(0);
  zero.http_status = 0;
  zero.tokens_server_output = zero.session = 0;
  zero.nll_sum = 0.0;
  zero.scheduled = RunTime(-5);

  const auto writer = create(path);
  ASSERT_TRUE(writer->append(nothing));
  ASSERT_TRUE(writer->append(zero));
  ASSERT_TRUE(writer->close("complete"));

  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(show(ledger->requests.at(0)), show(nothing));
  EXPECT_EQ(show(ledger->requests.at(1)), show(zero));
  EXPECT_FALSE(ledger->requests.at(0).text);
}

TEST(Ledger, EveryOutcomeComesBack) {
  const TestFolder folder;
  const auto writer = create(folder.file("run.assay"));
  for (int i = 0; i < kOutcomeCount; ++i) {
    RequestRecord record;
    record.id = i;
    record.outcome = static_cast<Outcome>(i);
    ASSERT_TRUE(writer->append(record));
  }
  ASSERT_TRUE(writer->close("complete"));
  const auto ledger = read_ledger(folder.file("run.assay"));
  ASSERT_TRUE(ledger);
  for (int i = 0; i < kOutcomeCount; ++i) {
    EXPECT_EQ(ledger->requests.at(static_cast<std::size_t>(i)).outcome, static_cast<Outcome>(i));
  }
}

TEST(Ledger, ColumnsOfCodeAndSchemaAgree) {
  const auto db = internal::memory_database();
  ASSERT_TRUE(db);
  ASSERT_TRUE(internal::execute(db->get(), internal::kSchemaSql));
  const auto columns = [&](const std::string& table) {
    std::string list;
    auto statement = internal::prepare(
        db->get(), "SELECT name FROM pragma_table_info('" + table + "') ORDER BY cid");
    while (statement->step() == SQLITE_ROW) {
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement->handle(), 0));
      list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return list;
  };
  EXPECT_EQ(internal::column_list<RequestRecord>(), columns("request"));
  EXPECT_EQ(internal::column_list<PhaseRow>(), columns("phase"));
  EXPECT_EQ(internal::column_list<WorkerRow>(), columns("worker"));
  EXPECT_EQ(internal::column_list<HistogramRow>(), columns("histogram"));
  EXPECT_EQ(internal::column_list<EventRow>(), columns("event"));
}

TEST(Ledger, ClosedIsOneOrdinaryFile) {
  const TestFolder folder;
  write_small(folder.file("run.assay"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run.assay-wal")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run.assay-shm")));
  const std::string bytes = internal::bytes_of(folder.file("run.assay"));
  EXPECT_EQ(bytes.substr(68, 4), "ASAY");
  EXPECT_EQ(bytes[18], 1) << "still in WAL mode";
}

TEST(Ledger, RunningIsReadableBesideItsWriter) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  const auto writer = create(path);
  EXPECT_EQ(read_ledger(path)->meta_or(meta::kState), "running");
  ASSERT_TRUE(writer->append(RequestRecord{}));
  EXPECT_EQ(read_ledger(path)->requests.size(), 0U);
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(read_ledger(path)->requests.size(), 1U);
  ASSERT_TRUE(writer->commit()) << "with nothing to commit";
  ASSERT_TRUE(writer->close("complete"));
}

TEST(Ledger, UnclosedWriterLeavesInterrupted) {
  const TestFolder folder;
  {
    ASSERT_TRUE(create(folder.file("run.assay"))->append(RequestRecord{}));
  }
  const auto ledger = read_ledger(folder.file("run.assay"));
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->meta_or(meta::kState), "interrupted");
  EXPECT_EQ(ledger->requests.size(), 1U);
}

TEST(Ledger, SameIdTwiceIsRefusedAndTheFirstKept) {
  const TestFolder folder;
  const auto writer = create(folder.file("run.assay"));
  ASSERT_TRUE(writer->append(RequestRecord{}));
  const auto again = writer->append(RequestRecord{});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, "a row with this id was written before");
  ASSERT_TRUE(writer->close("complete"));
  EXPECT_EQ(read_ledger(folder.file("run.assay"))->requests.size(), 1U);
}

TEST(Ledger, APhaseUnderWayIsReplaced) {
  const TestFolder folder;
  const auto writer = create(folder.file("run.assay"));
  ASSERT_TRUE(writer->append(PhaseRow{1, "steady", 5s, 6s}));
  ASSERT_TRUE(writer->append(PhaseRow{0, "warmup", 0s, 5s}));
  ASSERT_TRUE(writer->append(PhaseRow{1, "steady", 5s, 7s}));
  ASSERT_TRUE(writer->close("complete"));
  const auto ledger = read_ledger(folder.file("run.assay"));
  ASSERT_EQ(ledger->phases.size(), 2U);
  EXPECT_EQ(ledger->phases[0].name, "warmup");
  EXPECT_EQ(ledger->phases[1].end, 7s);
}

TEST(Ledger, AnotherReaderAtCloseLeavesTheWalAndLosesNothing) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  const auto writer = create(path);
  ASSERT_TRUE(writer->append(RequestRecord{}));
  ASSERT_TRUE(writer->commit());
  const auto reader = internal::open_database(path, SQLITE_OPEN_READONLY);
  ASSERT_TRUE(internal::execute(reader->get(), "BEGIN; SELECT * FROM meta"));
  const auto closed = writer->close("complete");
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(*closed, Closed::kWithWal);
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(ledger->meta_or(meta::kState), "complete");
  EXPECT_EQ(ledger->requests.size(), 1U);
}

TEST(Ledger, OddPathsArePaths) {
  const TestFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const std::string name : {":memory:", "file:a?mode=ro#x", "100% é", "a b"}) {
    write_small(name);
    EXPECT_TRUE(std::filesystem::exists(name)) << name;
    EXPECT_TRUE(read_ledger(name)) << name;
  }
  std::filesystem::current_path(before);
}

TEST(LedgerCreate, ExistingFileIsRefusedAndUntouched) {
  const TestFolder folder;
  internal::write_bytes(folder.file("old"), "precious");
  const auto writer = LedgerWriter::create(folder.file("old"), {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ExitCode::kUsage);
  EXPECT_EQ(writer.error().text(), folder.file("old") +
                                       ": this file exists already, and a ledger is never "
                                       "overwritten (name another one with --out, or move this one "
                                       "away)");
  EXPECT_EQ(internal::bytes_of(folder.file("old")), "precious");
}

TEST(LedgerCreate, FolderThatIsNotThereIsNamed) {
  const TestFolder folder;
  const auto writer = LedgerWriter::create(folder.file("no/run.assay"), {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ExitCode::kUsage);
  EXPECT_EQ(writer.error().text(), folder.file("no/run.assay") +
                                       ": the ledger can't be created here: No such file or "
                                       "directory (choose another folder with --out)");
}

TEST(LedgerRead, RefusesWhatIsNoLedger) {
  const TestFolder folder;
  EXPECT_EQ(refusal(folder.file("missing")),
            "the ledger can't be opened: No such file or directory");
  EXPECT_EQ(refusal(folder.path()), "this is not an assay ledger: not an ordinary file");
  internal::write_bytes(folder.file("empty"), "");
  EXPECT_EQ(refusal(folder.file("empty")), "this is not an assay ledger: the file is empty");
  internal::write_bytes(folder.file("text"), "hello\n");
  EXPECT_EQ(refusal(folder.file("text")), "this is not an assay ledger: not an SQLite file");
  internal::write_bytes(folder.file("long"), std::string(100'000, 'x'));
  EXPECT_EQ(refusal(folder.file("long")), "this is not an assay ledger: not an SQLite file");
  internal::write_bytes(folder.file("other"), "");
  run_sql(folder.file("other"), "CREATE TABLE request(id)");
  EXPECT_EQ(refusal(folder.file("other")),
            "this is not an assay ledger: an SQLite file of another program");
}

TEST(LedgerRead, RefusesOtherSchemasByNumber) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  write_small(path);
  run_sql(path, "PRAGMA user_version=2");
  EXPECT_EQ(refusal(path), "made by a newer assay: schema 2, this binary reads up to 1");
  run_sql(path, "PRAGMA user_version=0");
  EXPECT_EQ(refusal(path), "made by an older assay: schema 0, and this binary reads schema 1 only");
}

/// What `sql`, done to a good ledger, makes of it.
std::string refusal_after(const std::string& sql) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  write_small(path);
  run_sql(path, sql);
  return refusal(path);
}

TEST(LedgerRead, RefusesWrongTables) {
  EXPECT_EQ(refusal_after("DROP TABLE worker"), "table worker is missing or isn't STRICT");
  EXPECT_EQ(refusal_after("DROP TABLE series; CREATE VIEW series AS SELECT 1 AS id"),
            "table series is missing or isn't STRICT");
  EXPECT_EQ(refusal_after("DROP TABLE text; CREATE TABLE text(id INTEGER PRIMARY KEY, body TEXT)"),
            "table text is missing or isn't STRICT");
  EXPECT_EQ(refusal_after("DROP TABLE text; CREATE TABLE text(id INTEGER, body BLOB) STRICT"),
            "table text has the columns id INTEGER, body BLOB instead of id INTEGER, body TEXT");
  EXPECT_NE(refusal_after("ALTER TABLE request DROP COLUMN score").find("table request has"),
            std::string::npos);
}

TEST(LedgerRead, NamesTableAndRowOfDamage) {
  EXPECT_EQ(refusal_after("UPDATE request SET outcome='fine' WHERE id=1"),
            "table request, row 1: outcome is 'fine', which is no outcome");
  EXPECT_EQ(refusal_after("UPDATE request SET scheduled_ns=NULL WHERE id=1"),
            "table request, row 1: scheduled_ns is NULL");
  EXPECT_EQ(refusal_after("UPDATE request SET worker=4294967296 WHERE id=0"),
            "table request, row 0: worker is 4294967296");
  EXPECT_EQ(refusal_after("UPDATE request SET reused=2 WHERE id=0"),
            "table request, row 0: reused is 2, not 0 or 1");
  EXPECT_EQ(refusal_after("INSERT INTO text VALUES(9, 'x')"),
            "table text, row 9: no request has this id");
  EXPECT_EQ(refusal_after("UPDATE meta SET value='odd' WHERE key='state'"),
            "table meta: the state is 'odd'");
  EXPECT_EQ(refusal_after("DELETE FROM meta"), "table meta: the state is ''");
  EXPECT_EQ(refusal_after("INSERT INTO event VALUES(NULL, 'warning', '')"),
            "table event, row 1: t_ns is NULL");
}

TEST(LedgerRead, TruncatedAtAnyPageIsRefused) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  write_small(path);
  const std::string bytes = internal::bytes_of(path);
  for (std::size_t size = 0; size < bytes.size(); size += 512) {
    internal::write_bytes(folder.file("cut"), bytes.substr(0, size));
    EXPECT_NE(refusal(folder.file("cut")), "was read") << size;
  }
}

TEST(LedgerRead, AnyOverwrittenPageIsReadOrRefusedInWords) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  write_small(path);
  const std::string bytes = internal::bytes_of(path);
  for (std::size_t at = 0; at < bytes.size(); at += 256) {
    std::string damaged = bytes;
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), 128, '\xa5');
    internal::write_bytes(folder.file("bad"), damaged);
    EXPECT_FALSE(refusal(folder.file("bad")).empty()) << at;
  }
}

}  // namespace
}  // namespace assay
