#include "study/measure/measure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/core/time.h"
#include "base/stats/trend.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "study/measure/attempt.h"
#include "study/measure/checks.h"
#include "study/measure/client.h"
#include "study/measure/findings.h"
#include "study/measure/goodput.h"
#include "study/measure/latency.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"
#include "study/measure/throughput.h"

namespace assay {
namespace {

RunFacts run_facts(const Ledger& ledger, const Spec& spec, const Population& population) {
  RunFacts run;
  run.file = ledger.path;
  run.state = ledger.meta_or(meta::kState);
  run.model = ledger.meta_or(meta::kModel, spec.target.model);
  run.server = ledger.meta_or(meta::kServer);
  run.api = api_name(spec.target.api);
  run.started = ledger.meta_or(meta::kStartWall);
  run.urls = spec.target.urls;
  run.duration_s = to_seconds(population.whole());
  if (population.window() > Duration{0}) run.window_s = to_seconds(population.window());
  run.offered_rps = spec.load.rate;
  run.seed = spec.run.seed;
  run.salt = ledger.meta_or(meta::kSalt, spec.run.salt);
  run.simulated = ledger.meta.contains(std::string(meta::kSimSpec));
  return run;
}

std::string failure_code(const RequestRecord& r) {
  if (!r.error_code.empty()) return r.error_code;
  if (r.outcome == Outcome::kHttpError && r.http_status) return std::to_string(*r.http_status);
  return {};
}

Requests requests_of(const Ledger& ledger, const Population& population) {
  Requests out;
  std::map<std::pair<Outcome, std::string>, FailureClass> classes;
  for (const std::size_t i : population.measured) {
    const RequestRecord& r = ledger.requests[i];
    ++out.scheduled;
    if (r.send_start) ++out.sent;
    ++out.outcomes.at(static_cast<std::size_t>(r.outcome));
    if (r.outcome == Outcome::kOk) continue;
    FailureClass& failure = classes[{r.outcome, failure_code(r)}];
    if (failure.count++ == 0) {
      failure.outcome = r.outcome;
      failure.code = failure_code(r);
      failure.example = r.error_text;
    }
  }
  out.ok = out.outcomes[static_cast<std::size_t>(Outcome::kOk)];
  out.refused = out.outcomes[static_cast<std::size_t>(Outcome::kRefusedByClient)];
  out.failed = out.scheduled - out.ok - out.refused;
  for (auto& [key, failure] : classes) out.failures.push_back(std::move(failure));
  // Most frequent first, else by class: no two have the same, so the order is one.
  std::ranges::sort(out.failures, [](const FailureClass& a, const FailureClass& b) {
    return std::tie(b.count, a.outcome, a.code) < std::tie(a.count, b.outcome, b.code);
  });
  return out;
}

/// More than a chat template adds to a prompt.
constexpr std::int64_t kMostTemplate = 64;

class TokenCounter {
 public:
  explicit TokenCounter(Api api) : chat_(api == Api::kOpenAiChat) {}

  void add(const RequestRecord& r, const Attempt& attempt) {
    add_count(tokens_.output, attempt.tokens);
    add_count(tokens_.prompt_planned, r.tokens_planned);
    add_count(tokens_.prompt_server, r.tokens_server_prompt);
    if (r.tokens_server_prompt && r.tokens_planned) {
      ++tokens_.prompts_counted;
      add_count(tokens_.prompt_planned_counted, r.tokens_planned);
      add_count(tokens_.prompt_server_planned, r.tokens_server_prompt);
      const std::int64_t extra = *r.tokens_server_prompt - *r.tokens_planned;
      MaybeCount& least = tokens_.template_per_request;
      if (chat_) least = std::clamp<std::int64_t>(extra, 0, least.value_or(kMostTemplate));
    }
    add_count(tokens_.cached, r.tokens_server_cached);
    if (r.tokens_server_cached) ++cache_told_;
    add_count(tokens_.reasoning, r.tokens_server_reasoning);
    if (attempt.complete) ++replies_.at(static_cast<std::size_t>(attempt.source));
  }

  [[nodiscard]] Tokens finish() const {
    Tokens out = tokens_;
    if (out.cached) {
      out.cached_per_request = static_cast<double>(*out.cached) / static_cast<double>(cache_told_);
    }
    std::int64_t most = 0;
    for (std::size_t s = 0; s < replies_.size(); ++s) {
      const std::string name(token_source_name(static_cast<TokenSource>(s)));
      if (replies_.at(s) > 0) out.replies_by_source[name] = replies_.at(s);
      if (replies_.at(s) > most) {
        most = replies_.at(s);
        out.source = name;
      }
    }
    return out;
  }

