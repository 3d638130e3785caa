// What a user asks of one run, as a plain value: every key of the YAML spec file and every flag of
// `assay run` ends here, defaulted and validated (parse.h). A Spec holds no secret: API keys are
// named by where they are read from, and app hands the value to the target apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/time.h"

namespace assay {

enum class Api { kOpenAiChat, kOpenAiCompletions, kNull };
std::string_view api_name(Api api);

struct TargetSpec {
  std::vector<std::string> urls;  // http://host:port[/prefix], or unix:/path/to/socket[:/prefix]
  Api api = Api::kOpenAiChat;
  std::string model = "auto";  // auto: asks /v1/models
  std::vector<std::pair<std::string, std::string>>
      headers;       // secrets in them are redacted wherever printed
  std::string body;  // JSON object merged into each request; empty: nothing
  std::string api_key_env = "OPENAI_API_KEY";
  std::string api_key_file;
  Duration timeout = 600s;  // from admitted to the end
  bool stream = true;
  bool operator==(const TargetSpec&) const = default;
};

/// How long, in tokens, an input or an output is. Draws are clamped to at least 1.
struct LengthSpec {
  enum class Kind { kFixed, kUniform, kLogNormal };
  Kind kind = Kind::kFixed;
  double a = 0;  // fixed: n · uniform: least · lognormal: median
  double b = 0;  // uniform: greatest · lognormal: sigma of the log
  bool operator==(const LengthSpec&) const = default;
};

/// Expected length in tokens, before rounding.
double mean_tokens(const LengthSpec& length);

struct WorkloadSpec {
  std::string data = "synthetic";
  std::string prompt;  // --prompt: this text for every request, no salt added
  LengthSpec input{LengthSpec::Kind::kFixed, 512, 0};
  LengthSpec output{LengthSpec::Kind::kFixed, 128, 0};
  bool exact_output = true;  // ask for exactly that many tokens where the engine takes it
  bool operator==(const WorkloadSpec&) const = default;
};

enum class Arrival { kConstant, kPoisson };
std::string_view arrival_name(Arrival arrival);

/// A span of time or a number of requests.
struct Extent {
  std::optional<Duration> time;
  std::optional<std::int64_t> requests;
  bool operator==(const Extent&) const = default;
};

struct LoadSpec {
  // Exactly one of the two is set after validation: closed loop or open loop.
  std::optional<std::int64_t> concurrency;
  std::optional<double> rate;  // requests per second
  Arrival arrival = Arrival::kPoisson;
  Duration think{0};  // closed loop: pause between an end and the next request of a slot
  std::optional<std::int64_t> connections;  // null: unlimited in open loop, = concurrency in closed
  std::optional<std::int64_t> queue_depth;  // null: unlimited; 0: refuse when no connection is free
  std::optional<std::int64_t> requests;     // after warm-up
  std::optional<Duration> duration;         // of the steady phase
  Extent warmup{5s, std::nullopt};
  std::optional<std::int64_t> workers;  // null: by the rule of ARCHITECTURE.md
  bool precise = false;                 // spin the last 60 us before each send
  bool cold_connect = false;            // a new connection per request, counted in its latency
  bool operator==(const LoadSpec&) const = default;
};

enum class SloMetric {
  kTtft,
  kTtfo,
  kTpot,
  kItl,
  kIcl,
  kWorstGap,
  kE2e,
  kServiceTtft,
  kServiceE2e
};
std::string_view slo_metric_name(SloMetric metric);

struct SloItem {
  SloMetric metric = SloMetric::kTtft;
  Duration limit{0};
  double attainment = 0.99;  // share of requests that must meet it
  bool operator==(const SloItem&) const = default;
};

struct RunSpec {
  std::uint64_t seed = 1;
  std::string salt = "auto";  // auto: fresh per run; the effective spec holds the drawn one
  std::string out;            // ledger path; empty: a name from model, load and start time
  bool keep_text = false;
  std::int64_t gpus = 0;  // 0: no per-GPU figures
  bool operator==(const RunSpec&) const = default;
};

struct Spec {
  TargetSpec target;
  WorkloadSpec workload;
  LoadSpec load;
  std::vector<SloItem> slo;
  RunSpec run;
  bool operator==(const Spec&) const = default;
};

}  // namespace assay
