#include "app/audit_state.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "app/world.h"
#include "base/core/result.h"
#include "domain/ledger/ledger.h"
#include "engine/probe/limits.h"
#include "study/doctor/audit.h"

namespace assay {

std::string audit_state_path(const World& world) {
  // An XDG folder that is not absolute is to be ignored (XDG Base Directory Specification).
  std::string folder = world.env("XDG_STATE_HOME").value_or("");
  if (!folder.starts_with('/')) {
    const std::string home = world.env("HOME").value_or("");
    if (home.empty()) return "";
    folder = home + "/.local/state";
  }
  return folder + "/assay/audit.json";
}

Result<> save_audit(const std::string& path, const std::string& json) {
  const auto refuse = [&path](const std::string& why) {
    return fail({ExitCode::kInternal, "the audit can't be kept: " + why, path,
                 "set XDG_STATE_HOME to a folder that can be written"});
  };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return refuse(error.message());
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  std::FILE* const file = std::fopen(fresh.c_str(), "we");
  if (file == nullptr) return refuse(std::generic_category().message(errno));
  const bool written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    unlink(fresh.c_str());
    return refuse("the disk took only a part");
  }
  std::filesystem::rename(fresh, path, error);
  return error ? Result<>(refuse(error.message())) : Result<>();
}

std::optional<LastAudit> load_audit(const std::string& path, const AuditHost& host) {
  if (path.empty()) return std::nullopt;
  const Result<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element audit;
  if (parser.parse(*text).get(audit) != simdjson::SUCCESS) return std::nullopt;
  const auto text_at = [&audit](std::string_view pointer) {
    std::string_view value;
    return audit.at_pointer(pointer).get(value) == simdjson::SUCCESS ? value : std::string_view();
  };
  LastAudit last;
  std::int64_t cores = 0;
  const bool whole =
      text_at("/schema") == "assay.audit/1" &&
      audit.at_pointer("/host/cores").get(cores) == simdjson::SUCCESS &&
      audit.at_pointer("/trust/streams").get(last.trust.streams) == simdjson::SUCCESS &&
      audit.at_pointer("/trust/events_per_s").get(last.trust.events_per_s) == simdjson::SUCCESS;
  last.at = text_at("/at");
  const AuditHost its{std::string(text_at("/host/name")), std::string(text_at("/host/kernel")),
                      cores};
  return whole && its == host ? std::optional(last) : std::nullopt;
}

AuditHost audit_host(int cores) {
  utsname name{};
  uname(&name);
  return {.name = name.nodename, .kernel = name.release, .cores = cores};
}

std::map<std::string, std::string> audit_meta(const World& world) {
  const std::optional<LastAudit> last =
      load_audit(audit_state_path(world), audit_host(read_limits().cores));
  if (!last) return {};
  return {{std::string(meta::kAuditEventsPerS), fmt::format("{:.0f}", last->trust.events_per_s)},
          {std::string(meta::kAuditStreams), std::to_string(last->trust.streams)},
          {std::string(meta::kAuditAt), last->at}};
}

}  // namespace assay
