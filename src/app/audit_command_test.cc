// The command line of the audit, and the file that it keeps; what needs a child process is tested
// from outside.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/audit_state.h"
#include "app/commands.h"
#include "app/world.h"
#include "serve/report/audit.h"
#include "study/doctor/audit.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Ran {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

Ran ran(std::vector<std::string> args) {
  Ran result;
  World world;
  world.args = std::move(args);
  world.env = [](const std::string& /*name*/) { return std::nullopt; };
  world.out = [&result](std::string_view text) { result.out += text; };
  world.err = [&result](std::string_view text) { result.err += text; };
  result.code = run_app(world);
  return result;
}

World world_with(const std::map<std::string, std::string>& env) {
  World world;
  world.env = [env](const std::string& name) {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  };
  return world;
}

class AuditState : public testing::Test {
 protected:
  AuditState()
      : folder_(fs::temp_directory_path() / ("assay_audit_state." + std::to_string(getpid()))),
        path_((folder_ / "deep" / "assay" / "audit.json").string()) {}
  ~AuditState() override { fs::remove_all(folder_); }

  static Audit audit() {
    Audit audit;
    audit.trust = {.events_per_s = 80'012, .streams = 1000};
    audit.host = {.name = "bench1", .kernel = "6.1.0", .cores = 2};
    audit.at = "2026-12-01T16:00:00Z";
    return audit;
  }

  fs::path folder_;
  std::string path_;
};

TEST(AuditArguments, AllProblemsAreListedAtOnce) {
  const Ran result = ran({"audit", "http://h", "--quik", "--inject", "early-stamp=1ms", "--format",
                          "xml", "--target", "ftp://h"});
  EXPECT_EQ(result.code, ExitCode::kUsage);
  EXPECT_EQ(result.out, "");
  for (const char* said :
       {"--quik: is not a flag of this command (did you mean --quick?)",
        "http://h: takes no bare argument (--target URL audits the way to a server)",
        "--inject: 'early-stamp=1ms' is no fault that can be put in (late-stamp=1ms is)",
        "--format: 'xml' is unknown", "ftp"}) {
    EXPECT_NE(result.err.find(said), std::string::npos) << said << "\n" << result.err;
  }
}

TEST(AuditArguments, AFaultNeedsALength) {
  for (const char* fault : {"late-stamp=1", "late-stamp=0", "late-stamp=", "late-stamp=-1ms"}) {
    const Ran result = ran({"audit", "--inject", fault});
    EXPECT_EQ(result.code, ExitCode::kUsage) << fault;
    EXPECT_NE(result.err.find("--inject"), std::string::npos) << result.err;
  }
}

TEST(AuditArguments, ATargetThatIsNotThereIsUnreachable) {
  EXPECT_EQ(ran({"audit", "--target", "http://127.0.0.1:1"}).code, ExitCode::kUnreachable);
}

TEST_F(AuditState, LiesUnderTheXdgStateFolder) {
  EXPECT_EQ(audit_state_path(world_with({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}})),
            "/s/assay/audit.json");
  EXPECT_EQ(audit_state_path(world_with({{"HOME", "/h"}})), "/h/.local/state/assay/audit.json");
  EXPECT_EQ(audit_state_path(world_with({{"XDG_STATE_HOME", "relative"}, {"HOME", "/h"}})),
            "/h/.local/state/assay/audit.json");
  EXPECT_EQ(audit_state_path(world_with({})), "");
}

TEST_F(AuditState, ComesBackAsItWasKept) {
  ASSERT_TRUE(save_audit(path_, "half of something"));
  EXPECT_EQ(load_audit(path_, audit().host), std::nullopt);
  ASSERT_TRUE(save_audit(path_, render_audit_json(audit())));
  const std::optional<LastAudit> last = load_audit(path_, audit().host);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->trust.events_per_s, 80'012);
  EXPECT_EQ(last->trust.streams, 1000);
  EXPECT_EQ(last->at, "2026-12-01T16:00:00Z");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1);
}

TEST_F(AuditState, OfAnotherHostCountsForNothing) {
  ASSERT_TRUE(save_audit(path_, render_audit_json(audit())));
  for (const AuditHost& other : {AuditHost{"bench2", "6.1.0", 2}, AuditHost{"bench1", "6.2.0", 2},
                                 AuditHost{"bench1", "6.1.0", 4}}) {
    EXPECT_EQ(load_audit(path_, other), std::nullopt);
  }
  EXPECT_EQ(load_audit("", audit().host), std::nullopt);
  EXPECT_EQ(load_audit(path_ + ".none", audit().host), std::nullopt);
}

TEST_F(AuditState, AFolderThatCantBeMadeIsSaid) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "deep") << "a file";
  const Result<> saved = save_audit(path_, "{}");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().where, path_);
  EXPECT_NE(saved.error().hint.find("XDG_STATE_HOME"), std::string::npos);
}

}  // namespace
}  // namespace assay
