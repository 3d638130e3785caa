#include "engine/net/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace assay {
namespace {

TEST(Resolve, ANumericV4Address) {
  const Result<std::vector<Address>> found = resolve("127.0.0.1", 8000);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().text, "127.0.0.1:8000");
  EXPECT_EQ(found->front().storage.ss_family, AF_INET);
  EXPECT_EQ(found->front().length, sizeof(sockaddr_in));
}

TEST(Resolve, ANumericV6Address) {
  const Result<std::vector<Address>> found = resolve("::1", 1);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().text, "[::1]:1");
  EXPECT_EQ(found->front().storage.ss_family, AF_INET6);
}

TEST(Resolve, LocalhostIsThisMachine) {
  const Result<std::vector<Address>> found = resolve("localhost", 65535);
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::ranges::all_of(*found, [](const Address& address) {
    return address.text == "127.0.0.1:65535" || address.text == "[::1]:65535";
  }));
  EXPECT_FALSE(found->empty());
}

TEST(Resolve, ANameWithoutAnAddressIsUnreachable) {
  // .invalid never resolves (RFC 6761).
  const Result<std::vector<Address>> found = resolve("no-such-host.invalid", 80);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::kUnreachable);
  EXPECT_EQ(found.error().where, "no-such-host.invalid");
  EXPECT_TRUE(found.error().what.starts_with("no address for this host: ")) << found.error().what;
  EXPECT_FALSE(found.error().hint.empty());
}

TEST(UnixAddress, HoldsItsPath) {
  const Result<Address> address = unix_address("/run/engine.sock");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->text, "unix:/run/engine.sock");
  sockaddr_un un{};
  std::memcpy(&un, &address->storage, sizeof un);
  EXPECT_EQ(un.sun_family, AF_UNIX);
  EXPECT_STREQ(un.sun_path, "/run/engine.sock");
}

TEST(UnixAddress, ThePathHasABound) {
  constexpr std::size_t kMost = sizeof(sockaddr_un{}.sun_path) - 1;
  EXPECT_TRUE(unix_address(std::string(kMost, 'x')));
  const Result<Address> over = unix_address(std::string(kMost + 1, 'x'));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ExitCode::kUsage);
  EXPECT_EQ(over.error().what, "a socket path must have 1 to 107 bytes, this one has 108");
  EXPECT_FALSE(unix_address(""));
}

}  // namespace
}  // namespace assay
