// The one table of options. A row ties a key of the spec file to its flag, its reader, its printer
// and its line in --help; flags, spec files, --set, ledgers and help are all driven from here, so
// none of them can know a key that another doesn't.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/spec/spec.h"
#include "domain/spec/value.h"

namespace assay {

/// How a key looks in YAML and JSON.
enum class Form {
  kText,     // a string
  kNumber,   // a number
  kSwitch,   // true or false; its flag takes no value
  kList,     // several texts; the flag may be repeated
  kHeaders,  // name: value pairs; the flag may be repeated
  kObject,   // a JSON object
  kSlo,      // metric: limit pairs; the flag may be repeated
};

enum class Group { kTarget, kWorkload, kLoad, kGoals, kRun };
std::string_view group_title(Group group);

struct Option {
  std::string_view key;   // "load.concurrency"
  std::string_view flag;  // "--concurrency"; empty: reached by --set and the spec file alone
  std::string_view
      argument;  // placeholder in --help; for a switch the value that its flag stands for
  Form form = Form::kText;
  Group group = Group::kRun;
  std::string_view fallback;  // the default, as --help prints it
  std::string_view help;
  /// Reads `text` into `spec`; repeatable forms append. Says what is wrong, if anything.
  std::optional<Wrong> (*read)(std::string_view text, Spec& spec) = nullptr;
  /// Canonical texts that `read` takes: one, none where unset, several where repeatable.
  std::vector<std::string> (*show)(const Spec& spec) = nullptr;
};

/// In the order of --help and of a printed spec.
std::span<const Option> options();
const Option* option_by_key(std::string_view key);
const Option* option_by_flag(std::string_view flag);

/// Keys of later versions that this one accepts at their default, so that a full spec file still
/// reads.
struct LaterKey {
  std::string_view key;
  std::string_view only;  // the one value taken
  std::string_view what;  // "TLS"
};
std::span<const LaterKey> later_keys();

}  // namespace assay
