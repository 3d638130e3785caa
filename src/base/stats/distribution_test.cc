#include "base/stats/distribution.h"

#include <gtest/gtest.h>

#include "base/stats/share.h"

namespace assay {
namespace {

TEST(Distribution, MatchesPublishedTables) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 19), 2.0930, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.995, 8), 3.3554, 1e-4);
  EXPECT_NEAR(chi_squared_quantile(0.95, 19), 30.1435, 1e-4);
  EXPECT_NEAR(beta_quantile(0.975, 1, 10), 0.30850, 1e-5);
}

TEST(BinomialCdf, IsExactAndTotal) {
  EXPECT_EQ(binomial_cdf(-1, 10, 0.5), 0);
  EXPECT_EQ(binomial_cdf(10, 10, 0.5), 1);
  EXPECT_NEAR(binomial_cdf(1, 10, 0.5), 11.0 / 1024, 1e-15);
  EXPECT_EQ(binomial_cdf(0, 0, 0.5), 1);
}

TEST(ShareInterval, IsClopperAndPearsons) {
  const auto half = share_interval(5, 10);
  EXPECT_NEAR(half->low, 0.1871, 1e-4);
  EXPECT_NEAR(half->high, 0.8129, 1e-4);
  const auto none = share_interval(0, 10);
  EXPECT_EQ(none->low, 0);
  EXPECT_NEAR(none->high, 0.3085, 1e-4);
  EXPECT_EQ(share_interval(10, 10)->high, 1);
  EXPECT_FALSE(share_interval(0, 0));
}

}  // namespace
}  // namespace assay
