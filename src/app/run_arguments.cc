#include "app/run_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/run_command.h"
#include "app/show_ledger.h"
#include "app/world.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/option.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

constexpr std::string_view kInOut = "Input and output";

/// The key in a file: one line, its end not counted.
Result<std::string> read_key_file(const std::string& path) {
  constexpr std::size_t kKeyBytesMax = 1 << 16;
  const std::string text = TRY(read_file(path, kKeyBytesMax));
  const std::string_view key = trim(text);
  const bool printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; });
  if (key.empty() || !printable) {
    return usage_error("holds no API key", path, "one line of printable characters");
  }
  return std::string(key);
}

Result<std::optional<std::string>> read_api_key(const World& world, const TargetSpec& target) {
  if (!target.api_key_file.empty()) {
    return std::optional<std::string>(TRY(read_key_file(target.api_key_file)));
  }
  if (target.api_key_env.empty()) return std::optional<std::string>();
  std::optional<std::string> key = world.env(target.api_key_env);
  if (key && key->empty()) key.reset();
  if (!key && target.api_key_env != TargetSpec{}.api_key_env) {
    return usage_error(fmt::format("the environment has no variable {}", target.api_key_env),
                       "--api-key-env", "set it, or leave the flag out if the server needs no key");
  }
  const bool printable =
      !key || std::ranges::all_of(*key, [](char c) { return c > ' ' && c <= '~'; });
  if (!printable) {
    return usage_error("holds a blank or control character, which no API key has",
                       "environment variable " + target.api_key_env);
  }
  return key;
}

/// The effective spec of an earlier run.
Result<Spec> read_base(const std::string& path) {
  const Ledger ledger = TRY(read_ledger(path));
  std::expected<Spec, Error> spec = spec_from_json(ledger.meta_or(meta::kSpecEffective));
  if (!spec) {
    return usage_error("holds no usable spec: " + spec.error().text(), path,
                       "give the run's flags instead of --from");
  }
  return *std::move(spec);
}

/// We go straight to the server, and say so where the environment expects otherwise.
void note_proxies(const World& world, std::vector<std::string>& notes) {
  for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) {
    const std::optional<std::string> value = world.env(name);
    if (!value || value->empty()) continue;
    notes.push_back(fmt::format("{} is ignored: requests go straight to the server", name));
    return;
  }
}

}  // namespace

Result<ReportFormat> read_format(const std::string& text) {
  const Parsed<std::string> name = read_choice(text, {"text", "json"}, {"csv", "md", "html"});
  if (!name) return usage_error(name.error().what, "--format", name.error().hint);
  return *name == "json" ? ReportFormat::kJson : ReportFormat::kText;
}

std::vector<Flag> run_flags() {
  std::vector<Flag> flags;
  for (const Option& option : options()) {
    if (option.flag.empty()) continue;
    const bool is_switch = option.form == Form::kSwitch;
    flags.push_back({option.flag, is_switch ? std::string_view() : option.argument,
                     group_title(option.group), option.fallback, option.help});
  }
  flags.insert(flags.end(), {
                                {"--spec", "FILE", kInOut, "none",
                                 "spec file (YAML) with any of these; flags override it"},
                                {"--set", "KEY=VALUE", kInOut, "none",
                                 "set a key of the spec, such as load.workers=1; repeatable"},
                                {"--from", "LEDGER", kInOut, "none",
                                 "repeat the run of a ledger, byte for byte; flags override it"},
                                {"--format", "NAME", kInOut, "text", "summary as text or json"},
                                {"--dry-run", "", kInOut, "off",
                                 "print the effective spec and what it would send; send nothing"},
                                {"--help", "", kInOut, "", "this text"},
                            });
  return flags;
}

std::expected<RunAsked, Errors> read_run_arguments(World& world, const Arguments& arguments) {
  Errors errors = arguments.errors;
  const auto keep = [&errors](auto result) {
    if (!result) errors.push_back(result.error());
    return result;
  };
  Asked asked;
  asked.urls = arguments.bare;
  for (const auto& flag : arguments.flags) {
    const bool own = flag.first == "--spec" || flag.first == "--from" || flag.first == "--format" ||
                     flag.first == "--dry-run";
    if (!own) asked.flags.push_back(flag);
  }
  if (arguments.has("--spec") && arguments.has("--from")) {
    errors.push_back({ExitCode::kUsage, "both give a whole spec", "--spec and --from", "keep one"});
  }
  if (arguments.has("--spec")) {
    asked.spec_path = arguments.value("--spec");
    if (auto text = keep(read_file(asked.spec_path))) asked.spec_text = *std::move(text);
  }
  if (arguments.has("--from")) {
    if (auto base = keep(read_base(arguments.value("--from")))) asked.base = *std::move(base);
  }
  const auto format = keep(read_format(arguments.value("--format", "text")));
  // A file that couldn't be read says nothing on what is missing from the spec.
  const bool whole =
      (!arguments.has("--spec") || asked.spec_text) && (!arguments.has("--from") || asked.base);
  if (!whole) return std::unexpected(std::move(errors));
  std::expected<Resolved, Errors> resolved = resolve_spec(asked);
  if (!resolved) {
    errors.insert(errors.end(), resolved.error().begin(), resolved.error().end());
    return std::unexpected(std::move(errors));
  }
  auto key = keep(read_api_key(world, resolved->spec.target));
  if (!errors.empty()) return std::unexpected(std::move(errors));
  note_proxies(world, resolved->notes);
  return RunAsked{std::move(resolved->spec),
                  RunOptions{*format, asked_to_text(asked), *std::move(key)},
                  std::move(resolved->notes)};
}

}  // namespace assay