 private:
  bool chat_;
  Tokens tokens_;
  std::int64_t cache_told_ = 0;  // requests
  std::array<std::int64_t, kTokenSourceCount> replies_{};
};

TtftSplit ttft_split(const Ledger& ledger, const Population& population) {
  TtftSplit split;
  Duration wait{0};
  Duration connect{0};
  Duration lag{0};
  Duration rest{0};
  for (const std::size_t i : population.cohort) {
    const RequestRecord& r = ledger.requests[i];
    if (r.outcome != Outcome::kOk || !r.first_token || !r.send_start) continue;
    ++split.n;
    const Duration own_lag = send_lag(r).value_or(Duration{0});
    Duration set_up{0};
    if (!r.reused) {
      for (const MaybeTime& part : {r.dns, r.tcp, r.tls}) set_up += part.value_or(Duration{0});
    }
    set_up = std::min(set_up, *r.send_start - r.scheduled);
    lag += own_lag;
    connect += set_up;
    wait += std::max(Duration{0}, *r.send_start - r.scheduled - own_lag - set_up);
    rest += *r.first_token - *r.send_start;
  }
  if (split.n == 0) return split;
  const auto mean = [&split](Duration sum) { return to_ms(sum) / static_cast<double>(split.n); };
  split.client_wait_ms = mean(wait);
  split.connect_ms = mean(connect);
  split.send_lag_ms = mean(lag);
  split.to_first_token_ms = mean(rest);
  return split;
}

enum class Role : std::uint8_t { kWarmup, kMeasured, kCohort };

std::vector<Role> roles_of(const Ledger& ledger, const Population& population) {
  std::vector<Role> roles(ledger.requests.size(), Role::kWarmup);
  for (const std::size_t i : population.measured) roles[i] = Role::kMeasured;
  for (const std::size_t i : population.cohort) roles[i] = Role::kCohort;
  return roles;
}

/// Warm-up first, then by scheduled instant, so that series are in time order.
std::vector<std::size_t> walk_order(const std::vector<Role>& roles, const Population& population) {
  std::vector<std::size_t> order;
  order.reserve(roles.size());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Role::kWarmup) order.push_back(i);
  }
  order.insert(order.end(), population.measured.begin(), population.measured.end());
  return order;
}

/// At least four bytes make a chunk, so this many gaps never need to grow.
std::size_t most_gaps(const Ledger& ledger, const Population& population) {
  constexpr std::size_t kLeastChunkBytes = 4;
  std::size_t bytes = 0;
  for (const std::size_t i : population.cohort) bytes += ledger.requests[i].chunks.size();
  return bytes / kLeastChunkBytes;
}

/// One walk over all requests: each chunk blob is unpacked once.
void walk(const Ledger& ledger, const Population& population, Measurement& m) {
  const std::vector<Role> roles = roles_of(ledger, population);
  LatencyCollector latency(most_gaps(ledger, population));
  ThroughputCollector throughput(population);
  TokenCounter tokens(m.spec.target.api);
  std::vector<Attempt> cohort;
  cohort.reserve(population.cohort.size());
  std::vector<Chunk> chunks;
  for (const std::size_t i : walk_order(roles, population)) {
    const RequestRecord& r = ledger.requests[i];
    if (!unpack_chunks(r, chunks)) ++m.damaged_chunks;
    const Attempt attempt = attempt_of(r, chunks, m.spec.target, population.last);
    const bool warmup = roles[i] == Role::kWarmup;
    throughput.add(
        r, attempt, chunks,
        warmup ? ThroughputCollector::Part::kWarmup : ThroughputCollector::Part::kMeasured);
    if (!warmup) tokens.add(r, attempt);
    if (roles[i] != Role::kCohort) continue;
    latency.add(attempt, chunks);
    // Where no queue depth was asked for, a refused request is none of the cohort's.
    const bool refused = r.outcome == Outcome::kRefusedByClient;
    if (!refused || m.spec.load.queue_depth) cohort.push_back(attempt);
  }
  m.latency = latency.finish(m.spec.target);
  m.throughput = throughput.steady(m.spec.run.gpus);
  m.whole_run = throughput.whole(m.spec.run.gpus);
  m.tokens = tokens.finish();
  m.goodput = goodput_of(cohort, m.spec, m.run.window_s);
}

void withhold_intervals(Distribution& d) {
  d.mean_interval.reset();
  for (Percentile& p : d.percentiles) p.interval.reset();
}

/// A drifting run has no steady rate, and an interval would promise a value that repeats.
void withhold_steady(Measurement& m) {
  m.steady = false;
  m.throughput = Throughput{};
  m.goodput.good_rps = Rate{};
  for (Distribution* d :
       {&m.latency.ttft_ms, &m.latency.ttfo_ms, &m.latency.tpot_ms, &m.latency.itl_ms,
        &m.latency.icl_ms, &m.latency.worst_gap_ms, &m.latency.e2e_ms, &m.latency.tail_ms,
        &m.latency.service_ttft_ms, &m.latency.service_e2e_ms}) {
    withhold_intervals(*d);
  }
}

}  // namespace

Measurement measure(const Ledger& ledger, const Spec& spec) {
  const Population population = population_of(ledger, spec);
  Measurement m;
  m.spec = spec;
  m.run = run_facts(ledger, spec, population);
  m.requests = requests_of(ledger, population);
  walk(ledger, population, m);
  m.client = client_of(ledger, population);
  m.ttft_split = ttft_split(ledger, population);
  m.validity = validity_of(ledger, population, m);
  const std::optional<Trend> drift = latency_drift(ledger, population, spec);
  m.findings = findings_of(ledger, m, drift);
  if (drift) withhold_steady(m);
  return m;
}

}  // namespace assay
