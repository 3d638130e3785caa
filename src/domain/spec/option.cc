#include "domain/spec/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "base/core/text.h"
#include "domain/spec/spec.h"
#include "domain/spec/url.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

using Shown = std::vector<std::string>;
using Said = std::optional<Wrong>;
constexpr std::int64_t kMany = 1'000'000'000'000;
constexpr std::int64_t kSeats = 10'000'000;  // connections, slots, queue places

template <typename T, typename Into>
Said take(Parsed<T> parsed, Into& into) {
  if (!parsed) return parsed.error();
  into = *std::move(parsed);
  return std::nullopt;
}

// Readers and printers of the common shapes, addressed by section and field.

template <auto Section, auto Field>
Said read_text(std::string_view text, Spec& spec) {
  spec.*Section.*Field = text;
  return std::nullopt;
}
template <auto Section, auto Field>
Said read_name(std::string_view text, Spec& spec) {
  if (trim(text).empty()) return Wrong{"must not be empty", {}};
  return read_text<Section, Field>(text, spec);
}
template <auto Section, auto Field>
Shown show_text(const Spec& spec) {
  return {spec.*Section.*Field};
}

template <auto Section, auto Field, std::int64_t Least, std::int64_t Most>
Said read_number(std::string_view text, Spec& spec) {
  return take(read_count(text, Least, Most), spec.*Section.*Field);
}
template <auto Section, auto Field>
Shown show_optional(const Spec& spec) {
  const auto& value = spec.*Section.*Field;
  return value ? Shown{fmt::format("{}", *value)} : Shown{};
}
template <auto Section, auto Field>
Shown show_number(const Spec& spec) {
  return {fmt::format("{}", spec.*Section.*Field)};
}

template <auto Section, auto Field>
Said read_flag(std::string_view text, Spec& spec) {
  return take(read_switch(text), spec.*Section.*Field);
}
template <auto Section, auto Field>
Shown show_flag(const Spec& spec) {
  return {spec.*Section.*Field ? "true" : "false"};
}

template <auto Section, auto Field, Zero Allowed>
Said read_time(std::string_view text, Spec& spec) {
  return take(read_duration(text, Allowed), spec.*Section.*Field);
}
template <auto Section, auto Field>
Shown show_time(const Spec& spec) {
  return {format_duration(spec.*Section.*Field)};
}

template <auto Section, auto Field>
Said read_tokens(std::string_view text, Spec& spec) {
  return take(read_length(text), spec.*Section.*Field);
}
template <auto Section, auto Field>
Shown show_tokens(const Spec& spec) {
  return {show_length(spec.*Section.*Field)};
}

// Readers and printers of single keys.

Said read_urls(std::string_view text, Spec& spec) {
  const Parsed<TargetUrl> url = read_url(text);
  if (!url) return url.error();
  if (!spec.target.urls.empty()) {
    return Wrong{"several servers in one run come with a later version", "give one URL"};
  }
  spec.target.urls.push_back(show_url(*url));
  return std::nullopt;
}
Shown show_urls(const Spec& spec) { return spec.target.urls; }

Said read_api(std::string_view text, Spec& spec) {
  const Parsed<std::string> name = read_choice(
      text, {"openai-chat", "openai-completions", "null"},
      {"openai-responses", "anthropic-messages", "sglang", "llamacpp", "tgi", "ollama", "custom"});
  if (!name) return name.error();
  for (const Api api : {Api::kOpenAiChat, Api::kOpenAiCompletions, Api::kNull}) {
    if (api_name(api) == *name) spec.target.api = api;
  }
  return std::nullopt;
}
Shown show_api(const Spec& spec) { return {std::string(api_name(spec.target.api))}; }

Said read_headers(std::string_view text, Spec& spec) {
  Parsed<Header> header = read_header(text);
  if (!header) return header.error();
  const bool twice = std::ranges::any_of(spec.target.headers, [&](const Header& other) {
    return equal_ignoring_case(other.first, header->first);
  });
  if (twice) return Wrong{fmt::format("the header {} is given twice", header->first), "keep one"};
  spec.target.headers.push_back(*std::move(header));
  return std::nullopt;
}
Shown show_headers(const Spec& spec) {
  Shown out;
  for (const auto& [name, value] : spec.target.headers)
    out.push_back(fmt::format("{}: {}", name, value));
  return out;
}

