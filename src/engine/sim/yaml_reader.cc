#include "engine/sim/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"

namespace assay::internal {

void YamlReader::problem(const YAML::Node& node, std::string what, std::string hint) {
  const YAML::Mark mark = node.Mark();
  const std::string where = mark.is_null() ? path_ : fmt::format("{}:{}", path_, mark.line + 1);
  problems_.push_back({ExitCode::kUsage, std::move(what), where, std::move(hint)});
}

bool YamlReader::map(const YAML::Node& node, std::string_view name,
                     const std::vector<std::string_view>& keys) {
  if (!node.IsMap()) {
    problem(node, fmt::format("{} must be a map", name),
            fmt::format("its keys are {}", fmt::join(keys, ", ")));
    return false;
  }
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (std::ranges::find(keys, std::string_view(key)) != keys.end()) continue;
    const std::optional<std::string_view> near = nearest_word(key, keys);
    problem(entry.first, fmt::format("{} knows no key \"{}\"", name, key),
            near ? fmt::format("did you mean {}?", *near)
                 : fmt::format("its keys are {}", fmt::join(keys, ", ")));
  }
  return true;
}

bool YamlReader::list(const YAML::Node& node, std::string_view name) {
  if (node.IsSequence()) return true;
  problem(node, fmt::format("{} must be a list", name), "start each item with \"- \"");
  return false;
}

std::optional<std::string> YamlReader::scalar(const YAML::Node& node, std::string_view name) {
  if (node.IsScalar()) return node.Scalar();
  problem(node, fmt::format("{} must be a plain value", name), "not a list or a map");
  return std::nullopt;
}

void YamlReader::text(const YAML::Node& map, const char* key, std::string& out) {
  const YAML::Node node = map[key];
  if (!node) return;
  if (std::optional<std::string> value = scalar(node, key)) out = std::move(*value);
}

void YamlReader::whole(const YAML::Node& map, const char* key, std::int64_t least,
                       std::optional<std::int64_t>& out) {
  const YAML::Node node = map[key];
  if (!node) return;
  const std::optional<std::string> value = scalar(node, key);
  if (!value) return;
  const std::optional<std::int64_t> number = parse_int(*value);
  if (number && *number >= least) {
    out = number;
  } else {
    problem(node, fmt::format("{} must be a whole number of at least {}, not \"{}\"", key, least,
                              *value));
  }
}

void YamlReader::whole(const YAML::Node& map, const char* key, std::int64_t least,
                       std::int64_t& out) {
  std::optional<std::int64_t> value;
  whole(map, key, least, value);
  if (value) out = *value;
}

std::optional<Duration> YamlReader::duration(const YAML::Node& node, std::string_view name) {
  const std::optional<std::string> value = scalar(node, name);
  if (!value) return std::nullopt;
  const std::optional<Duration> parsed = parse_duration(*value);
  if (!parsed) {
    problem(node, fmt::format("{} must be a time, not \"{}\"", name, *value),
            "a number with us, ms, s, m or h, such as 250ms, or a bare 0");
  }
  return parsed;
}

void YamlReader::duration(const YAML::Node& map, const char* key, Duration& out) {
  const YAML::Node node = map[key];
  if (!node) return;
  if (const std::optional<Duration> value = duration(node, std::string_view(key))) out = *value;
}

std::optional<std::size_t> YamlReader::word(const YAML::Node& node, std::string_view name,
                                            const std::vector<std::string_view>& words) {
  const std::optional<std::string> value = scalar(node, name);
  if (!value) return std::nullopt;
  const auto found = std::ranges::find(words, std::string_view(*value));
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  problem(node, fmt::format("{} is one of {}, not \"{}\"", name, fmt::join(words, ", "), *value));
  return std::nullopt;
}

namespace {

void write_scalar(const YAML::Node& node, JsonWriter& out) {
  const std::string& text = node.Scalar();
  // yaml-cpp tags a quoted scalar "!" and a plain one "?".
  const bool plain = node.Tag() == "?";
  if (plain && (text == "true" || text == "false")) {
    out.value(text == "true");
  } else if (plain && (text == "null" || text == "~")) {
    out.null();
  } else if (const std::optional<std::int64_t> whole = parse_int(text); plain && whole) {
    out.value(*whole);
  } else if (const std::optional<double> number = parse_number(text); plain && number) {
    out.value(*number);
  } else {
    out.value(std::string_view(text));
  }
}

// NOLINTNEXTLINE(misc-no-recursion): depth is bounded by yaml-cpp's own limit on nesting
void write_json(const YAML::Node& node, JsonWriter& out) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      out.begin_object();
      for (const auto& entry : node) {
        out.key(entry.first.Scalar());
        write_json(entry.second, out);
      }
      out.end_object();
      break;
    case YAML::NodeType::Sequence:
      out.begin_array();
      for (const YAML::Node& item : node) write_json(item, out);
      out.end_array();
      break;
    case YAML::NodeType::Scalar:
      write_scalar(node, out);
      break;
    default:
      out.null();
  }
}

}  // namespace

std::string yaml_to_json(const YAML::Node& node) {
  JsonWriter out;
  write_json(node, out);
  return out.take();
}

}  // namespace assay::internal
