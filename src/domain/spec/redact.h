// Hides secrets wherever a spec is printed or stored. What counts as a secret is decided by name
// (authorization, anything with key, token, secret, password, cookie or auth in it) and by value
// (Bearer …, Basic …, sk-…). Numbers are never secrets: max_tokens stays readable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/spec/spec.h"

namespace assay {

inline constexpr std::string_view kRedacted = "[redacted]";

/// `spec` with the secrets of its headers and body replaced by kRedacted.
Spec redacted(Spec spec);
/// The same for one header's value and for a JSON object's text, which must be valid JSON.
std::string redacted_header(std::string_view name, std::string_view value);
std::string redacted_json(std::string_view json);
/// What redacted_json() hides, as it stands between its quotes.
std::vector<std::string> secrets_in_json(std::string_view json);

}  // namespace assay
