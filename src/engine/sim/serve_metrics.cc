#include "engine/sim/serve_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/core/text.h"

namespace assay {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// vllm/v1/metrics/loggers.py, in nanoseconds.
constexpr std::array<std::int64_t, 22> kTtftBounds = {
    1 * kMs,     5 * kMs,      10 * kMs,     20 * kMs,     40 * kMs,    60 * kMs,
    80 * kMs,    100 * kMs,    250 * kMs,    500 * kMs,    750 * kMs,   1000 * kMs,
    2500 * kMs,  5000 * kMs,   7500 * kMs,   10000 * kMs,  20000 * kMs, 40000 * kMs,
    80000 * kMs, 160000 * kMs, 640000 * kMs, 2560000 * kMs};
constexpr std::array<std::int64_t, 19> kItlBounds = {
    10 * kMs,   25 * kMs,    50 * kMs,    75 * kMs,    100 * kMs,  150 * kMs,  200 * kMs,
    300 * kMs,  400 * kMs,   500 * kMs,   750 * kMs,   1000 * kMs, 2500 * kMs, 5000 * kMs,
    7500 * kMs, 10000 * kMs, 20000 * kMs, 40000 * kMs, 80000 * kMs};
constexpr std::array<std::int64_t, 21> kRequestBounds = {
    300 * kMs,    500 * kMs,     800 * kMs,    1000 * kMs,   1500 * kMs,   2000 * kMs,
    2500 * kMs,   5000 * kMs,    10000 * kMs,  15000 * kMs,  20000 * kMs,  30000 * kMs,
    40000 * kMs,  50000 * kMs,   60000 * kMs,  120000 * kMs, 240000 * kMs, 480000 * kMs,
    960000 * kMs, 1920000 * kMs, 7680000 * kMs};
// 1, 2, 5, 10, … up to the longest context.
constexpr std::array<std::int64_t, 19> kTokenBounds = {
    1,    2,    5,     10,    20,    50,     100,    200,    500,    1000,
    2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};

class MetricsText {
 public:
  MetricsText(std::span<const ServeMetrics* const> threads, std::string_view model)
      : threads_(threads), labels_("engine=\"0\",model_name=\"" + escaped(model) + "\"") {}

  void gauge(std::string_view name, std::string_view help, ServeCount ServeMetrics::* member) {
    head(name, "gauge", help);
    line(name, labels_, std::to_string(total(member)));
  }
  void counter(std::string_view name, std::string_view help, ServeCount ServeMetrics::* member) {
    head(name, "counter", help);
    line(fmt::format("{}_total", name), labels_, std::to_string(total(member)));
  }
  void endings();
  enum class Unit : std::uint8_t { kSeconds, kTokens };
  void histogram(std::string_view name, std::string_view help, Unit unit,
                 ServeHistogram ServeMetrics::* member);
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  static std::string escaped(std::string_view text) {
    std::string out(text);
    replace_all(out, "\\", "\\\\");
    replace_all(out, "\"", "\\\"");
    replace_all(out, "\n", "\\n");
    return out;
  }
  static std::string shown(std::int64_t value, Unit unit) {
    const double number = static_cast<double>(value);
    return fmt::format("{}", unit == Unit::kSeconds ? number / 1e9 : number);
  }
  [[nodiscard]] std::int64_t total(ServeCount ServeMetrics::* member) const {
    std::int64_t sum = 0;
    for (const ServeMetrics* const metrics : threads_) sum += (metrics->*member).value();
    return sum;
  }
  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out_), "# HELP vllm:{} {}\n# TYPE vllm:{} {}\n", name, help,
                   name, type);
  }
  void line(std::string_view name, std::string_view labels, std::string_view value) {
    fmt::format_to(std::back_inserter(out_), "vllm:{}{{{}}} {}\n", name, labels, value);
  }

  std::span<const ServeMetrics* const> threads_;
  std::string labels_;
  std::string out_;
};

