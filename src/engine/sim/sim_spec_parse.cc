#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/spec/value.h"
#include "engine/sim/distribution.h"
#include "engine/sim/sim_spec.h"
#include "engine/sim/yaml_reader.h"

namespace assay {
namespace {

constexpr std::int64_t kServersMax = 1'000'000;

/// Reads maps of `sim:` keys, the file's and one per flag, into one spec.
class SimParser {
 public:
  explicit SimParser(const ReadFile& read_file) : read_file_(read_file) {}

  void read_yaml(const std::string& yaml, const std::string& path);
  void read_flag(const std::string& flag, const std::string& value);
  std::expected<SimSpec, Errors> finish();

 private:
  void read_sim(const YAML::Node& sim);
  void read_servers(const YAML::Node& sim);
  void read_batch(const YAML::Node& sim);
  void read_refuse(const YAML::Node& node);
  void read_output(const YAML::Node& node);
  void read_tokens(const YAML::Node& node);
  void read_cold(const YAML::Node& node);
  void read_stalls(const YAML::Node& node);
  void read_random_stalls(const YAML::Node& node);
  void read_faults(const YAML::Node& node);
  std::optional<FaultRule> read_fault(const YAML::Node& node);
  void read_status(const YAML::Node& map, int& out);
  void distribution(const YAML::Node& map, const char* key, std::optional<SimDistribution>& out);
  std::optional<double> number(const YAML::Node& map, const char* key, double least, double most);
  void at_most(const YAML::Node& map, const char* key, std::int64_t most, std::int64_t value);
  void note_keys(const YAML::Node& sim);
  void take_problems(internal::YamlReader& reader);
  /// Where `key` was given, for a problem of keys that don't go together.
  void conflict(const std::string& a, const std::string& b, const std::string& why);

