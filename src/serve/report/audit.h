// The renderers of an audit: pure functions from an Audit to bytes, as those of a run are. Format
// and keys: docs/formats/audit.md.
#pragma once

#include <string>

#include "serve/report/report.h"
#include "study/doctor/audit.h"
#include "study/doctor/endpoint.h"

namespace assay {

/// Two tables, what broke, what was left out, and one sentence at the end that says how far to
/// trust runs here.
std::string render_audit_text(const Audit& audit, const TextStyle& style);

/// One object of schema assay.audit/1.
std::string render_audit_json(const Audit& audit);

std::string render_endpoint_text(const EndpointAudit& audit, const TextStyle& style);
/// The same schema: one rung, whose figures against a truth are null, and "target" with the rest.
std::string render_endpoint_json(const EndpointAudit& audit);

}  // namespace assay
