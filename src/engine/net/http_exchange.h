// One HTTP request and its whole reply, blocking: for the few questions that are asked before a run
// (which models are there) or beside it. Not for load.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/address.h"

namespace assay {

struct HttpReply {
  int status = 0;
  std::string body;  // at most kHttpReplyMax bytes
};
inline constexpr std::size_t kHttpReplyMax = 8 * 1024 * 1024;

/// Tries the addresses in order. kUnreachable when none connects, or the reply is not whole
/// `within` that time.
Result<HttpReply> http_exchange(const std::vector<Address>& addresses, std::string_view request,
                                Duration within);

}  // namespace assay
