#include "domain/ledger/writer_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text.h"

namespace assay::internal {
namespace {

std::string whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string identity_of(std::int64_t pid) {
  const std::string stat = whole_file(fmt::format("/proc/{}/stat", pid));
  // The name in field 2 may hold blanks and parentheses: count from the last one.
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {};
  const std::vector<std::string_view> fields =
      split(std::string_view(stat).substr(name_end + 2), ' ');
  constexpr std::size_t kState = 3 - 3;  // fields before the state: 1 and 2
  constexpr std::size_t kStartTime = 22 - 3;
  if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X") return {};
  const std::string boot = whole_file("/proc/sys/kernel/random/boot_id");
  return fmt::format("{}:{}:{}", pid, fields[kStartTime], trim(boot));
}

}  // namespace

std::string this_process() { return identity_of(getpid()); }

bool process_alive(std::string_view identity) {
  const auto pid = parse_int(identity.substr(0, identity.find(':')));
  return pid && *pid > 0 && identity_of(*pid) == identity;
}

}  // namespace assay::internal
