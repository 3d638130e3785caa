#include "domain/spec/spec_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "domain/spec/option.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

constexpr std::size_t kBytesMax = 1 << 20;
constexpr int kNodesMax = 20'000;  // visited, so that nested aliases can't blow up
constexpr int kDepthMax = 32;

bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digits = [&text] {
    const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(n);
    return n;
  };
  const bool zero = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  return text.empty();
}

/// Would YAML readers disagree on whether this plain scalar is a number?
bool is_doubtful_number(std::string_view text) {
  std::string_view bare = text;
  if (bare.starts_with('+') || bare.starts_with('-')) bare.remove_prefix(1);
  const bool special = equal_ignoring_case(bare, ".inf") || equal_ignoring_case(bare, ".nan");
  return special || bare.starts_with("0x") || bare.starts_with("0o") ||
         (parse_number(bare).has_value() && !is_json_number(text));
}

class FileReader {
 public:
  FileReader(std::string path, std::vector<Setting>& settings, Errors& errors)
      : path_(std::move(path)), settings_(settings), errors_(errors) {}

  void read_root(const YAML::Node& root) {
    if (!root.IsMap()) {
      complain(root, "", "the file must hold sections such as target: and load:",
               "a first line could be: target: {url: http://127.0.0.1:8000}");
      return;
    }
    for (const auto& [name, value] : fields(root, "")) read_section(name, value);
  }

  void complain(const YAML::Node& node, std::string_view key, std::string what, std::string hint) {
    const YAML::Mark mark = node.Mark();
    std::string where = mark.is_null() ? path_ : fmt::format("{}:{}", path_, mark.line + 1);
    if (!key.empty()) where += fmt::format(": {}", key);
    errors_.push_back({ExitCode::kUsage, std::move(what), std::move(where), std::move(hint)});
  }

 private:
  using Field = std::pair<std::string, YAML::Node>;

  /// The pairs of a map. Keys that are no text and keys that stand twice are complained of.
  std::vector<Field> fields(const YAML::Node& map, const std::string& prefix) {
    std::vector<Field> out;
    std::set<std::string> seen;
    for (const auto& pair : map) {
      if (!visit(map)) return out;
      if (!pair.first.IsScalar()) {
        complain(pair.first, prefix, "a key must be a word", "");
        continue;
      }
      const std::string& name = pair.first.Scalar();
      const std::string full = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
      if (!seen.insert(name).second) {
        complain(pair.first, full, "stands twice in this file", "keep one");
        continue;
      }
      out.emplace_back(full, pair.second);
    }
    return out;
  }

  void read_section(const std::string& name, const YAML::Node& value) {
    if (name == "assay") {
      if (!value.IsScalar() || value.Scalar() != "1") {
        complain(value, name, "this version reads spec files of version 1", "write assay: 1");
      }
      return;
    }
    if (const Option* option = option_by_key(name)) {
      read_option(*option, value);
      return;
    }
    if (!value.IsMap()) {
      // A misspelt section is named by the resolver, which knows all keys.
      if (is_section(name)) {
        complain(value, name, "must hold keys with values", "for example load: {concurrency: 8}");
      } else {
        add(value, name, "");
      }
      return;
    }
    if (!is_section(name)) {
      add(value, name, "");
      return;
    }
    for (const auto& [key, field] : fields(value, name)) read_key(key, field);
  }

  void read_key(const std::string& key, const YAML::Node& value) {
    if (const Option* option = option_by_key(key)) {
      read_option(*option, value);
      return;
    }
    if (is_section(key) && value.IsMap()) {
      for (const auto& [inner, field] : fields(value, key)) {
        if (has_text(field, inner)) add(field, inner, field.Scalar());
      }
      return;
    }
    add(value, key, value.IsScalar() ? value.Scalar() : std::string());
  }

  void read_option(const Option& option, const YAML::Node& value) {
    const std::string key(option.key);
    switch (option.form) {
      case Form::kList:
        read_list(key, value);
        return;
      case Form::kHeaders:
        read_pairs(key, value, ": ");
        return;
      case Form::kSlo:
        if (value.IsScalar()) break;
        read_pairs(key, value, "=");
        return;
      case Form::kObject:
        if (value.IsScalar()) break;
        read_object(key, value);
        return;
      case Form::kText:
      case Form::kNumber:
      case Form::kSwitch:
        break;
    }
    if (has_text(value, key)) add(value, key, value.Scalar());
  }

  void read_list(const std::string& key, const YAML::Node& value) {
    if (!value.IsSequence()) {
      if (has_text(value, key)) add(value, key, value.Scalar());
      return;
    }
    for (const auto& item : value) {
      if (!visit(value)) return;
      if (has_text(item, key)) add(item, key, item.Scalar());
    }
  }

  void read_pairs(const std::string& key, const YAML::Node& value, std::string_view between) {
    if (!value.IsMap()) {
      complain(value, key, "must hold names with values",
               between == "=" ? "for example {ttft: 350ms@99%}" : "for example {X-Team: perf}");
      return;
    }
    for (const auto& [name, field] : fields(value, key)) {
      if (!has_text(field, name)) continue;
      add(field, key, fmt::format("{}{}{}", name.substr(key.size() + 1), between, field.Scalar()),
          name);
    }
  }

