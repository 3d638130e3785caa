// From a spec to a Target that can be talked to: resolves the address, reads nothing but what it is
// handed, asks the server for its model where the spec says `auto`.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "domain/spec/spec.h"
#include "engine/target/target.h"

namespace assay {

struct OpenedTarget {
  std::unique_ptr<Target> target;
  std::string model;                 // as sent in requests
  std::vector<std::string> secrets;  // values that must never be printed or stored
  std::size_t addresses = 1;         // that connections may go to
};

/// `api_key` becomes a bearer token unless the spec has an authorization header of its own; empty:
/// none. kUnreachable when nothing answers; kUsage when the server names no model, or refuses the
/// question.
Result<OpenedTarget> open_target(const Spec& spec, const std::string& api_key);

/// The first model of a /v1/models reply. kUsage with what to do when there is none.
Result<std::string> first_model(const std::string& body, const std::string& url);

}  // namespace assay
