// A case: a script, and what a client must make of it. cases/README.md is the format's contract.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/sim/script.h"

namespace assay {

struct Case {
  std::string name;   // of the file, without folder and ending
  std::string about;  // what it shows
  Script script;
  std::vector<std::string> run;               // flags of `assay run`; cases/load only
  std::map<std::string, std::string> expect;  // key to value as text; "null" is null
};

/// How a test that is run with a case is named in the listing.
inline void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

/// Every case of `folder` (relative to the source tree), by name. Ends the test program with a
/// message where one does not parse: a broken case must not pass for want of being run.
std::vector<Case> read_cases(const std::string& folder);

/// How exactly instants must agree: in memory to the nanosecond, over a socket at least the
/// earliest possible instant.
enum class Instants { kExact, kNotBefore };

/// What `record` has that the case does not expect, one sentence each. `malformed` events are
/// counted by the worker, not in the record.
std::vector<std::string> differences(const Case& expected, const RequestRecord& record,
                                     std::int64_t malformed, Instants instants);

}  // namespace assay
