#include "case_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "engine/sim/script.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::abort();
}

Case read_case(const fs::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::expected<Script, Errors> script = parse_script(text, path.string());
  if (!script) stop(script.error().front().text());
  Case read;
  read.name = path.stem().string();
  read.script = *std::move(script);
  const YAML::Node root = YAML::Load(text);
  if (!root["case"] || !root["expect"] || !root["expect"].IsMap()) {
    stop(fmt::format("{}: a case needs the keys case and expect", path.string()));
  }
  read.about = root["case"].Scalar();
  for (const YAML::Node& flag : root["run"]) read.run.push_back(flag.Scalar());
  for (const auto& entry : root["expect"]) {
    read.expect[entry.first.Scalar()] = entry.second.IsNull() ? "null" : entry.second.Scalar();
  }
  return read;
}

struct ChunkCounts {
  std::int64_t all = 0, shared = 0;
  bool damaged = false;
};

ChunkCounts count_chunks(const RequestRecord& record) {
  ChunkCounts counts;
  ChunkReader reader(record.chunks, record.scheduled);
  while (const std::optional<Chunk> chunk = reader.next()) {
    ++counts.all;
    if ((chunk->flags & kChunkNewRead) == 0) ++counts.shared;
  }
  counts.damaged = reader.damaged();
  return counts;
}

std::string shown(const MaybeCount& count) { return count ? std::to_string(*count) : "null"; }

/// The record as texts, under the keys of `expect`.
std::map<std::string, std::string> facts(const RequestRecord& record, std::int64_t malformed) {
  const ChunkCounts chunks = count_chunks(record);
  return {
      {"outcome", std::string(outcome_name(record.outcome))},
      {"http_status", record.http_status ? std::to_string(*record.http_status) : "null"},
      {"error_code", record.error_code.empty() ? "null" : record.error_code},
      {"finish_reason", record.finish_reason.empty() ? "null" : record.finish_reason},
      {"tokens_prompt", shown(record.tokens_server_prompt)},
      {"tokens_cached", shown(record.tokens_server_cached)},
      {"tokens_output", shown(record.tokens_server_output)},
      {"tokens_reasoning", shown(record.tokens_server_reasoning)},
      {"chunks", chunks.damaged ? "damaged" : std::to_string(chunks.all)},
      {"shared", std::to_string(chunks.shared)},
      {"events", std::to_string(record.events)},
      {"malformed", std::to_string(malformed)},
      {"text", record.text.value_or("null")},
      {"text_bytes", std::to_string(record.text.value_or("").size())},
  };
}

std::optional<MaybeTime> instant_of(const RequestRecord& record, const std::string& key) {
  if (key == "first_byte_ms") return record.first_byte;
  if (key == "first_event_ms") return record.first_event;
  if (key == "ttft_ms") return record.first_token;
  if (key == "ttfo_ms") return record.first_output;
  if (key == "last_token_ms") return record.last_token;
  if (key == "done_ms") return record.done;
  return std::nullopt;
}

bool agrees(const std::string& expected, const MaybeTime& at, RunTime since, Instants how) {
  if (expected == "null" || !at) return expected == "null" && !at;
  const Duration want = parse_duration(expected + "ms").value_or(-1ns);
  return how == Instants::kExact ? *at - since == want : *at - since >= want;
}

}  // namespace

std::vector<Case> read_cases(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Case> cases;
  for (const fs::path& path : paths) cases.push_back(read_case(path));
  return cases;
}

std::vector<std::string> differences(const Case& expected, const RequestRecord& record,
                                     std::int64_t malformed, Instants instants) {
  std::vector<std::string> out;
  const std::map<std::string, std::string> seen = facts(record, malformed);
  const RunTime since = record.send_start.value_or(record.scheduled);
  for (const auto& [key, want] : expected.expect) {
    if (const auto at = instant_of(record, key)) {
      if (agrees(want, *at, since, instants)) continue;
      out.push_back(fmt::format("{} is {}, not {}", key,
                                *at ? fmt::format("{}", to_ms(**at - since)) : "null", want));
    } else if (key == "error_text") {
      if (record.error_text.find(want) != std::string::npos) continue;
      out.push_back(fmt::format("error_text \"{}\" lacks \"{}\"", record.error_text, want));
    } else if (!seen.contains(key)) {
      out.push_back(fmt::format("\"{}\" is nothing that a case can expect", key));
    } else if (seen.at(key) != want && !(want.empty() && seen.at(key) == "null")) {
      // What shares a read is the network's choice; a socket can only promise the least.
      if (key == "shared" && instants == Instants::kNotBefore) continue;
      out.push_back(fmt::format("{} is \"{}\", not \"{}\"", key, seen.at(key), want));
    }
  }
  return out;
}

}  // namespace assay
