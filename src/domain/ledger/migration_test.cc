#include "domain/ledger/migration.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "base/core/result.h"
#include "domain/ledger/sqlite.h"

namespace assay::internal {
namespace {

constexpr std::array<Migration, 2> kSteps{
    {{7, "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5"}, {8, "UPDATE t SET b = b + a"}}};

Database old_database() {
  Database db = *memory_database();
  EXPECT_TRUE(execute(db.get(), "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES(1)"));
  return db;
}

TEST(Migration, RunsTheStepsInOrderOnACopy) {
  const Database old = old_database();
  const auto copy = migrated_copy(old.get(), 7, 9, kSteps);
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(query_int(copy->get(), "SELECT b FROM t"), 6);
  EXPECT_FALSE(query_int(old.get(), "SELECT b FROM t")) << "the original was changed";
}

TEST(Migration, AMissingStepIsRefusedByNumber) {
  const Database old = old_database();
  const auto copy = migrated_copy(old.get(), 6, 9, kSteps);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().what,
            "made by an older assay: schema 6, and this binary reads schema 9 only");
}

}  // namespace
}  // namespace assay::internal