Said read_object(std::string_view text, Spec& spec) {
  return take(read_body(text), spec.target.body);
}
Shown show_object(const Spec& spec) {
  return {spec.target.body.empty() ? std::string("{}") : spec.target.body};
}

Said read_data(std::string_view text, Spec& spec) {
  if (text == "synthetic") {
    spec.workload.data = text;
    return std::nullopt;
  }
  return Wrong{
      fmt::format("data set {} can't be loaded: data sets come with a later version", quoted(text)),
      "this version makes synthetic prompts; for a text of your own use --prompt"};
}

Said read_requests_per_second(std::string_view text, Spec& spec) {
  return take(read_rate(text), spec.load.rate);
}

Said read_arrival(std::string_view text, Spec& spec) {
  const std::string_view kind = text.substr(0, text.find(':'));
  const bool later = kind == "gamma" || kind == "trace";
  const Parsed<std::string> name =
      read_choice(later ? kind : text, {"constant", "poisson"}, {"gamma", "uniform", "trace"});
  if (!name) return name.error();
  spec.load.arrival = *name == "constant" ? Arrival::kConstant : Arrival::kPoisson;
  return std::nullopt;
}
Shown show_arrival(const Spec& spec) {
  return spec.load.rate ? Shown{std::string(arrival_name(spec.load.arrival))} : Shown{};
}

Said read_span(std::string_view text, Spec& spec) {
  return take(read_duration(text, Zero::kRefused), spec.load.duration);
}
Shown show_span(const Spec& spec) {
  return spec.load.duration ? Shown{format_duration(*spec.load.duration)} : Shown{};
}

Said read_warmup(std::string_view text, Spec& spec) {
  return take(read_extent(text, "requests"), spec.load.warmup);
}
Shown show_warmup(const Spec& spec) { return {show_extent(spec.load.warmup)}; }

Said read_slos(std::string_view text, Spec& spec) {
  for (const std::string_view part : split(text, ',')) {
    const Parsed<SloItem> item = read_slo(trim(part));
    if (!item) return item.error();
    const bool twice = std::ranges::any_of(
        spec.slo, [&](const SloItem& other) { return other.metric == item->metric; });
    if (twice) {
      return Wrong{fmt::format("an SLO on {} is given twice", slo_metric_name(item->metric)),
                   "keep one"};
    }
    spec.slo.push_back(*item);
  }
  return std::nullopt;
}
Shown show_slos(const Spec& spec) {
  Shown out;
  for (const SloItem& item : spec.slo) {
    out.push_back(fmt::format("{}={}", slo_metric_name(item.metric), show_slo_limit(item)));
  }
  return out;
}

Said read_root_seed(std::string_view text, Spec& spec) {
  return take(read_seed(text), spec.run.seed);
}

constexpr auto kTarget = &Spec::target;
constexpr auto kWork = &Spec::workload;
constexpr auto kLoad = &Spec::load;
constexpr auto kRun = &Spec::run;

constexpr std::array kTargetOptions = std::to_array<Option>({
    {"target.url", "--url", "URL", Form::kList, Group::kTarget, "none",
     "http://host[:port][/prefix] or unix:/path[:/prefix]; also as the bare argument", read_urls,
     show_urls},
    {"target.api", "--api", "NAME", Form::kText, Group::kTarget, "openai-chat",
     "dialect: openai-chat, openai-completions, or null (answers in this process)", read_api,
     show_api},
    {"target.model", "--model", "NAME", Form::kText, Group::kTarget, "auto",
     "model to ask for; auto takes the first of /v1/models", read_name<kTarget, &TargetSpec::model>,
     show_text<kTarget, &TargetSpec::model>},
    {"target.headers", "--header", "K:V", Form::kHeaders, Group::kTarget, "none",
     "header added to each request; repeatable", read_headers, show_headers},
    {"target.body", "--body", "JSON", Form::kObject, Group::kTarget, "{}",
     "object merged into each request body, such as {\"top_p\": 0.9}", read_object, show_object},
    {"target.api_key_env", "--api-key-env", "NAME", Form::kText, Group::kTarget, "OPENAI_API_KEY",
     "environment variable that holds the API key, if there is one",
     read_text<kTarget, &TargetSpec::api_key_env>, show_text<kTarget, &TargetSpec::api_key_env>},
    {"target.api_key_file", "--api-key-file", "FILE", Form::kText, Group::kTarget, "none",
     "file that holds the API key; wins over the environment",
     read_text<kTarget, &TargetSpec::api_key_file>, show_text<kTarget, &TargetSpec::api_key_file>},
    {"target.timeout", "--timeout", "D", Form::kText, Group::kTarget, "600s",
     "limit for one request, from its admission to its end",
     read_time<kTarget, &TargetSpec::timeout, Zero::kRefused>,
     show_time<kTarget, &TargetSpec::timeout>},
    {"target.stream", "--no-stream", "false", Form::kSwitch, Group::kTarget, "streaming",
     "ask for the whole reply at once; TTFT, TPOT and ITL are then unknown",
     read_flag<kTarget, &TargetSpec::stream>, show_flag<kTarget, &TargetSpec::stream>},
});

