// What a ledger holds after its writer was killed, or ran out of room.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/core/result.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/ledger/sqlite.h"
#include "domain/ledger/test_folder.h"
#include "domain/ledger/writer_process.h"

namespace assay {
namespace {

using internal::TestFolder;

constexpr int kBatch = 50;

RequestRecord record_of(std::int64_t id) {
  RequestRecord record;
  record.id = id;
  record.scheduled = RunTime(id * 1000);
  record.chunks = std::string(800, static_cast<char>('a' + id % 26));
  return record;
}

/// The child: appends for ever, commits every kBatch rows and then tells the parent so.
[[noreturn]] void write_until_killed(const std::string& path, int progress) {
  const auto writer = LedgerWriter::create(path, {});
  if (!writer) ::_exit(1);
  for (std::int64_t id = 0;; ++id) {
    if (!(*writer)->append(record_of(id))) ::_exit(2);
    if ((id + 1) % kBatch != 0) continue;
    if (!(*writer)->commit() || ::write(progress, "c", 1) != 1) ::_exit(3);
  }
}

/// Forks such a writer, kills it as soon as it has told of `commits`, and returns how many commits
/// it had told of by its death.
int kill_after(const std::string& path, int commits) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_until_killed(path, ends[1]);
  }
  ::close(ends[1]);
  int told = 0;
  char byte = 0;
  while (told < commits && ::read(ends[0], &byte, 1) == 1) ++told;
  ::kill(child, SIGKILL);
  while (::read(ends[0], &byte, 1) == 1) ++told;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself: " << status;
  return told;
}

void expect_interrupted_with(const std::string& path, int commits) {
  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(ledger->meta_or(meta::kState), "interrupted");
  const std::size_t told = static_cast<std::size_t>(commits) * kBatch;
  ASSERT_GE(ledger->requests.size(), told);
  EXPECT_LE(ledger->requests.size(), told + kBatch);  // one commit may have ended untold
  for (std::size_t i = 0; i < ledger->requests.size(); ++i) {
    const RequestRecord wanted = record_of(static_cast<std::int64_t>(i));
    ASSERT_EQ(ledger->requests[i].id, wanted.id);
    ASSERT_EQ(ledger->requests[i].scheduled, wanted.scheduled);
    ASSERT_EQ(ledger->requests[i].chunks, wanted.chunks);
  }
}

TEST(LedgerKill, EveryCommittedRowIsThere) {
  const TestFolder folder;
  // From no commit at all to several checkpoints of the WAL (every 1,000 pages, about 80 commits).
  for (const int commits : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233}) {
    const std::string path = folder.file(std::to_string(commits) + ".assay");
    const int told = kill_after(path, commits);
    if (commits == 0) continue;  // killed at birth: there may be no ledger yet
    expect_interrupted_with(path, told);
  }
}

TEST(LedgerKill, ReadingLeavesTheFilesAsTheyAre) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  const int told = kill_after(path, 3);
  const std::string file = internal::bytes_of(path);
  const std::string wal = internal::bytes_of(path + "-wal");
  ASSERT_FALSE(wal.empty());
  expect_interrupted_with(path, told);
  expect_interrupted_with(path, told);
  EXPECT_EQ(internal::bytes_of(path), file);
  EXPECT_EQ(internal::bytes_of(path + "-wal"), wal);
}

TEST(LedgerKill, WithoutItsWalItIsStillALedger) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  kill_after(path, 3);
  std::filesystem::remove(path + "-wal");
  std::filesystem::remove(path + "-shm");
  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(ledger->meta_or(meta::kState), "interrupted");
  EXPECT_TRUE(ledger->requests.empty());
}

