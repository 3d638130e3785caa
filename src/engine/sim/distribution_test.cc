#include "engine/sim/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

Result<std::string> no_file(const std::string& path) { return usage_error("no such file", path); }

SimDistribution read(std::string_view text) {
  const Parsed<SimDistribution> out = read_distribution(text, no_file);
  EXPECT_TRUE(out.has_value()) << text;
  return out.value_or(SimDistribution{});
}

struct Moments {
  double mean = 0, cv = 0;
};

Moments moments(const SimDistribution& distribution) {
  constexpr int kN = 200'000;
  const RandomStream stream(7, "test");
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < kN; ++i) {
    Draws draws = stream.at(i);
    const double x = to_seconds(distribution.draw(draws));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kN;
  return {mean, std::sqrt(squares / kN - mean * mean) / mean};
}

TEST(DistributionTest, MomentsAreThoseAskedFor) {
  const struct {
    const char* text;
    double mean, cv;
  } cases[] = {
      {"det:50ms", 0.05, 0},
      {"exp:50ms", 0.05, 1},
      {"lognormal:mean=50ms,0.5", 0.05, std::sqrt(std::expm1(0.25))},
      {"lognormal:50ms,0.5", 0.05 * std::exp(0.125), std::sqrt(std::expm1(0.25))},
      {"gamma:50ms,0.3", 0.05, 0.3},
      {"gamma:50ms,1", 0.05, 1},
      {"gamma:50ms,2", 0.05, 2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const SimDistribution distribution = read(c.text);
    const Moments seen = moments(distribution);
    EXPECT_NEAR(seen.mean, c.mean, 0.015 * c.mean);
    EXPECT_NEAR(seen.cv, c.cv, 0.03 * c.cv + 1e-4);
    EXPECT_NEAR(distribution.mean_seconds(), c.mean, 1e-9);
  }
}

TEST(DistributionTest, DrawsAreTheSameBitsEverywhere) {
  const RandomStream stream(1, "pinned");
  const auto first = [&](std::string_view text) {
    Draws draws = stream.at(0);
    return read(text).draw(draws).count();
  };
  EXPECT_EQ(first("exp:50ms"), 24'080'556);
  EXPECT_EQ(first("lognormal:50ms,0.5"), 36'716'592);
  EXPECT_EQ(first("gamma:50ms,0.7"), 25'012'974);
  EXPECT_EQ(first("gamma:50ms,3"), 271'137);
}

TEST(DistributionTest, TablesDrawEachLineAlike) {
  const auto file = [](const std::string& /*path*/) -> Result<std::string> {
    return std::string("10ms\n\n20ms\r\n60ms\n");
  };
  const Parsed<SimDistribution> table = read_distribution("table:gaps.txt", file);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->text(), "table:gaps.txt");
  EXPECT_NEAR(table->mean_seconds(), 0.03, 1e-12);
  EXPECT_NEAR(moments(*table).mean, 0.03, 0.0003);
}

TEST(DistributionTest, TextReadsBack) {
  for (const char* text :
       {"det:50ms", "det:0", "exp:1.5s", "lognormal:50ms,0.5", "gamma:2ms,0.7"}) {
    EXPECT_EQ(read(text).text(), text);
  }
  EXPECT_EQ(read("50ms").text(), "det:50ms");
}

TEST(DistributionTest, WrongTextsSayWhatIsWrong) {
  const auto what = [](std::string_view text) {
    const Parsed<SimDistribution> out = read_distribution(text, no_file);
    return out ? std::string("taken") : out.error().what;
  };
  EXPECT_EQ(what("weibull:1ms,2"), "'weibull:1ms,2' is no distribution of times");
  EXPECT_EQ(what("gamma:50ms"), "gamma needs a duration and a number, with a comma between");
  EXPECT_EQ(what("gamma:50ms,0"),
            "the coefficient of variation must be above 0 and at most 10, not '0'");
  EXPECT_EQ(what("lognormal:50ms,x"), "the sigma must be above 0 and at most 10, not 'x'");
  EXPECT_NE(what("exp:50"), "taken");
  EXPECT_NE(what("exp:0"), "taken");
  EXPECT_EQ(what("table:none.txt"), "none.txt: no such file");
}

}  // namespace
}  // namespace assay
