#include "base/core/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace assay {
namespace {

Result<std::unique_ptr<int>> box(int v) {
  if (v < 0) return usage_error("the number must be at least 0", "--n", "give another");
  return std::make_unique<int>(v);
}

Result<> check_even(int v) {
  if (v % 2 != 0) return fail({ExitCode::kPreflight, "odd", "", ""});
  return {};
}

Result<std::string> describe(int v) {
  const std::unique_ptr<int> boxed = TRY(box(v));
  TRY(check_even(*boxed));
  return std::to_string(*boxed);
}

TEST(Try, HandsOnMoveOnlyValuesAndVoid) { EXPECT_EQ(*describe(4), "4"); }

TEST(Try, ReturnsTheFirstError) {
  const auto below = describe(-1);
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().code, ExitCode::kUsage);
  EXPECT_EQ(below.error().text(), "--n: the number must be at least 0 (give another)");
  const auto odd = describe(3);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ExitCode::kPreflight);
}

TEST(Try, MovesOutOfAnLvalue) {
  Result<std::string> kept = std::string("a long enough text to live on the heap");
  const auto take = [&]() -> Result<std::string> { return TRY(kept); };
  EXPECT_EQ(*take(), "a long enough text to live on the heap");
  EXPECT_TRUE(kept->empty());
}

TEST(Error, TextLeavesOutWhatIsEmpty) {
  EXPECT_EQ((Error{ExitCode::kUsage, "wrong", "", ""}.text()), "wrong");
  EXPECT_EQ((Error{ExitCode::kUsage, "wrong", "a.yaml:3", ""}.text()), "a.yaml:3: wrong");
  EXPECT_EQ((Error{ExitCode::kUsage, "wrong", "", "mend it"}.text()), "wrong (mend it)");
}

}  // namespace
}  // namespace assay