/// Runs `body` in a child that has no special rights, so that permissions bind; true when it
/// returned true.
template <typename Body>
bool without_rights(Body body) {
  const auto child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(LedgerKill, ReadOnlyFolder) {
  namespace fs = std::filesystem;
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  kill_after(path, 3);
  fs::remove(path + "-shm");
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_TRUE(without_rights([&] {
    const auto ledger = read_ledger(path);
    return !ledger &&
           ledger.error().what ==
               "the run ended without closing its ledger, and the folder is read-only" &&
           ledger.error().hint ==
               "copy it and " + path + "-wal together to a folder that you can write to";
  }));
  EXPECT_TRUE(without_rights([&] {
    const auto writer = LedgerWriter::create(folder.file("new.assay"), {});
    return !writer && writer.error().text() == folder.file("new.assay") +
                                                   ": the ledger can't be created here: "
                                                   "Permission denied (choose another folder "
                                                   "with --out)";
  }));
  fs::permissions(folder.path(), fs::perms(0755));
  fs::remove(path + "-wal");
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_TRUE(without_rights([&] { return read_ledger(path).has_value(); }));
  fs::permissions(folder.path(), fs::perms(0755));
}

// A file system without shared memory has no WAL; there a kill leaves a rollback journal.
TEST(LedgerKill, AJournalInMidWriteIsNotReadOver) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  {
    const auto writer = LedgerWriter::create(path, {});
    ASSERT_TRUE(writer);
    for (std::int64_t id = 0; id < 500; ++id) ASSERT_TRUE((*writer)->append(record_of(id)));
    ASSERT_TRUE((*writer)->close("complete"));
  }
  const auto child = ::fork();
  if (child == 0) {
    const auto db = internal::open_database(path, SQLITE_OPEN_READWRITE);
    // So small a cache that changed pages reach the file before any commit.
    const auto done = internal::execute(db->get(),
                                        "PRAGMA synchronous=OFF; PRAGMA cache_size=1; BEGIN; "
                                        "UPDATE request SET chunks = zeroblob(800)");
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const auto ledger = read_ledger(path);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().text(), path +
                                       ": the run was killed in the middle of a write (mend it "
                                       "once with: sqlite3 '" +
                                       path + "' .tables)");
  const auto mended = internal::open_database(path, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(internal::query_int(mended->get(), "SELECT count(*) FROM request"));
  EXPECT_EQ(read_ledger(path)->requests.at(7).chunks, record_of(7).chunks);
}

/// The child of the test below: its files may grow to 200 KB only.
bool loses_nothing_silently(const std::string& path) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{200'000, 200'000};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  const auto writer = LedgerWriter::create(path, {});
  if (!writer) return false;
  for (std::int64_t id = 0; id < 10'000; ++id) {
    Result<> result = (*writer)->append(record_of(id));
    if (result && id % kBatch == 0) result = (*writer)->commit();
    if (result) continue;
    // From here on every call says the same.
    const Result<> append = (*writer)->append(record_of(id + 1));
    const Result<> commit = (*writer)->commit();
    const Result<Closed> close = (*writer)->close("complete");
    return result.error().where == path && !append && !commit && !close &&
           append.error().text() == result.error().text() &&
           commit.error().text() == result.error().text() &&
           close.error().text() == result.error().text();
  }
  return false;
}

TEST(LedgerKill, FullDiskIsAnErrorEverAfter) {
  const TestFolder folder;
  const std::string path = folder.file("run.assay");
  const auto child = ::fork();
  if (child == 0) ::_exit(loses_nothing_silently(path) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto ledger = read_ledger(path);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(ledger->meta_or(meta::kState), "interrupted");
  EXPECT_EQ(ledger->requests.size() % kBatch, 1U);  // whole batches: 0, 1…50, 51…100
}

TEST(WriterProcess, KnowsTheLivingFromTheDead) {
  const std::string self = internal::this_process();
  EXPECT_TRUE(internal::process_alive(self));
  EXPECT_FALSE(internal::process_alive(""));
  EXPECT_FALSE(internal::process_alive("garbage"));
  EXPECT_FALSE(internal::process_alive(self.substr(0, self.rfind(':')) + ":another-boot"));
  EXPECT_FALSE(internal::process_alive(std::to_string(::getpid()) + ":1:x"));
  EXPECT_FALSE(internal::process_alive("0:0:"));
}

TEST(WriterProcess, AZombieIsDead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    const std::string self = internal::this_process();
    ::_exit(::write(ends[1], self.data(), self.size()) == static_cast<ssize_t>(self.size()) ? 0
                                                                                            : 1);
  }
  ::close(ends[1]);
  std::string identity(200, '\0');
  const ssize_t size = ::read(ends[0], identity.data(), identity.size());
  ASSERT_GT(size, 0);
  identity.resize(static_cast<std::size_t>(size));
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(internal::process_alive(identity));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace assay