void MetricsText::endings() {
  head("request_success", "counter", "Requests that have ended, by reason.");
  for (const auto& [reason, member] : {std::pair{"stop", &ServeMetrics::ended_stop},
                                       std::pair{"length", &ServeMetrics::ended_length},
                                       std::pair{"abort", &ServeMetrics::ended_abort},
                                       std::pair{"error", &ServeMetrics::ended_error}}) {
    line("request_success_total", fmt::format("{},finished_reason=\"{}\"", labels_, reason),
         std::to_string(total(member)));
  }
}

void MetricsText::histogram(std::string_view name, std::string_view help, Unit unit,
                            ServeHistogram ServeMetrics::* member) {
  head(name, "histogram", help);
  const std::span<const std::int64_t> bounds = (threads_.front()->*member).bounds();
  std::int64_t below = 0, sum = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    for (const ServeMetrics* const metrics : threads_) below += (metrics->*member).count(i);
    const std::string bound = i < bounds.size() ? shown(bounds[i], unit) : "+Inf";
    line(fmt::format("{}_bucket", name), fmt::format("{},le=\"{}\"", labels_, bound),
         std::to_string(below));
  }
  for (const ServeMetrics* const metrics : threads_) sum += (metrics->*member).sum();
  line(fmt::format("{}_count", name), labels_, std::to_string(below));
  line(fmt::format("{}_sum", name), labels_, shown(sum, unit));
}

}  // namespace

void ServeHistogram::add(std::int64_t value, std::int64_t times) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].add(times);
  sum_.add(value * times);
}

ServeMetrics::ServeMetrics()
    : ttft(kTtftBounds),
      itl(kItlBounds),
      tpot(kItlBounds),
      e2e(kRequestBounds),
      queue(kRequestBounds),
      inference(kRequestBounds),
      prefill(kRequestBounds),
      decode(kRequestBounds),
      request_prompt_tokens(kTokenBounds),
      request_generation_tokens(kTokenBounds),
      request_max_tokens(kTokenBounds) {}

std::string metrics_text(std::span<const ServeMetrics* const> threads, std::string_view model) {
  using M = ServeMetrics;
  constexpr auto kSeconds = MetricsText::Unit::kSeconds;
  constexpr auto kTokens = MetricsText::Unit::kTokens;
  MetricsText text(threads, model);
  text.gauge("num_requests_running", "Requests being served.", &M::running);
  text.gauge("num_requests_waiting", "Requests waiting to be served.", &M::waiting);
  text.counter("prompt_tokens", "Prompt tokens of requests taken in.", &M::prompt_tokens);
  text.counter("generation_tokens", "Tokens sent.", &M::generation_tokens);
  text.endings();
  text.histogram("time_to_first_token_seconds", "From arrival to the first token.", kSeconds,
                 &M::ttft);
  text.histogram("inter_token_latency_seconds", "Between neighbouring tokens.", kSeconds, &M::itl);
  text.histogram("request_time_per_output_token_seconds", "Mean time per token after the first.",
                 kSeconds, &M::tpot);
  text.histogram("e2e_request_latency_seconds", "From arrival to the last token.", kSeconds,
                 &M::e2e);
  text.histogram("request_queue_time_seconds", "From arrival to service.", kSeconds, &M::queue);
  text.histogram("request_inference_time_seconds", "From service to the last token.", kSeconds,
                 &M::inference);
  text.histogram("request_prefill_time_seconds", "From service to the first token.", kSeconds,
                 &M::prefill);
  text.histogram("request_decode_time_seconds", "From the first to the last token.", kSeconds,
                 &M::decode);
  text.histogram("request_prompt_tokens", "Prompt tokens of a request.", kTokens,
                 &M::request_prompt_tokens);
  text.histogram("request_generation_tokens", "Output tokens of a request.", kTokens,
                 &M::request_generation_tokens);
  text.histogram("request_params_max_tokens", "Output tokens that a request allows.", kTokens,
                 &M::request_max_tokens);
  return text.take();
}

}  // namespace assay
