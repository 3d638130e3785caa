// From what a user typed to a valid Spec. Precedence: defaults (or the spec of an earlier run),
// then the spec file, then --set, then flags. Every problem is found in one pass; each names its
// flag, or file, line and key, and says how to mend it. Nothing is read from disk or the
// environment here.
//
// A Spec also goes to JSON (ledger, reports) and YAML (--dry-run) and comes back unchanged.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "domain/spec/spec.h"

namespace assay {

/// What was typed, unread.
struct Asked {
  /// ("--rate", "20") in order; a switch has the empty text. --set is one of them, with "a.b=v".
  std::vector<std::pair<std::string, std::string>> flags;
  std::vector<std::string> urls;         // bare arguments
  std::optional<std::string> spec_text;  // content of --spec
  std::string spec_path;                 // its name, for messages
  std::optional<Spec> base;              // --from: the effective spec of an earlier run
};

struct Resolved {
  Spec spec;
  std::vector<std::string> notes;  // sentences for the user: a limit that assay chose, and why
};

std::expected<Resolved, Errors> resolve_spec(const Asked& asked);

/// Every key of the spec file, null where unset, secrets redacted. One line.
std::string spec_to_json(const Spec& spec);
/// The inverse of spec_to_json but for redacted secrets. Keys that are missing keep their default.
std::expected<Spec, Error> spec_from_json(std::string_view json);
/// A spec file that resolves to `spec`; secrets redacted, unset keys as comments.
std::string spec_to_yaml(const Spec& spec);

/// What was typed, for the record: one setting per line, with its place, secrets redacted. For an
/// Asked that resolved.
std::string asked_to_text(const Asked& asked);

}  // namespace assay
