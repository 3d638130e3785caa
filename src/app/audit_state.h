// The last audit of this machine: one JSON file under the XDG state folder
// ($XDG_STATE_HOME, else ~/.local/state), assay/audit.json.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/world.h"
#include "base/core/result.h"
#include "study/doctor/audit.h"

namespace assay {

/// Empty where the environment names no home.
std::string audit_state_path(const World& world);
/// Replaces the file in one step; makes its folder.
Result<> save_audit(const std::string& path, const std::string& json);

struct LastAudit {
  Trust trust;
  std::string at;
};
/// Of this host. Null where there is none, the file is another's, or it can't be read: an audit
/// that can't be trusted is no audit.
std::optional<LastAudit> load_audit(const std::string& path, const AuditHost& host);

AuditHost audit_host(int cores);

/// Meta of a ledger: what the last audit of this machine trusted. Empty without one.
std::map<std::string, std::string> audit_meta(const World& world);

}  // namespace assay
