// Addresses of targets: http://host[:port][/prefix], IPv6 in brackets, or
// unix:/path/to/socket[:/prefix]. Text in, value out; no name is looked up here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "domain/spec/value.h"

namespace assay {

struct TargetUrl {
  std::string host;         // without brackets; empty for a unix socket
  std::uint16_t port = 80;  // unused for a unix socket
  std::string socket_path;  // empty: TCP
  std::string prefix;       // "" or "/path" without a slash at its end
};

/// A trailing "/v1" is dropped from the prefix, since every dialect adds its own path. Credentials,
/// https, queries and fragments are refused; messages never repeat the part before an '@'.
Parsed<TargetUrl> read_url(std::string_view text);
std::string show_url(const TargetUrl& url);

/// Can only this machine or a private network be meant? Names without a dot and names under .local,
/// .localhost and .internal count as private.
bool is_private(const TargetUrl& url);

}  // namespace assay
