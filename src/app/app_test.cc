// The whole command line inside this process, with a World whose output is text.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/run_arguments.h"
#include "app/world.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/option.h"
#include "domain/spec/parse.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Ran {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

Ran ran(std::vector<std::string> args, std::map<std::string, std::string> env = {},
        std::stop_token stop = {}) {
  Ran result;
  World world;
  world.args = std::move(args);
  world.env = [&env](const std::string& name) -> std::optional<std::string> {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  };
  world.out = [&result](std::string_view text) { result.out += text; };
  world.err = [&result](std::string_view text) { result.err += text; };
  world.stop = std::move(stop);
  result.code = run_app(world);
  return result;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_golden(const std::string& path, const std::string& text) {
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(file_text(path), text) << path;
}

class AppTest : public testing::Test {
 protected:
  AppTest() : folder_(fs::temp_directory_path() / ("assay_app_test." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~AppTest() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

 private:
  fs::path folder_;
};

TEST_F(AppTest, HelpIsAsTheGoldenFilesSay) {
  expect_golden("cases/app/help.txt", ran({"--help"}).out);
  expect_golden("cases/app/help_run.txt", ran({"run", "--help"}).out);
  expect_golden("cases/app/help_report.txt", ran({"report", "-h"}).out);
  expect_golden("cases/app/help_audit.txt", ran({"audit", "--help"}).out);
  expect_golden("cases/app/help_sim.txt", ran({"sim", "serve", "--help"}).out);
  EXPECT_EQ(ran({"run", "--help"}).code, ExitCode::kOk);
}

TEST_F(AppTest, TheHowtoNamesEveryFlagAndKey) {
  const std::string howto = file_text("docs/howto/run.md");
  for (const Flag& flag : run_flags()) {
    std::string written = "`" + std::string(flag.name);
    if (!flag.argument.empty()) written += " " + std::string(flag.argument);
    if (const std::size_t bar = written.find('|'); bar != std::string::npos) {
      written.insert(bar, "\\");
    }
    EXPECT_NE(howto.find(written + "`"), std::string::npos) << written;
  }
  for (const Option& option : options()) {
    EXPECT_NE(howto.find("`" + std::string(option.key)), std::string::npos) << option.key;
  }
}

TEST_F(AppTest, VersionNamesNumberAndCommit) {
  const Ran result = ran({"--version"});
  EXPECT_EQ(result.code, ExitCode::kOk);
  EXPECT_TRUE(result.out.starts_with("assay 0.1.0 (")) << result.out;
}

TEST_F(AppTest, NoCommandShowsHelpAndFails) {
  const Ran result = ran({});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  EXPECT_TRUE(result.out.empty());
  EXPECT_NE(result.err.find("Usage: assay"), std::string::npos);
}

TEST_F(AppTest, UnknownCommandsAreGuessed) {
  EXPECT_EQ(ran({"rnu"}).code, ExitCode::kUsage);
  EXPECT_EQ(ran({"reprot"}).err, "assay: reprot: is not a command (did you mean report?)\n");
  EXPECT_EQ(ran({"dance"}).err,
            "assay: dance: is not a command (assay --help lists the commands)\n");
  EXPECT_EQ(ran({"http://h"}).err,
            "assay: a URL: is not a command (did you mean assay run http://h?)\n");
  EXPECT_EQ(ran({"http://u:hunter2@h"}).err.find("hunter2"), std::string::npos);
}

TEST_F(AppTest, AllProblemsOfARunAreListedAtOnce) {
  const Ran result = ran({"run", "http://h", "--rate", "nan", "--conections", "4", "--duration",
                          "30", "--format", "xml"});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "assay: --conections: is not a flag of this command (did you mean --connections?)\n"
            "assay: --format: 'xml' is unknown (this version knows text and json)\n"
            "assay: --rate: must be a number above 0 and up to 10000000, not 'nan' (requests per "
            "second, for example 20)\n"
            "assay: --duration: the duration '30' needs a unit (us, ms, s, m or h: for example "
            "30s)\n");
}

TEST_F(AppTest, AFormatOfALaterVersionIsNamed) {
  EXPECT_EQ(
      ran({"run", "http://h", "--format", "csv"}).err,
      "assay: --format: 'csv' comes with a later version (this version knows text and json)\n");
}

TEST_F(AppTest, AnUnreadableSpecIsTheOnlyComplaint) {
  const Ran result = ran({"run", "--spec", path("none.yaml")});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  EXPECT_EQ(result.err,
            "assay: " + path("none.yaml") + ": can't be read: No such file or directory\n");
}

TEST_F(AppTest, DryRunPlansAndPrintsASpecThatReadsBack) {
  const Ran first = ran({"run", "http://127.0.0.1:1", "--rate", "20", "--arrival", "constant",
                         "--input", "100", "--output", "uniform:1,10", "--dry-run"});
  ASSERT_EQ(first.code, ExitCode::kOk) << first.err;
  expect_golden("cases/app/dry_run.txt", first.out);
  const Ran second = ran({"run", "--spec", write("again.yaml", first.out), "--dry-run"});
  EXPECT_EQ(second.out, first.out) << second.err;
}

TEST_F(AppTest, DryRunSaysWhatItCantKnow) {
  const auto has = [](const Ran& result, std::string_view text) {
    return result.out.find(text) != std::string::npos;
  };
  const Ran closed = ran({"run", "http://h", "--dry-run"});
  EXPECT_TRUE(has(closed, "as many as 8 slots finish in 30s")) << closed.out;
  const Ran both = ran({"run", "http://h", "--requests", "10", "--duration", "1s", "--dry-run"});
  EXPECT_TRUE(has(both, "requests:       at most 10\n")) << both.out;
  const Ran counted = ran({"run", "http://h", "--rate", "5", "--requests", "7", "--dry-run"});
  EXPECT_TRUE(has(counted, "requests:       7\n")) << counted.out;
  EXPECT_TRUE(has(counted, "prompt tokens:  3584\n")) << counted.out;
  const Ran own = ran({"run", "http://h", "--prompt", "x", "--requests", "1", "--dry-run"});
  EXPECT_TRUE(has(own, "prompt tokens:  those of your prompt, each time\n")) << own.out;
}

TEST_F(AppTest, PublicHostsAreLimitedWithANote) {
  const Ran result = ran({"run", "http://api.example.com", "--dry-run"});
  EXPECT_EQ(result.code, ExitCode::kOk);
  EXPECT_TRUE(result.err.starts_with("assay: note: api.example.com is neither")) << result.err;
}

TEST_F(AppTest, ApiKeysMustBeThereAndPrintable) {
  const auto run_with = [](std::vector<std::string> more, std::map<std::string, std::string> env) {
    std::vector<std::string> args{"run", "http://h", "--dry-run"};
    args.insert(args.end(), more.begin(), more.end());
    return ran(args, std::move(env));
  };
  EXPECT_EQ(run_with({}, {}).code, ExitCode::kOk);
  EXPECT_EQ(run_with({}, {{"OPENAI_API_KEY", "k"}}).code, ExitCode::kOk);
  EXPECT_EQ(run_with({"--api-key-env", "MINE"}, {}).code, ExitCode::kUsage);
  EXPECT_EQ(run_with({"--api-key-env", "MINE"}, {{"MINE", "k"}}).code, ExitCode::kOk);
  const Ran broken = run_with({}, {{"OPENAI_API_KEY", "hunter2\nx"}});
  EXPECT_EQ(broken.code, ExitCode::kUsage);
  EXPECT_EQ(broken.err.find("hunter2"), std::string::npos);
  EXPECT_EQ(run_with({"--api-key-file", write("key", "k\n")}, {}).code, ExitCode::kOk);
  EXPECT_EQ(run_with({"--api-key-file", write("empty", "\n")}, {}).code, ExitCode::kUsage);
  EXPECT_EQ(run_with({"--api-key-file", path("none")}, {}).code, ExitCode::kUsage);
}

TEST_F(AppTest, SaysThatProxiesAreIgnored) {
  const std::vector<std::string> args{"run", "http://127.0.0.1:1", "--dry-run"};
  EXPECT_EQ(ran(args, {{"HTTP_PROXY", "http://proxy:3128"}}).err,
            "assay: note: HTTP_PROXY is ignored: requests go straight to the server\n");
  EXPECT_EQ(ran(args, {{"http_proxy", ""}}).err, "");
}

TEST_F(AppTest, FromALedgerRepeatsItsSpec) {
  Asked asked;
  asked.urls = {"http://127.0.0.1:1"};
  asked.flags = {{"--rate", "7"}, {"--salt", "drawn"}, {"--out", "x.assay"}};
  const Spec spec = resolve_spec(asked)->spec;
  auto writer = LedgerWriter::create(path("a.assay"),
                                     {{std::string(meta::kSpecEffective), spec_to_json(spec)}});
  ASSERT_TRUE(writer.has_value()) << writer.error().text();
  ASSERT_TRUE((*writer)->close("complete").has_value());
  const Ran same = ran({"run", "--from", path("a.assay"), "--dry-run"});
  ASSERT_EQ(same.code, ExitCode::kOk) << same.err;
  EXPECT_NE(same.out.find("rate: 7\n"), std::string::npos) << same.out;
  EXPECT_NE(same.out.find("salt: \"drawn\"\n"), std::string::npos);
  EXPECT_NE(same.out.find("out: \"\"\n"), std::string::npos);
  const Ran faster = ran({"run", "--from", path("a.assay"), "--rate", "9", "--dry-run"});
  EXPECT_NE(faster.out.find("rate: 9\n"), std::string::npos) << faster.out;
  const Ran both = ran({"run", "--from", path("a.assay"), "--spec", write("s.yaml", "assay: 1\n")});
  EXPECT_NE(both.err.find("both give a whole spec"), std::string::npos) << both.err;
}

TEST_F(AppTest, RunsOfTheSameSecondGetNamesOfTheirOwn) {
  const fs::path before = fs::current_path();
  fs::current_path(path(""));
  for (int i = 0; i < 4; ++i) {
    // The verdict is none of this test's.
    const Ran run = ran({"run", "--api", "null", "--requests", "1", "--warmup", "0"});
    EXPECT_NE(run.code, ExitCode::kUsage) << run.err;
  }
  fs::current_path(before);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("")), fs::directory_iterator{}), 4);
}