  void read_object(const std::string& key, const YAML::Node& value) {
    if (!value.IsMap()) {
      complain(value, key, "must be a map", "for example {temperature: 0.7}");
      return;
    }
    JsonWriter json;
    if (write_json(value, key, 0, json)) add(value, key, json.take());
  }

  // NOLINTNEXTLINE(misc-no-recursion): depth is bounded by kDepthMax
  bool write_json(const YAML::Node& node, const std::string& key, int depth, JsonWriter& json) {
    if (!visit(node)) return false;
    if (depth > kDepthMax) {
      complain(node, key, fmt::format("is nested deeper than {} levels", kDepthMax), "");
      return false;
    }
    if (node.IsScalar()) return write_scalar(node, key, json);
    if (node.IsNull()) {
      json.null();
      return true;
    }
    if (node.IsSequence()) {
      json.begin_array();
      for (const auto& item : node) {
        if (!write_json(item, key, depth + 1, json)) return false;
      }
      json.end_array();
      return true;
    }
    json.begin_object();
    for (const auto& [full, field] : fields(node, key)) {
      json.key(std::string_view(full).substr(key.size() + 1));
      if (!write_json(field, full, depth + 1, json)) return false;
    }
    json.end_object();
    return true;
  }

  bool write_scalar(const YAML::Node& node, const std::string& key, JsonWriter& json) {
    const std::string& text = node.Scalar();
    const bool plain = node.Tag() == "?" || node.Tag().empty();
    if (plain && (text == "true" || text == "false" || is_json_number(text))) {
      json.raw(text);
    } else if (plain && is_doubtful_number(text)) {
      complain(node, key, fmt::format("{} is not a number in JSON", quoted(text)),
               "write it in decimal, or put it in quotes if it is a text");
      return false;
    } else {
      json.value(std::string_view(text));
    }
    return true;
  }

  bool has_text(const YAML::Node& node, const std::string& key) {
    if (node.IsScalar()) return true;
    if (node.IsNull()) {
      complain(node, key, "has no value", "give one, \"\" for an empty text, or leave the key out");
    } else {
      complain(node, key, "must be a single value, not a list or a map", "");
    }
    return false;
  }

  void add(const YAML::Node& node, const std::string& key, std::string text,
           const std::string& shown_key = {}) {
    const YAML::Mark mark = node.Mark();
    const std::string line = mark.is_null() ? std::string() : fmt::format(":{}", mark.line + 1);
    settings_.push_back(
        {key, std::move(text),
         fmt::format("{}{}: {}", path_, line, shown_key.empty() ? key : shown_key)});
  }

  static bool is_section(std::string_view name) {
    const auto inside = [name](const auto& row) {
      return row.key.size() > name.size() && row.key.starts_with(name) &&
             row.key[name.size()] == '.';
    };
    return std::ranges::any_of(options(), inside) || std::ranges::any_of(later_keys(), inside);
  }

  bool visit(const YAML::Node& node) {
    if (++visited_ <= kNodesMax) return true;
    if (visited_ == kNodesMax + 1) {
      complain(node, "", fmt::format("the file holds more than {} values", kNodesMax),
               "aliases count each time they are used");
    }
    return false;
  }

  std::string path_;
  std::vector<Setting>& settings_;
  Errors& errors_;
  int visited_ = 0;
};

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Events of a document that nobody looks at.
class Ignore final : public YAML::EventHandler {
  using Mark = YAML::Mark;
  using Text = std::string;
  using Anchor = YAML::anchor_t;
  using Style = YAML::EmitterStyle::value;

 public:
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, Anchor) override {}
  void OnAlias(const Mark&, Anchor) override {}
  void OnScalar(const Mark&, const Text&, Anchor, const Text&) override {}
  void OnSequenceStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnMapEnd() override {}
};

/// YAML::LoadAll would tell too, but it never ends on a text such as ",", which yaml-cpp takes for
/// an endless row of empty documents.
bool holds_more_documents(std::string_view text) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  Ignore ignore;
  return parser.HandleNextDocument(ignore) && parser.HandleNextDocument(ignore);
}

}  // namespace

void read_spec_file(std::string_view text, const std::string& path, std::vector<Setting>& settings,
                    Errors& errors) {
  const auto refuse = [&](std::string what, std::string where, std::string hint) {
    errors.push_back({ExitCode::kUsage, std::move(what), std::move(where), std::move(hint)});
  };
  if (text.size() > kBytesMax) {
    return refuse(fmt::format("a spec file has at most {} bytes", kBytesMax), path, "");
  }
  if (!is_utf8(text)) return refuse("is not UTF-8 text", path, "save it as UTF-8");
  // yaml-cpp reports by exception; this is its only door.
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsDefined() || root.IsNull()) {
      return refuse("is empty", path, "leave --spec out to use defaults");
    }
    if (holds_more_documents(text)) {
      return refuse("goes on behind its first document (---)", path, "keep one document per file");
    }
    FileReader(path, settings, errors).read_root(root);
  } catch (const YAML::Exception& e) {
    const std::string where = e.mark.is_null() ? path : fmt::format("{}:{}", path, e.mark.line + 1);
    refuse(fmt::format("is not YAML: {}", e.msg), where, "");
  } catch (const std::exception& e) {
    refuse(fmt::format("can't be read as YAML: {}", e.what()), path, "");
  }
}

}  // namespace assay