constexpr std::array kWorkloadOptions = std::to_array<Option>({
    {"workload.data", "--data", "NAME", Form::kText, Group::kWorkload, "synthetic",
     "where prompts come from", read_data, show_text<kWork, &WorkloadSpec::data>},
    {"workload.prompt", "--prompt", "TEXT", Form::kText, Group::kWorkload, "none",
     "send this text in every request, instead of --input", read_text<kWork, &WorkloadSpec::prompt>,
     show_text<kWork, &WorkloadSpec::prompt>},
    {"workload.input", "--input", "N|DIST", Form::kText, Group::kWorkload, "512",
     "prompt length in tokens: 512, uniform:1,2048 or lognormal:512,0.5 (median, sigma)",
     read_tokens<kWork, &WorkloadSpec::input>, show_tokens<kWork, &WorkloadSpec::input>},
    {"workload.output", "--output", "N|DIST", Form::kText, Group::kWorkload, "128",
     "reply length in tokens, in the same forms", read_tokens<kWork, &WorkloadSpec::output>,
     show_tokens<kWork, &WorkloadSpec::output>},
    {"workload.exact_output", "", "", Form::kSwitch, Group::kWorkload, "true",
     "ask for exactly that many tokens where the engine takes it (ignore_eos, min_tokens)",
     read_flag<kWork, &WorkloadSpec::exact_output>, show_flag<kWork, &WorkloadSpec::exact_output>},
});

constexpr std::array kLoadOptions = std::to_array<Option>({
    {"load.concurrency", "--concurrency", "N", Form::kNumber, Group::kLoad, "8",
     "closed loop: requests in flight at once",
     read_number<kLoad, &LoadSpec::concurrency, 1, kSeats>,
     show_optional<kLoad, &LoadSpec::concurrency>},
    {"load.rate", "--rate", "R", Form::kNumber, Group::kLoad, "none",
     "open loop: requests per second, sent on schedule whatever the server does",
     read_requests_per_second, show_optional<kLoad, &LoadSpec::rate>},
    {"load.arrival", "--arrival", "KIND", Form::kText, Group::kLoad, "poisson",
     "open loop: how arrivals are spaced, constant or poisson", read_arrival, show_arrival},
    {"load.think", "--think", "D", Form::kText, Group::kLoad, "0",
     "closed loop: pause of a slot between a reply and its next request",
     read_time<kLoad, &LoadSpec::think, Zero::kAllowed>, show_time<kLoad, &LoadSpec::think>},
    {"load.connections", "--connections", "N", Form::kNumber, Group::kLoad,
     "unlimited with --rate, else as --concurrency", "most connections open at once",
     read_number<kLoad, &LoadSpec::connections, 1, kSeats>,
     show_optional<kLoad, &LoadSpec::connections>},
    {"load.queue_depth", "--queue-depth", "N", Form::kNumber, Group::kLoad, "unlimited",
     "requests that may wait for a connection; 0 refuses when none is free",
     read_number<kLoad, &LoadSpec::queue_depth, 0, kMany>,
     show_optional<kLoad, &LoadSpec::queue_depth>},
    {"load.requests", "--requests", "N", Form::kNumber, Group::kLoad, "no limit",
     "end after N requests, warm-up not counted; with --duration, whichever comes first",
     read_number<kLoad, &LoadSpec::requests, 1, kMany>, show_optional<kLoad, &LoadSpec::requests>},
    {"load.duration", "--duration", "D", Form::kText, Group::kLoad,
     "30s unless --requests is given", "length of the steady phase", read_span, show_span},
    {"load.warmup", "--warmup", "D|N", Form::kText, Group::kLoad, "5s",
     "load before measuring: a duration or a number of requests; 0 is none", read_warmup,
     show_warmup},
    {"load.workers", "", "", Form::kNumber, Group::kLoad, "by cores and connections",
     "worker threads", read_number<kLoad, &LoadSpec::workers, 1, 1024>,
     show_optional<kLoad, &LoadSpec::workers>},
    {"load.precise", "--precise", "true", Form::kSwitch, Group::kLoad, "off",
     "spin for the last 60 us before each send; costs a core per worker",
     read_flag<kLoad, &LoadSpec::precise>, show_flag<kLoad, &LoadSpec::precise>},
    {"load.cold_connect", "--cold-connect", "true", Form::kSwitch, Group::kLoad, "off",
     "open a new connection for each request and count it in the latency",
     read_flag<kLoad, &LoadSpec::cold_connect>, show_flag<kLoad, &LoadSpec::cold_connect>},
});

