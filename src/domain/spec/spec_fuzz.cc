// Any text as a spec file: no crash, and whatever is accepted survives JSON and YAML.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/core/check.h"
#include "domain/spec/parse.h"
#include "domain/spec/redact.h"
#include "domain/spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::Asked asked;
  asked.spec_text.emplace(data, data + size);
  asked.spec_path = "fuzz.yaml";
  asked.flags = {{"--api", "null"}};
  const auto resolved = assay::resolve_spec(asked);
  if (!resolved) return 0;
  const assay::Spec spec = assay::redacted(resolved->spec);
  const auto back = assay::spec_from_json(assay::spec_to_json(spec));
  CHECK(back.has_value(), "{}", back.error().text());
  CHECK(*back == spec, "{}", assay::spec_to_json(spec));
  return 0;
}