TEST_F(AppTest, FromSomethingElseIsRefused) {
  EXPECT_EQ(ran({"run", "--from", path("none.assay")}).code, ExitCode::kUsage);
  EXPECT_EQ(ran({"run", "--from", write("text.assay", "hello")}).code, ExitCode::kUsage);
}

TEST_F(AppTest, ReportNamesEveryUnreadableFile) {
  const Ran result = ran({"report", path("a"), write("b", "not a ledger")});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  EXPECT_NE(result.err.find(path("a")), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(path("b")), std::string::npos) << result.err;
  EXPECT_EQ(ran({"report"}).err,
            "assay: FILE: no ledger is given (for example assay report NAME.assay)\n");
}

TEST_F(AppTest, SimServeChecksItsArguments) {
  EXPECT_EQ(ran({"sim"}).code, ExitCode::kUsage);
  const Ran result = ran({"sim", "serve", "x", "--port", "70000", "--threads", "0", "--seed", "-1",
                          "--servers", "none", "--sim", path("none.yaml")});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  for (const char* const place :
       {"x: takes no bare", "--port: ", "--threads: ", "--seed: ", "--servers: ", "none.yaml: "}) {
    EXPECT_NE(result.err.find(place), std::string::npos) << place << " in\n" << result.err;
  }
  const Ran both = ran({"sim", "serve", "--script", "cases/stream/plain.yaml", "--servers", "4"});
  EXPECT_EQ(both.err,
            "assay: --servers: is for the simulated engine, not for a script (leave it or --script "
            "out)\n");
  EXPECT_EQ(ran({"sim", "serve", "--script", path("none.yaml")}).code, ExitCode::kUsage);
}

}  // namespace
}  // namespace assay
