// What a run writes down of the machine that it ran on: meta.host, a JSON object. Values that a
// reader doesn't find are null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct Host {
  std::optional<std::int64_t> cores;        // that the process could run on
  std::optional<std::int64_t> descriptors;  // files and sockets that it could open at once
  std::optional<std::int64_t> local_ports;  // for connections to one address and port
  std::string kernel, machine;              // as uname says
};

std::string host_to_json(const Host& host);
/// Unknown keys are ignored; what is no JSON object is a Host of which nothing is known.
Host host_from_json(std::string_view json);

}  // namespace assay
