// Spec to JSON and YAML and back, driven by the option table.

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "domain/spec/option.h"
#include "domain/spec/parse.h"
#include "domain/spec/redact.h"
#include "domain/spec/spec.h"
#include "domain/spec/spec_file.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

std::string_view section_of(std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

/// "name<mark>rest" -> a field of an object.
void write_pairs(const std::vector<std::string>& shown, std::string_view mark, JsonWriter& json) {
  json.begin_object();
  for (const std::string& pair : shown) {
    const std::size_t at = pair.find(mark);
    json.field(std::string_view(pair).substr(0, at),
               std::string_view(pair).substr(at + mark.size()));
  }
  json.end_object();
}

void write_value(const Option& option, const std::vector<std::string>& shown, JsonWriter& json) {
  switch (option.form) {
    case Form::kList:
      json.begin_array();
      for (const std::string& text : shown) json.value(std::string_view(text));
      json.end_array();
      return;
    case Form::kHeaders:
      write_pairs(shown, ": ", json);
      return;
    case Form::kSlo:
      write_pairs(shown, "=", json);
      return;
    case Form::kText:
      if (shown.empty()) {
        json.null();
      } else {
        json.value(std::string_view(shown.front()));
      }
      return;
    case Form::kNumber:
    case Form::kSwitch:
    case Form::kObject:
      json.raw(shown.empty() ? "null" : std::string_view(shown.front()));
      return;
  }
}

/// Text as `Option::read` takes it, from a JSON value of any form.
std::string flag_text(simdjson::dom::element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  return simdjson::minify(value);
}

/// The settings that a JSON value stands for: one, or one per member.
std::vector<std::string> flag_texts(const Option& option, simdjson::dom::element value) {
  std::vector<std::string> out;
  simdjson::dom::array array;
  simdjson::dom::object object;
  if (option.form == Form::kList && value.get(array) == simdjson::SUCCESS) {
    for (const simdjson::dom::element item : array) out.push_back(flag_text(item));
  } else if ((option.form == Form::kHeaders || option.form == Form::kSlo) &&
             value.get(object) == simdjson::SUCCESS) {
    for (const auto field : object) {
      out.push_back(fmt::format("{}{}{}", field.key, option.form == Form::kSlo ? "=" : ": ",
                                flag_text(field.value)));
    }
  } else if (!value.is_null()) {
    out.push_back(flag_text(value));
  }
  return out;
}

Error spec_error(std::string what, std::string_view where) {
  return {ExitCode::kUsage, std::move(what), std::string(where), ""};
}

/// The text of one setting, in quotes, without its secrets.
std::string redacted_setting(std::string_view key, std::string_view text) {
  std::string safe(text);
  constexpr std::string_view kHeader = "target.headers.";
  if (key == "target.headers") {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view value = trim(text.substr(std::min(colon + 1, text.size())));
    safe =
        fmt::format("{}: {}", text.substr(0, colon), redacted_header(text.substr(0, colon), value));
  } else if (key.starts_with(kHeader)) {
    safe = redacted_header(key.substr(kHeader.size()), text);
  } else if (key == "target.body") {
    safe = redacted_json(text);
  }
  std::string out;
  append_json_string(out, safe);
  return out;
}

}  // namespace

std::string spec_to_json(const Spec& spec) {
  const Spec safe = redacted(spec);
  JsonWriter json;
  json.begin_object().field("assay", 1);
  std::string_view open;
  for (const Option& option : options()) {
    const std::string_view section = section_of(option.key);
    if (section != open) {
      if (!open.empty()) json.end_object();
      if (!section.empty()) json.key(section).begin_object();
      open = section;
    }
    json.key(section.empty() ? option.key : option.key.substr(section.size() + 1));
    write_value(option, option.show(safe), json);
  }
  if (!open.empty()) json.end_object();
  json.end_object();
  return json.take();
}

std::expected<Spec, Error> spec_from_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(root)) {
    return std::unexpected(spec_error(
        fmt::format("the stored spec is not JSON: {}", simdjson::error_message(error)), ""));
  }
  if (!root.is_object()) return std::unexpected(spec_error("the stored spec is no object", ""));
  Spec spec;
  for (const Option& option : options()) {
    std::string pointer = "/" + std::string(option.key);
    std::ranges::replace(pointer, '.', '/');
    simdjson::dom::element value;
    if (root.at_pointer(pointer).get(value) != simdjson::SUCCESS) continue;
    for (const std::string& setting : flag_texts(option, value)) {
      if (const std::optional<Wrong> wrong = option.read(setting, spec)) {
        return std::unexpected(spec_error(wrong->what, option.key));
      }
    }
  }
  return spec;
}

std::string spec_to_yaml(const Spec& spec) {
  const Spec safe = redacted(spec);
  std::string out = "assay: 1\n";
  std::string_view open;
  for (const Option& option : options()) {
    const std::string_view section = section_of(option.key);
    if (section != open && !section.empty()) out += fmt::format("{}:\n", section);
    open = section;
    const std::string_view name =
        section.empty() ? option.key : option.key.substr(section.size() + 1);
    const std::string_view indent = section.empty() ? "" : "  ";
    const std::vector<std::string> shown = option.show(safe);
    if (shown.empty() && (option.form == Form::kText || option.form == Form::kNumber)) {
      out += fmt::format("{}# {}: not set\n", indent, name);
      continue;
    }
    // JSON is YAML: flow maps, lists and quoted texts are written in it.
    JsonWriter json;
    write_value(option, shown, json);
    out += fmt::format("{}{}: {}\n", indent, name, json.text());
  }
  return out;
}

std::string asked_to_text(const Asked& asked) {
  std::string out;
  const auto add = [&out](std::string_view place, std::string_view key, std::string_view text) {
    out += fmt::format("{} {}\n", place, redacted_setting(key, text));
  };
  for (const std::string& url : asked.urls) add("URL", "target.url", url);
  for (const auto& [flag, text] : asked.flags) {
    if (flag == "--set") {
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::string key = text.substr(0, equals);
      const std::string value = text.substr(std::min(equals + 1, text.size()));
      add(fmt::format("--set {}", key), key, value);
      continue;
    }
    const Option* option = option_by_flag(flag);
    add(flag, option == nullptr ? std::string_view() : option->key, text);
  }
  std::vector<Setting> file;
  Errors ignored;  // the caller has resolved it
  if (asked.spec_text) read_spec_file(*asked.spec_text, asked.spec_path, file, ignored);
  for (const Setting& setting : file) add(setting.where, setting.key, setting.text);
  return out;
}

}  // namespace assay
