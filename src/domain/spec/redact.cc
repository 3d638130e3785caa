#include "domain/spec/redact.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/text.h"
#include "domain/spec/spec.h"

namespace assay {
namespace {

bool is_secret_name(std::string_view name) {
  // An escape may spell any name, so it counts as one.
  if (name.find('\\') != std::string_view::npos) return true;
  for (std::size_t i = 0; i < name.size(); ++i) {
    for (const std::string_view mark :
         {"auth", "key", "token", "secret", "passw", "cookie", "credential", "bearer"}) {
      if (starts_with_ignoring_case(name.substr(i), mark)) return true;
    }
  }
  return false;
}

bool is_secret_value(std::string_view value) {
  return starts_with_ignoring_case(value, "bearer ") ||
         starts_with_ignoring_case(value, "basic ") || value.starts_with("sk-");
}

/// Index behind the string literal that starts at `open`.
std::size_t literal_end(std::string_view json, std::size_t open) {
  std::size_t i = open + 1;
  while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
  return std::min(i + 1, json.size());
}

std::size_t skip_blanks(std::string_view json, std::size_t i) {
  while (i < json.size() && std::string_view(" \t\r\n").find(json[i]) != std::string_view::npos)
    ++i;
  return i;
}

/// The text without its secrets, which are appended to `secrets`.
std::string take_secrets(std::string_view json, std::vector<std::string>& secrets) {
  std::string out;
  bool secret_next = false;  // the value that follows belongs to a secret name
  int depth = 0;
  int secret_depth = 0;  // inside a container that belongs to a secret name, from this depth down
  for (std::size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (c == '"') {
      const std::size_t end = literal_end(json, i);
      const std::string_view literal = json.substr(i, end - i);
      const std::string_view inner = literal.substr(1, literal.size() > 1 ? literal.size() - 2 : 0);
      const std::size_t after = skip_blanks(json, end);
      const bool is_name = after < json.size() && json[after] == ':';
      if (is_name) {
        out += literal;
        secret_next = is_secret_name(inner);
      } else {
        const bool secret = secret_next || secret_depth > 0 || is_secret_value(inner);
        if (secret && !inner.empty()) {
          append_json_string(out, kRedacted);
          secrets.emplace_back(inner);
        } else {
          out += literal;
        }
        secret_next = false;
      }
      i = end;
      continue;
    }
    if (c == '{' || c == '[') {
      ++depth;
      if (secret_next && secret_depth == 0) secret_depth = depth;
      secret_next = false;
    } else if (c == '}' || c == ']') {
      if (secret_depth == depth) secret_depth = 0;
      --depth;
    } else if (c == ',') {
      secret_next = false;
    }
    out += c;
    ++i;
  }
  return out;
}

}  // namespace

std::string redacted_header(std::string_view name, std::string_view value) {
  const bool secret = is_secret_name(name) || is_secret_value(value);
  return std::string(secret && !value.empty() ? kRedacted : value);
}

std::string redacted_json(std::string_view json) {
  std::vector<std::string> secrets;
  return take_secrets(json, secrets);
}

std::vector<std::string> secrets_in_json(std::string_view json) {
  std::vector<std::string> secrets;
  take_secrets(json, secrets);
  return secrets;
}

Spec redacted(Spec spec) {
  for (auto& [name, value] : spec.target.headers) value = redacted_header(name, value);
  spec.target.body = redacted_json(spec.target.body);
  return spec;
}

}  // namespace assay
