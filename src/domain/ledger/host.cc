#include "domain/ledger/host.h"

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/json_writer.h"

namespace assay {

std::string host_to_json(const Host& host) {
  JsonWriter json;
  json.begin_object();
  json.field("cores", host.cores).field("kernel", host.kernel).field("machine", host.machine);
  json.field("descriptors", host.descriptors).field("local_ports", host.local_ports);
  json.end_object();
  return json.take();
}

Host host_from_json(std::string_view json) {
  Host host;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded(json);
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return host;
  const auto number = [&object](const char* key) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    if (object[key].get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  };
  const auto text = [&object](const char* key) {
    std::string_view value;
    return std::string(object[key].get(value) == simdjson::SUCCESS ? value : std::string_view());
  };
  host.cores = number("cores");
  host.descriptors = number("descriptors");
  host.local_ports = number("local_ports");
  host.kernel = text("kernel");
  host.machine = text("machine");
  return host;
}

}  // namespace assay
