// `assay sim run`, whole: from its flags to ledger and summary.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/world.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/ledger/test_folder.h"

namespace assay {
namespace {

struct Ran {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

class SimRunTest : public testing::Test {
 protected:
  Ran run(std::vector<std::string> args) {
    Ran result;
    World world;
    world.args = std::move(args);
    world.args.insert(world.args.begin(), {"sim", "run"});
    world.env = [](const std::string&) { return std::optional<std::string>(); };
    world.out = [&result](std::string_view text) { result.out += text; };
    world.err = [&result](std::string_view text) { result.err += text; };
    result.code = run_app(world);
    return result;
  }

  Ledger ledger(const std::string& name, std::vector<std::string> args) {
    const std::string path = folder_.file(name);
    args.insert(args.end(), {"--out", path});
    const Ran ran = run(std::move(args));
    EXPECT_EQ(ran.code, ExitCode::kOk) << ran.out << ran.err;
    const Result<Ledger> read = read_ledger(path);
    EXPECT_TRUE(read.has_value());
    return read.value_or(Ledger{});
  }

  std::string write(const std::string& name, const std::string& text) {
    internal::write_bytes(folder_.file(name), text);
    return folder_.file(name);
  }

  internal::TestFolder folder_;
};

TEST_F(SimRunTest, OneSeedGivesOneLedgerAndFromRepeatsIt) {
  const std::vector<std::string> args = {
      "--servers", "3",          "--service", "exp:50ms", "--queue", "2",        "--rate",
      "60",        "--duration", "20s",       "--warmup", "2s",      "--output", "4"};
  const Ledger a = ledger("a.assay", args), b = ledger("b.assay", args);
  const Ledger c = ledger("c.assay", {"--from", folder_.file("a.assay")});
  ASSERT_GT(a.requests.size(), 1000U);
  for (const Ledger* other : {&b, &c}) {
    ASSERT_EQ(other->requests.size(), a.requests.size());
    for (std::size_t i = 0; i < a.requests.size(); ++i) {
      EXPECT_EQ(other->requests[i].request_id, a.requests[i].request_id);
      EXPECT_EQ(other->requests[i].done, a.requests[i].done);
      EXPECT_EQ(other->requests[i].chunks, a.requests[i].chunks);
      EXPECT_EQ(other->requests[i].outcome, a.requests[i].outcome);
    }
    EXPECT_EQ(other->meta_or(meta::kSimSpec), a.meta_or(meta::kSimSpec));
    EXPECT_EQ(other->meta_or(meta::kStartWall), "1970-01-01T00:00:00Z");
  }
}

TEST_F(SimRunTest, AFullQueueShowsAsHttpErrors) {
  const Ledger seen =
      ledger("q.assay", {"--servers", "1", "--service", "det:100ms", "--queue", "0", "--rate", "20",
                         "--arrival", "constant", "--requests", "100", "--warmup", "0"});
  int refused = 0;
  for (const RequestRecord& record : seen.requests) {
    if (record.outcome != Outcome::kHttpError) continue;
    ++refused;
    EXPECT_EQ(record.http_status, 503);
    EXPECT_EQ(record.error_text, "the queue is full");
  }
  EXPECT_EQ(refused, 50);
}

TEST_F(SimRunTest, AStallDelaysWhatIsScheduledInIt) {
  const std::string sim = write("stall.yaml",
                                "sim: {servers: 100, ttft: 10ms, gap: 1ms, "
                                "stalls: [{at: 10s, for: 2s}]}");
  const Ledger seen =
      ledger("s.assay", {"--sim", sim, "--rate", "20", "--arrival", "constant", "--connections",
                         "4", "--duration", "30s", "--warmup", "0", "--output", "2"});
  int late = 0;
  for (const RequestRecord& record : seen.requests) {
    if (*record.first_token - record.scheduled > 50ms) ++late;
  }
  // The 40 of the 2 s, and one more that meets what they left in the queue of four connections.
  EXPECT_EQ(late, 41);
}

TEST_F(SimRunTest, ATraceIsReplayed) {
  const std::string trace = write("trace.txt", "0.5\n0.5\n\n1.25\n100\n");
  const Ledger seen = ledger("t.assay", {"--trace", trace, "--output", "2"});
  ASSERT_EQ(seen.requests.size(), 4U);
  EXPECT_EQ(seen.requests[2].scheduled, RunTime(1250ms));
  EXPECT_EQ(seen.requests[3].scheduled, RunTime(100s));
}

TEST_F(SimRunTest, AllProblemsAreToldAtOnce) {
  const std::string trace = write("bad.txt", "1\nx\n0.5\n");
  const Ran ran = run({"http://127.0.0.1:1", "--servers", "none", "--trace", trace, "--rate", "x"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  for (const char* const part :
       {"takes no URL", "--servers: servers must be a whole number", "bad.txt:2: no offset",
        "bad.txt:3: an arrival before", "--rate: a trace says itself"}) {
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\n" << ran.err;
  }
}

}  // namespace
}  // namespace assay