  const ReadFile& read_file_;
  internal::YamlReader* in_ = nullptr;
  SimSpec spec_;
  ServersSpec servers_;
  BatchSpec batch_;
  std::optional<SimDistribution> ttft_, gap_;
  std::vector<std::pair<std::string, std::string>> given_;  // key, place
  std::string path_;
  Errors errors_;
};

void SimParser::take_problems(internal::YamlReader& reader) {
  Errors problems = reader.take_problems();
  errors_.insert(errors_.end(), problems.begin(), problems.end());
}

void SimParser::read_yaml(const std::string& yaml, const std::string& path) {
  internal::YamlReader reader(path);
  in_ = &reader;
  path_ = path;
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    errors_.push_back({ExitCode::kUsage, fmt::format("this is not YAML: {}", error.msg),
                       fmt::format("{}:{}", path, error.mark.is_null() ? 1 : error.mark.line + 1),
                       "quote texts that hold any of : # { } [ ] , &"});
    return;
  }
  if (in_->map(root, "a simulated engine", {"sim"})) {
    if (root["sim"]) {
      read_sim(root["sim"]);
    } else {
      in_->problem(root, "there is no simulated engine here", "put its keys under \"sim:\"");
    }
  }
  take_problems(reader);
}

void SimParser::read_flag(const std::string& flag, const std::string& value) {
  internal::YamlReader reader(flag);
  in_ = &reader;
  path_ = flag;
  const auto known = std::ranges::find(sim_flags(), flag, &SimFlag::flag);
  YAML::Node sim(YAML::NodeType::Map);
  if (known != sim_flags().end()) sim[std::string(known->key)] = value;
  read_sim(sim);
  take_problems(reader);
}

void SimParser::note_keys(const YAML::Node& sim) {
  for (const auto& entry : sim) {
    if (!entry.first.IsScalar()) continue;
    const YAML::Mark mark = entry.first.Mark();
    given_.emplace_back(entry.first.Scalar(), mark.is_null() || path_.starts_with("--")
                                                  ? path_
                                                  : fmt::format("{}:{}", path_, mark.line + 1));
  }
}

void SimParser::read_sim(const YAML::Node& sim) {
  if (!in_->map(sim, "sim",
                {"model", "servers", "service", "ttft", "gap", "slow", "batch_max", "step",
                 "step_per_stream", "prefill_per_token", "queue", "refuse", "output", "tokens",
                 "cold", "stalls", "random_stalls", "faults"})) {
    return;
  }
  note_keys(sim);
  in_->text(sim, "model", spec_.model);
  read_servers(sim);
  read_batch(sim);
  in_->whole(sim, "queue", 0, spec_.queue);
  if (sim["refuse"]) read_refuse(sim["refuse"]);
  if (sim["output"]) read_output(sim["output"]);
  if (sim["tokens"]) read_tokens(sim["tokens"]);
  if (sim["cold"]) read_cold(sim["cold"]);
  if (sim["stalls"]) read_stalls(sim["stalls"]);
  if (sim["random_stalls"]) read_random_stalls(sim["random_stalls"]);
  if (sim["faults"]) read_faults(sim["faults"]);
}

void SimParser::distribution(const YAML::Node& map, const char* key,
                             std::optional<SimDistribution>& out) {
  if (!map[key]) return;
  const std::optional<std::string> text = in_->scalar(map[key], key);
  if (!text) return;
  Parsed<SimDistribution> value = read_distribution(*text, read_file_);
  if (value) {
    out = *std::move(value);
  } else {
    in_->problem(map[key], fmt::format("{}: {}", key, value.error().what), value.error().hint);
  }
}

std::optional<double> SimParser::number(const YAML::Node& map, const char* key, double least,
                                        double most) {
  if (!map[key]) return std::nullopt;
  const std::optional<std::string> text = in_->scalar(map[key], key);
  if (!text) return std::nullopt;
  const std::optional<double> value = parse_number(*text);
  if (value && *value >= least && *value <= most) return value;
  in_->problem(map[key], fmt::format("{} must be a number from {} to {}, not \"{}\"", key, least,
                                     most, *text));
  return std::nullopt;
}

void SimParser::at_most(const YAML::Node& map, const char* key, std::int64_t most,
                        std::int64_t value) {
  if (value > most) in_->problem(map[key], fmt::format("{} must be at most {}", key, most));
}

void SimParser::read_servers(const YAML::Node& sim) {
  in_->whole(sim, "servers", 1, servers_.servers);
  at_most(sim, "servers", kServersMax, servers_.servers);
  distribution(sim, "service", servers_.service);
  distribution(sim, "ttft", ttft_);
  distribution(sim, "gap", gap_);
  const YAML::Node slow = sim["slow"];
  if (!slow || !in_->map(slow, "slow", {"servers", "factor"})) return;
  servers_.slow_servers = 1;
  in_->whole(slow, "servers", 0, servers_.slow_servers);
  servers_.slow_factor = number(slow, "factor", 0.001, 1000).value_or(2);
}

void SimParser::read_batch(const YAML::Node& sim) {
  in_->whole(sim, "batch_max", 1, batch_.batch_max);
  at_most(sim, "batch_max", kServersMax, batch_.batch_max);
  in_->duration(sim, "step", batch_.step_base);
  in_->duration(sim, "step_per_stream", batch_.step_per_stream);
  in_->duration(sim, "prefill_per_token", batch_.prefill_per_token);
}

void SimParser::read_status(const YAML::Node& map, int& out) {
  std::int64_t status = out;
  in_->whole(map, "status", 400, status);
  if (status > 599) {
    in_->problem(map["status"], "status must be one of an error, from 400 to 599");
  } else {
    out = static_cast<int>(status);
  }
}

void SimParser::read_refuse(const YAML::Node& node) {
  if (!in_->map(node, "refuse", {"status", "retry_after"})) return;
  read_status(node, spec_.refusal.status);
  in_->duration(node, "retry_after", spec_.refusal.retry_after);
}

void SimParser::read_output(const YAML::Node& node) {
  const std::optional<std::string> text = in_->scalar(node, "output");
  if (!text) return;
  const std::size_t colon = text->find(':');
  const std::string kind = text->substr(0, colon);
  const double tokens =
      colon == std::string::npos ? 0 : parse_number(text->substr(colon + 1)).value_or(0);
  const bool in_range = tokens >= 1 && tokens <= static_cast<double>(kTokensMax);
  const bool whole = in_range && tokens == static_cast<double>(static_cast<std::int64_t>(tokens));
  if (*text == "asked") {
    spec_.output = {};
  } else if (kind == "fixed" && whole) {
    spec_.output = {OutputSpec::Kind::kFixed, tokens};
  } else if (kind == "geometric" && in_range) {
    spec_.output = {OutputSpec::Kind::kGeometric, tokens};
  } else {
    in_->problem(node, fmt::format("\"{}\" is no length of replies", *text),
                 "asked, fixed:128, or geometric:128 (mean)");
  }
}

void SimParser::read_tokens(const YAML::Node& node) {
  if (!in_->map(node, "tokens", {"per_chunk", "role", "reasoning", "head", "usage"})) return;
  TokenSpec& tokens = spec_.tokens;
  in_->whole(node, "per_chunk", 1, tokens.per_chunk);
  at_most(node, "per_chunk", kTokensMax, tokens.per_chunk);
  in_->whole(node, "reasoning", 0, tokens.reasoning);
  if (node["role"]) {
    const auto role = in_->word(node["role"], "role", {"false", "true"});
    if (role) tokens.role = *role == 1;
  }
  if (node["head"]) {
    const auto head = in_->word(node["head"], "head", {"accepted", "served", "first"});
    if (head) tokens.head = static_cast<TokenSpec::Head>(*head);
  }
  if (node["usage"]) {
    const auto usage = in_->word(node["usage"], "usage", {"none", "end", "each"});
    if (usage) tokens.usage = static_cast<TokenSpec::Usage>(*usage);
  }
}

void SimParser::read_cold(const YAML::Node& node) {
  if (!in_->map(node, "cold", {"first_call", "tokenizer", "new_length", "length_step"})) return;
  in_->duration(node, "first_call", spec_.cold.first_call);
  in_->duration(node, "tokenizer", spec_.cold.tokenizer);
  in_->duration(node, "new_length", spec_.cold.new_length);
  in_->whole(node, "length_step", 1, spec_.cold.length_step);
}

void SimParser::read_stalls(const YAML::Node& node) {
  if (!in_->list(node, "stalls")) return;
  spec_.stalls.clear();
  Duration free_from{0};
  for (const YAML::Node& item : node) {
    if (!in_->map(item, "a stall", {"at", "for"})) continue;
    StallSpec stall;
    in_->duration(item, "at", stall.at);
    in_->duration(item, "for", stall.length);
    if (stall.length.count() <= 0) {
      in_->problem(item, "a stall needs a length", "for example {at: 10s, for: 2s}");
    } else if (stall.at < free_from) {
      in_->problem(item, "a stall begins before the one above it has ended",
                   "list them in order, and apart");
    }
    free_from = stall.at + stall.length;
    spec_.stalls.push_back(stall);
  }
}

void SimParser::read_random_stalls(const YAML::Node& node) {
  if (!in_->map(node, "random_stalls", {"every", "for"})) return;
  std::optional<SimDistribution> every, length;
  distribution(node, "every", every);
  distribution(node, "for", length);
  if (!node["every"] || !node["for"]) {
    in_->problem(node, "random_stalls needs every and for",
                 "for example {every: exp:30s, for: det:500ms}");
  } else if (every && every->is_zero()) {
    in_->problem(node["every"], "every must be above 0");
  } else if (every && length) {
    spec_.random_stalls = RandomStalls{*every, *length};
  }
}

void SimParser::read_faults(const YAML::Node& node) {
  if (!in_->list(node, "faults")) return;
  spec_.faults.clear();
  for (const YAML::Node& item : node) {
    if (const std::optional<FaultRule> rule = read_fault(item)) spec_.faults.push_back(*rule);
  }
}

std::optional<FaultRule> SimParser::read_fault(const YAML::Node& node) {
  if (!in_->map(node, "a fault",
                {"do", "nth", "every", "share", "after", "status", "retry_after", "pause"})) {
    return std::nullopt;
  }
  FaultRule rule;
  std::vector<std::string_view> names;
  for (int i = 0; i < kFaultKindCount; ++i) names.push_back(fault_name(static_cast<FaultKind>(i)));
  if (!node["do"]) {
    in_->problem(node, "a fault needs \"do\"", "for example {do: reset, every: 10, after: 5}");
    return std::nullopt;
  }
  const auto kind = in_->word(node["do"], "do", names);
  if (kind) rule.kind = static_cast<FaultKind>(*kind);
  in_->whole(node, "nth", 1, rule.nth);
  in_->whole(node, "every", 1, rule.every);
  rule.share = number(node, "share", 0, 1);
  if ((node["nth"] ? 1 : 0) + (node["every"] ? 1 : 0) + (node["share"] ? 1 : 0) != 1) {
    in_->problem(node, "a fault needs exactly one of nth, every and share",
                 "nth: 2 is the second request, every: 3 each third one, share: 0.01 one in a "
                 "hundred at random");
  }
  in_->whole(node, "after", 0, rule.after);
  read_status(node, rule.status);
  in_->duration(node, "retry_after", rule.retry_after);
  in_->duration(node, "pause", rule.pause);
  return rule;
}

void SimParser::conflict(const std::string& a, const std::string& b, const std::string& why) {
  const auto place = [this](const std::string& key) -> const std::string* {
    const auto found = std::ranges::find(given_, key, &std::pair<std::string, std::string>::first);
    return found == given_.end() ? nullptr : &found->second;
  };
  if (place(a) == nullptr || place(b) == nullptr) return;
  errors_.push_back({ExitCode::kUsage, fmt::format("{} and {} don't go together: {}", a, b, why),
                     *place(b), "keep one"});
}

std::expected<SimSpec, Errors> SimParser::finish() {
  constexpr std::array kServerKeys = {"servers", "service", "ttft", "gap", "slow"};
  constexpr std::array kBatchKeys = {"batch_max", "step", "step_per_stream", "prefill_per_token"};
  const auto given = [this](const char* key) {
    return std::ranges::find(given_, key, &std::pair<std::string, std::string>::first) !=
           given_.end();
  };
  for (const char* const server : kServerKeys) {
    for (const char* const batch : kBatchKeys) {
      conflict(server, batch, "an engine has servers or a batch");
    }
  }
  const std::string whole_time = "service is the time of the whole reply";
  conflict("service", "ttft", whole_time);
  conflict("service", "gap", whole_time);
  conflict("stalls", "random_stalls", "stalls are scripted or drawn");
  const bool batched = std::ranges::any_of(kBatchKeys, given);
  if (batched && batch_.step_base + batch_.step_per_stream <= Duration(0)) {
    errors_.push_back({ExitCode::kUsage, "a step of the batch must take some time", "step",
                       "set step or step_per_stream above 0"});
  }
  if (servers_.slow_servers > servers_.servers) {
    errors_.push_back(
        {ExitCode::kUsage,
         fmt::format("{} slow servers of {} in all", servers_.slow_servers, servers_.servers),
         "slow", "lower slow.servers or raise servers"});
  }
  if (!errors_.empty()) return std::unexpected(std::move(errors_));
  if (ttft_) servers_.ttft = *ttft_;
  if (gap_) servers_.gap = *gap_;
  spec_.engine = servers_;
  if (batched) spec_.engine = batch_;
  return std::move(spec_);
}

}  // namespace

std::expected<SimSpec, Errors> resolve_sim_spec(const SimAsked& asked, const ReadFile& read_file) {
  SimParser parser(read_file);
  if (asked.yaml) parser.read_yaml(*asked.yaml, asked.path);
  for (const auto& [flag, value] : asked.flags) parser.read_flag(flag, value);
  return parser.finish();
}

}  // namespace assay