constexpr std::array kRunOptions = std::to_array<Option>({
    {"slo", "--slo", "LIST", Form::kSlo, Group::kGoals, "none",
     "limits with the share that must meet them (99% where left out): ttft=350ms@99%,tpot=15ms; "
     "on ttft, ttfo, tpot, itl, icl, worst_gap, e2e, service_ttft, service_e2e; repeatable",
     read_slos, show_slos},
    {"run.seed", "--seed", "N", Form::kNumber, Group::kRun, "1",
     "root of every random draw: lengths, arrivals, words", read_root_seed,
     show_number<kRun, &RunSpec::seed>},
    {"run.salt", "--salt", "TEXT", Form::kText, Group::kRun, "auto",
     "marks the prompts so that no prefix cache knows them; auto draws a fresh one per run",
     read_name<kRun, &RunSpec::salt>, show_text<kRun, &RunSpec::salt>},
    {"run.out", "--out", "FILE", Form::kText, Group::kRun, "a name from model, load and time",
     "ledger to write; an existing file is refused", read_text<kRun, &RunSpec::out>,
     show_text<kRun, &RunSpec::out>},
    {"run.keep_text", "--keep-text", "true", Form::kSwitch, Group::kRun, "off",
     "keep the reply texts in the ledger", read_flag<kRun, &RunSpec::keep_text>,
     show_flag<kRun, &RunSpec::keep_text>},
    {"run.gpus", "--gpus", "N", Form::kNumber, Group::kRun, "0",
     "GPUs behind the target, for figures per GPU; 0 leaves them out",
     read_number<kRun, &RunSpec::gpus, 0, 1'000'000>, show_number<kRun, &RunSpec::gpus>},
});

constexpr std::size_t kOptionCount =
    kTargetOptions.size() + kWorkloadOptions.size() + kLoadOptions.size() + kRunOptions.size();

constexpr std::array<Option, kOptionCount> kOptions = [] {
  std::array<Option, kOptionCount> all{};
  auto* to = std::ranges::copy(kTargetOptions, all.begin()).out;
  to = std::ranges::copy(kWorkloadOptions, to).out;
  to = std::ranges::copy(kLoadOptions, to).out;
  std::ranges::copy(kRunOptions, to);
  return all;
}();

constexpr std::array kLaterKeys = std::to_array<LaterKey>({
    {"target.tls.ca", "", "TLS"},
    {"target.tls.insecure", "false", "TLS"},
    {"workload.tokenizer", "", "local tokenizers"},
    {"workload.prefix.shared", "0", "shared prefixes"},
    {"workload.prefix.groups", "1", "shared prefixes"},
    {"workload.sessions.turns", "1", "sessions of several turns"},
});

}  // namespace

std::string_view group_title(Group group) {
  switch (group) {
    case Group::kTarget:
      return "Target";
    case Group::kWorkload:
      return "Workload";
    case Group::kLoad:
      return "Load";
    case Group::kGoals:
      return "Goals";
    case Group::kRun:
      return "Run";
  }
  CHECK(false, "unknown group {}", static_cast<int>(group));
}

std::span<const Option> options() { return kOptions; }

const Option* option_by_key(std::string_view key) {
  const auto* found = std::ranges::find(kOptions, key, &Option::key);
  return found == kOptions.end() ? nullptr : found;
}

const Option* option_by_flag(std::string_view flag) {
  if (flag.empty()) return nullptr;
  const auto* found = std::ranges::find(kOptions, flag, &Option::flag);
  return found == kOptions.end() ? nullptr : found;
}

std::span<const LaterKey> later_keys() { return kLaterKeys; }

}  // namespace assay
