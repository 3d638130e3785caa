#include "domain/spec/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "domain/spec/option.h"
#include "domain/spec/redact.h"
#include "domain/spec/spec.h"
#include "domain/spec/spec_file.h"
#include "domain/spec/url.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

enum class Level { kBase, kFile, kSet, kFlag };

struct Given {
  Level level = Level::kBase;
  std::string where;
  bool is_default = false;
};

bool is_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0 || text.front() == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_repeatable(Form form) {
  return form == Form::kList || form == Form::kHeaders || form == Form::kSlo;
}

std::string_view leaf(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// The key most likely meant: the same last word in another section, else the nearest spelling.
std::optional<std::string_view> likely_key(std::string_view key) {
  std::vector<std::string_view> keys, leaves;
  for (const Option& option : options()) {
    keys.push_back(option.key);
    leaves.push_back(leaf(option.key));
  }
  if (const auto near = nearest_word(key, keys)) return near;
  if (const auto near = nearest_word(key, {"target", "workload", "load", "slo", "run"}))
    return near;
  const auto near_leaf = nearest_word(leaf(key), leaves);
  if (!near_leaf) return std::nullopt;
  return keys[static_cast<std::size_t>(std::ranges::find(leaves, *near_leaf) - leaves.begin())];
}

/// Two keys that can't hold together. On one level that is an error, unless one of them says its
/// default; else the higher level wins and the other key falls back to its default, where a drop
/// function allows that.
struct Exclusive {
  std::string_view a, b;
  std::string_view why, hint;
  void (*drop_a)(Spec&);
  void (*drop_b)(Spec&);
};

void drop_rate(Spec& spec) { spec.load.rate.reset(); }
void drop_concurrency(Spec& spec) { spec.load.concurrency.reset(); }
void drop_think(Spec& spec) { spec.load.think = Duration(0); }
void drop_arrival(Spec& spec) { spec.load.arrival = LoadSpec{}.arrival; }
void drop_prompt(Spec& spec) { spec.workload.prompt.clear(); }
void drop_input(Spec& spec) { spec.workload.input = WorkloadSpec{}.input; }
void drop_key_file(Spec& spec) { spec.target.api_key_file.clear(); }
void drop_key_env(Spec& spec) { spec.target.api_key_env = TargetSpec{}.api_key_env; }

constexpr std::array kExclusives = std::to_array<Exclusive>({
    {"load.rate", "load.concurrency",
     "a rate makes an open loop and a concurrency a closed one: a run has one of them",
     "keep one; --connections bounds an open loop", drop_rate, drop_concurrency},
    {"load.rate", "load.think", "an open loop has no think time: it sends on schedule",
     "use --concurrency, or leave the think time out", nullptr, drop_think},
    {"load.arrival", "load.concurrency", "a closed loop has no arrival process",
     "use --rate, or leave the arrival out", drop_arrival, nullptr},
    {"workload.prompt", "workload.input", "a prompt of your own has the length that it has",
     "keep one", drop_prompt, drop_input},
    {"target.api_key_file", "target.api_key_env", "the API key can come from one place only",
     "keep one", drop_key_file, drop_key_env},
});

class Resolver {
 public:
  explicit Resolver(const Asked& asked) : asked_(asked) {}

  std::expected<Resolved, Errors> resolve() {
    if (asked_.base) take_base(*asked_.base);
    std::vector<Setting> file;
    if (asked_.spec_text) read_spec_file(*asked_.spec_text, asked_.spec_path, file, errors_);
    apply(Level::kFile, file);
    std::vector<Setting> sets, flags;
    sort_flags(sets, flags);
    apply(Level::kSet, sets);
    apply(Level::kFlag, flags);
    settle_exclusives();
    fill_defaults();
    check_whole();
    if (!errors_.empty()) return std::unexpected(std::move(errors_));
    return Resolved{std::move(spec_), std::move(notes_)};
  }

 private:
  void complain(std::string what, std::string where, std::string hint = {}) {
    errors_.push_back({ExitCode::kUsage, std::move(what), std::move(where), std::move(hint)});
  }

  void take_base(const Spec& base) {
    spec_ = base;
    spec_.run.out.clear();  // the old ledger's name: taken
    const auto note = [this](bool present, const char* key) {
      if (present) given_[key] = {Level::kBase, "--from", false};
    };
    note(base.load.rate.has_value(), "load.rate");
    note(base.load.rate.has_value(), "load.arrival");
    note(base.load.concurrency.has_value(), "load.concurrency");
    note(base.load.think != Duration(0), "load.think");
    note(!base.workload.prompt.empty(), "workload.prompt");
    note(!base.target.api_key_file.empty(), "target.api_key_file");
    note(base.load.requests.has_value(), "load.requests");
    note(base.load.duration.has_value(), "load.duration");
    note(true, "load.warmup");
  }

  void sort_flags(std::vector<Setting>& sets, std::vector<Setting>& flags) {
    for (const auto& [flag, text] : asked_.flags) {
      if (flag == "--set") {
        read_set(text, sets);
      } else if (const Option* option = option_by_flag(flag)) {
        const bool bare = option->form == Form::kSwitch && text.empty();
        flags.push_back(
            {std::string(option->key), bare ? std::string(option->argument) : text, flag});
      } else {
        complain("is not a flag of this command", flag, "see --help");
      }
    }
    for (const std::string& url : asked_.urls) flags.push_back({"target.url", url, "URL"});
  }

  void read_set(std::string_view text, std::vector<Setting>& sets) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      complain(fmt::format("{} is not key=value", quoted(text)), "--set",
               "for example --set load.rate=20");
      return;
    }
    const std::string_view key = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    const std::string where = fmt::format("--set {}", key);
    constexpr std::string_view kSlos = "slo.";
    constexpr std::string_view kHeaders = "target.headers.";
    if (key.starts_with(kSlos)) {
      sets.push_back({"slo", fmt::format("{}={}", key.substr(kSlos.size()), value), where});
    } else if (key.starts_with(kHeaders)) {
      sets.push_back(
          {"target.headers", fmt::format("{}: {}", key.substr(kHeaders.size()), value), where});
    } else {
      sets.push_back({std::string(key), std::string(value), where});
    }
  }

  void apply(Level level, const std::vector<Setting>& settings) {
    Spec added;  // repeatable values of this level, to be merged with those below
    std::map<std::string, std::string> seen;
    for (const Setting& setting : settings) {
      const Option* option = option_by_key(setting.key);
      if (option == nullptr) {
        apply_other(setting);
        continue;
      }
      if (!is_text(setting.text)) {
        complain("is not UTF-8 text", setting.where);
        continue;
      }
      const auto [before, first] = seen.try_emplace(setting.key, setting.text);
      if (!first && !is_repeatable(option->form)) {
        if (before->second != setting.text) {
          complain("is given twice with different values", setting.where, "keep one");
        }
        continue;
      }
      given_[setting.key] = {level, setting.where, false};
      Spec& into = is_repeatable(option->form) ? added : spec_;
      if (const std::optional<Wrong> wrong = option->read(setting.text, into)) {
        complain(wrong->what, setting.where, wrong->hint);
      }
      const std::vector<std::string> normal = option->show(Spec{});
      given_[setting.key].is_default = !normal.empty() && normal == option->show(into);
    }
    merge(std::move(added));
  }

  void apply_other(const Setting& setting) {
    const auto later = std::ranges::find(later_keys(), setting.key, &LaterKey::key);
    if (later != later_keys().end()) {
      if (setting.text == later->only) return;
      complain(fmt::format("this version has no {}", later->what), setting.where,
               "leave the key out");
      return;
    }
    const std::optional<std::string_view> near = likely_key(setting.key);
    complain("is not a key of a spec", setting.where,
             near ? fmt::format("did you mean {}?", *near)
                  : std::string("docs/howto/run.md lists them"));
  }

  void merge(Spec added) {
    if (!added.target.urls.empty()) spec_.target.urls = std::move(added.target.urls);
    for (Header& header : added.target.headers) {
      std::erase_if(spec_.target.headers, [&](const Header& old) {
        return equal_ignoring_case(old.first, header.first);
      });
      spec_.target.headers.push_back(std::move(header));
    }
    for (const SloItem& item : added.slo) {
      std::erase_if(spec_.slo, [&](const SloItem& old) { return old.metric == item.metric; });
      spec_.slo.push_back(item);
    }
  }

  void settle_exclusives() {
    for (const Exclusive& pair : kExclusives) {
      const auto a = given_.find(std::string(pair.a));
      const auto b = given_.find(std::string(pair.b));
      if (a == given_.end() || b == given_.end()) continue;
      if (a->second.level == Level::kBase && b->second.level == Level::kBase) continue;
      const bool a_wins = a->second.level > b->second.level;
      const bool same = a->second.level == b->second.level;
      const auto drop = a_wins ? pair.drop_b : pair.drop_a;
      if (!same && drop != nullptr) {
        drop(spec_);
        given_.erase(a_wins ? b : a);
      } else if (!a->second.is_default && !b->second.is_default) {
        complain(std::string(pair.why), fmt::format("{} and {}", a->second.where, b->second.where),
                 std::string(pair.hint));
      }
    }
  }

  [[nodiscard]] bool is_given(const char* key) const { return given_.contains(key); }

  void fill_defaults() {
    constexpr std::int64_t kConcurrency = 8;
    if (!is_given("load.rate") && !spec_.load.concurrency && !is_given("load.concurrency")) {
      spec_.load.concurrency = kConcurrency;
    }
    if (!is_given("load.requests") && !is_given("load.duration")) {
      if (const std::optional<std::string> host = public_host()) {
        limit_public_run(*host);
      } else {
        spec_.load.duration = 30s;
      }
    }
  }

  [[nodiscard]] std::optional<std::string> public_host() const {
    if (spec_.target.api == Api::kNull || spec_.target.urls.empty()) return std::nullopt;
    const Parsed<TargetUrl> url = read_url(spec_.target.urls.front());
    if (!url || is_private(*url)) return std::nullopt;
    return url->host;
  }

  /// Somebody pays for a public host: few requests unless more were asked for.
  void limit_public_run(const std::string& host) {
    constexpr std::int64_t kRequests = 20;
    spec_.load.requests = kRequests;
    if (!is_given("load.warmup")) spec_.load.warmup = Extent{};
    const double each_out = mean_tokens(spec_.workload.output);
    const double each_in = spec_.workload.prompt.empty() ? mean_tokens(spec_.workload.input) : 0;
    const std::string input = spec_.workload.prompt.empty()
                                  ? fmt::format("about {:.0f} prompt tokens", kRequests * each_in)
                                  : fmt::format("{} times your prompt", kRequests);
    notes_.push_back(fmt::format(
        "{} is neither this machine nor a private network: {} requests{}, {} and up to {:.0f} "
        "output tokens; --requests or --duration asks for more",
        host, kRequests, is_given("load.warmup") ? " after the warm-up" : " without warm-up", input,
        kRequests * each_out));
  }

  void check_whole() {
    if (!is_given("target.url") && spec_.target.urls.empty() && spec_.target.api != Api::kNull) {
      complain("no server is given", "URL", "for example assay run http://127.0.0.1:8000");
    }
    if (const auto arrival = given_.find("load.arrival");
        arrival != given_.end() && !is_given("load.rate") && !is_given("load.concurrency")) {
      complain("an arrival process needs an open loop", arrival->second.where,
               "add --rate, for example --rate 20");
    }
    for (const auto& [name, value] : spec_.target.headers) {
      if (value.find(kRedacted) == std::string::npos) continue;
      complain(fmt::format("the value of header {} was redacted when it was stored", name),
               "target.headers", fmt::format("give it again with --header '{}: …'", name));
    }
    if (spec_.target.body.find(kRedacted) != std::string::npos) {
      complain("a secret in the body was redacted when it was stored", "target.body",
               "give the body again with --body");
    }
    if (spec_.load.concurrency && spec_.load.queue_depth &&
        spec_.load.connections.value_or(*spec_.load.concurrency) >= *spec_.load.concurrency) {
      notes_.emplace_back(
          "the queue depth has no effect: a closed loop with a connection per slot never queues");
    }
  }

  const Asked& asked_;
  Spec spec_;
  std::map<std::string, Given> given_;
  Errors errors_;
  std::vector<std::string> notes_;
};

}  // namespace

std::expected<Resolved, Errors> resolve_spec(const Asked& asked) {
  return Resolver(asked).resolve();
}

}  // namespace assay
