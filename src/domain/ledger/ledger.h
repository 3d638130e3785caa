// The ledger: one run = one SQLite file, application_id 'ASAY', schema in docs/formats/ledger.md.
// LedgerWriter is the only way to write one and LedgerReader the only way to read one. The writer
// has no thread of its own: `load` calls it from one writer thread, appends records as they end and
// commits at least once a second, so that a kill loses at most that second. Neither class is
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/ledger/sqlite.h"

namespace assay {

inline constexpr std::int32_t kLedgerApplicationId = 0x41534159;  // 'ASAY'
inline constexpr std::int32_t kLedgerSchema = 1;

/// Keys of `meta` that every ledger has.
namespace meta {
inline constexpr std::string_view kState = "state";  // running | complete | interrupted
inline constexpr std::string_view kToolVersion = "tool_version";
inline constexpr std::string_view kToolCommit = "tool_commit";
inline constexpr std::string_view kSpecAsked = "spec_asked";  // YAML as given, secrets redacted
inline constexpr std::string_view kSpecEffective =
    "spec_effective";  // JSON, every key, defaults filled in
inline constexpr std::string_view kSeed = "seed";
inline constexpr std::string_view kSalt = "salt";
inline constexpr std::string_view kModel = "model";           // as the server names it
inline constexpr std::string_view kServer = "server";         // Server header of the first reply
inline constexpr std::string_view kWorkers = "workers";       // how many, and why
inline constexpr std::string_view kHost = "host";             // JSON: cores, kernel, limits
inline constexpr std::string_view kStartWall = "start_wall";  // UTC, for people
inline constexpr std::string_view kStartMonotonicNs =
    "start_monotonic_ns";  // CLOCK_MONOTONIC of run start
inline constexpr std::string_view kClockOffsetNs =
    "clock_offset_ns";                                          // real − monotonic at run start
inline constexpr std::string_view kClockSteps = "clock_steps";  // steps of the wall clock seen
inline constexpr std::string_view kSimSpec =
    "sim_spec";  // JSON of the simulated engine; only in runs of `assay sim`
// What the last audit of this machine trusted, where there was one.
inline constexpr std::string_view kAuditEventsPerS = "audit_events_per_s";
inline constexpr std::string_view kAuditStreams = "audit_streams";
inline constexpr std::string_view kAuditAt = "audit_at";  // UTC, for people
inline constexpr std::string_view kWriterPid =
    "writer_pid";  // pid:start time:boot id, to tell whether it still lives
}  // namespace meta

struct PhaseRow {
  std::int32_t id = 0;
  std::string name;  // warmup, steady, drain
  RunTime start{0}, end{0};
};

/// What one worker did, filled in at its end.
struct WorkerRow {
  std::int32_t id = 0;
  std::int64_t busy_ns = 0;  // CPU time of its thread
  std::int64_t wall_ns = 0;
  std::int64_t requests = 0;
  std::int64_t reads = 0;
  std::int64_t events = 0;         // SSE events, comments not counted
  std::int64_t malformed = 0;      // events that were skipped
  std::int64_t kernel_stamps = 0;  // reads stamped by the kernel
  std::int64_t user_stamps = 0;    // reads stamped in user space
  std::int64_t connects = 0;
  std::int64_t sent_again = 0;      // requests whose used connection closed before any response
  std::int64_t builder_stalls = 0;  // requests whose bytes were not ready at their instant
  std::int64_t lost = 0;            // requests without a record: a must check
};

struct HistogramRow {
  std::string name;  // receive_lag_ns, send_lag_ns
  std::int32_t worker = 0, phase = 0;
  std::string hdr;  // HdrHistogram V2 encoding, uncompressed
};

struct EventRow {
  RunTime at{0};
  std::string kind;  // warning, clock_step, phase, signal, finding
  std::string detail;
};

/// What a closed ledger consists of.
enum class Closed : std::uint8_t {
  kOneFile,
  kWithWal,  // another process reads it, so NAME-wal stays beside it and belongs to it
};

/// After a failure that may have cost rows (disk full, lock, I/O) every later call fails with the
/// same error, so that no caller can go on as if nothing were lost.
class LedgerWriter {
 public:
  /// Creates `path` (an existing file is refused), writes the schema, `meta` and the keys that are
  /// the writer's own (state = running, writer_pid), and commits them.
  static Result<std::unique_ptr<LedgerWriter>> create(
      const std::string& path, const std::map<std::string, std::string>& meta);
  LedgerWriter(const LedgerWriter&) = delete;
  LedgerWriter& operator=(const LedgerWriter&) = delete;
  /// A writer that dies unclosed leaves the state `interrupted`.
  ~LedgerWriter();

  Result<> set_meta(std::string_view key, std::string_view value);
  /// An id that is there already is refused, of requests and workers alike; the rows before it are
  /// kept.
  Result<> append(const RequestRecord& record);
  /// A row of the same id is replaced, so that a phase under way can be written with each commit,
  /// ending at that instant, and an interrupted ledger has it too.
  Result<> append(const PhaseRow& row);
  Result<> append(const WorkerRow& row);
  Result<> append(const HistogramRow& row);
  Result<> append(const EventRow& row);
  /// Makes everything appended so far safe from a kill of the process.
  Result<> commit();
  /// Sets meta.state, commits, leaves WAL mode, closes. Nothing is lost either way.
  Result<Closed> close(std::string_view state);

 private:
  LedgerWriter(std::string path, internal::Database db);
  Result<> prepare_all();
  Result<> begin();
  Result<> run(internal::Statement& statement);
  template <typename Row>
  Result<> insert(internal::Statement& statement, const Row& row);

  std::string path_;
  internal::Database db_;
  internal::Statement begin_, commit_, meta_, request_, text_, phase_, worker_, histogram_, event_;
  std::optional<Error> broken_;
};

/// A whole ledger in memory.
struct Ledger {
  std::string path;
  std::map<std::string, std::string> meta;
  std::vector<PhaseRow> phases;
  std::vector<RequestRecord> requests;  // by id, attempt
  std::vector<WorkerRow> workers;
  std::vector<HistogramRow> histograms;
  std::vector<EventRow> events;

  [[nodiscard]] std::string meta_or(std::string_view key, std::string_view fallback = {}) const;
};

/// Reads a ledger of this or an older schema; a newer one is refused by name. A file in state
/// `running` whose writer is gone reads as `interrupted`. Chunk blobs are checked for damage only
/// when walked.
Result<Ledger> read_ledger(const std::string& path);

}  // namespace assay
