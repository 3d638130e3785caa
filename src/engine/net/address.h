// Where to connect to. Names are resolved once, before a run, to every IPv6 and IPv4 address that
// they have; a connection tries them in that order. Proxy variables are not looked at.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace assay {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:8000", "[::1]:8000", "unix:/run/engine.sock"
};

/// Blocks for the resolver. Fails with kUnreachable when the name has no address.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);
/// Fails with kUsage when the path is too long for a socket address.
Result<Address> unix_address(std::string_view path);

}  // namespace assay
