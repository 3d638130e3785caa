#include "engine/probe/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>

#include "base/core/result.h"

namespace assay {
namespace {

constexpr HostLimits kHost{.descriptors = 20'000, .ports = 28'232, .cores = 2};

TEST(LimitsTest, RefusesMoreConnectionsThanDescriptorsWithTheRemedy) {
  EXPECT_TRUE(check_connections(kHost, 10'000, 1, Transport::kTcp));
  const Result<> refused = check_connections(kHost, 50'000, 1, Transport::kTcp);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kPreflight);
  EXPECT_EQ(refused.error().where, "--connections");
  EXPECT_EQ(refused.error().what,
            "50000 connections need 50064 file descriptors, but this process may open 20000");
  EXPECT_EQ(refused.error().hint,
            "raise the hard limit (`ulimit -Hn`, or LimitNOFILE= of the unit), or use at most "
            "19936");
}

TEST(LimitsTest, TheLimitThatIsNamedIsTheOneThatHolds) {
  EXPECT_TRUE(check_connections(kHost, 19'936, 1, Transport::kTcp));
  EXPECT_FALSE(check_connections(kHost, 19'937, 1, Transport::kTcp));
}

TEST(LimitsTest, PortsCountPerAddressAndNotForUnixSockets) {
  const HostLimits host{.descriptors = 1'000'000, .ports = 1000, .cores = 2};
  EXPECT_TRUE(check_connections(host, 1000, 1, Transport::kTcp));
  EXPECT_TRUE(check_connections(host, 2000, 2, Transport::kTcp));
  EXPECT_TRUE(check_connections(host, 5000, 1, Transport::kUnix));
  const Result<> refused = check_connections(host, 2001, 2, Transport::kTcp);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kPreflight);
  EXPECT_EQ(refused.error().hint, "widen net.ipv4.ip_local_port_range, or use at most 2000");
}

TEST(LimitsTest, NothingIsLeftWhereThereAreTooFewDescriptors) {
  const HostLimits host{.descriptors = 10, .ports = 1000, .cores = 1};
  const Result<> refused = check_connections(host, 1, 1, Transport::kTcp);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().hint.ends_with("at most 0"));
}

TEST(LimitsTest, ReadingRaisesTheSoftLimitToTheHardOne) {
  const HostLimits host = read_limits();
  EXPECT_GE(host.cores, 1);
  EXPECT_GT(host.ports, 0);
  EXPECT_LE(host.ports, 65'536);
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, now.rlim_max);
  EXPECT_GT(host.descriptors, 64);
}

}  // namespace
}  // namespace assay
