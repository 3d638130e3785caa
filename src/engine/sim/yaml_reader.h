// Reading YAML maps against a known set of keys, collecting every problem with its file and line.
// Used by the script parser; what a value means is the caller's business.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"

namespace assay::internal {

class YamlReader {
 public:
  explicit YamlReader(std::string path) : path_(std::move(path)) {}

  /// Notes a problem at `node`.
  void problem(const YAML::Node& node, std::string what, std::string hint = {});
  /// True when `node` is a map; otherwise notes that `name` must be one. Unknown keys are noted
  /// too.
  bool map(const YAML::Node& node, std::string_view name,
           const std::vector<std::string_view>& keys);
  /// True when `node` is a list; otherwise notes it.
  bool list(const YAML::Node& node, std::string_view name);

  // Each reads `map[key]` into `out` and leaves it alone where the key is missing or wrong.
  void text(const YAML::Node& map, const char* key, std::string& out);
  void whole(const YAML::Node& map, const char* key, std::int64_t least, std::int64_t& out);
  void whole(const YAML::Node& map, const char* key, std::int64_t least,
             std::optional<std::int64_t>& out);
  void duration(const YAML::Node& map, const char* key, Duration& out);
  /// The index of the value among `words`, which the message lists.
  std::optional<std::size_t> word(const YAML::Node& node, std::string_view name,
                                  const std::vector<std::string_view>& words);
  std::optional<Duration> duration(const YAML::Node& node, std::string_view name);
  std::optional<std::string> scalar(const YAML::Node& node, std::string_view name);

  [[nodiscard]] Errors take_problems() { return std::move(problems_); }

 private:
  std::string path_;
  Errors problems_;
};

/// A YAML value as JSON: plain null, true, false and numbers as such, everything else as strings.
std::string yaml_to_json(const YAML::Node& node);

}  // namespace assay::internal
