#include "study/measure/throughput.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/core/time.h"
#include "base/stats/interval.h"
#include "base/stats/mean.h"
#include "domain/ledger/record.h"
#include "study/measure/attempt.h"
#include "study/measure/measurement.h"
#include "study/measure/population.h"

namespace assay {
namespace {

/// Too few events in the window for an interval that means something.
constexpr double kLeastEvents = 40;

Rate mean_rate(const std::vector<double>& values) {
  Rate rate;
  if (values.empty()) return rate;
  double sum = 0;
  for (const double v : values) sum += v;
  rate.value = sum / static_cast<double>(values.size());
  rate.interval = mean_interval(values);
  return rate;
}

Rate per_gpu(const Rate& output, std::int64_t gpus) {
  Rate rate;
  if (gpus <= 0 || !output.value) return rate;
  const auto n = static_cast<double>(gpus);
  rate.value = *output.value / n;
  if (output.interval)
    rate.interval = Interval{output.interval->low / n, output.interval->high / n};
  return rate;
}

MaybeCount prompt_tokens(const RequestRecord& r) {
  return r.tokens_server_prompt ? r.tokens_server_prompt : r.tokens_local_prompt;
}

}  // namespace

ThroughputCollector::ThroughputCollector(const Population& population)
    : start_(population.start), end_(population.end), last_(population.last) {
  if (end_ > start_) spans_per_ns_ = kSpans / static_cast<double>((end_ - start_).count());
}

inline void ThroughputCollector::add_to(Tally& tally, RunTime at, double amount) const {
  if (at < start_ || at >= end_) return;
  const double span = static_cast<double>((at - start_).count()) * spans_per_ns_;
  tally.spans[std::min(kSpans - 1, static_cast<std::size_t>(span))] += amount;
}

void ThroughputCollector::add_output(const Attempt& attempt, std::span<const Chunk> chunks,
                                     RunTime end) {
  if (!attempt.tokens) return;
  const auto total = static_cast<double>(*attempt.tokens);
  if (chunks.empty()) return add_to(output_, end, total);
  const bool known = attempt.gaps == GapRule::kSpread;
  const double each = total / static_cast<double>(chunks.size());
  for (const Chunk& chunk : chunks) {
    add_to(output_, chunk.at, known ? static_cast<double>(chunk.tokens) : each);
  }
}

void ThroughputCollector::add(const RequestRecord& record, const Attempt& attempt,
                              std::span<const Chunk> chunks, Part part) {
  const bool measured = part == Part::kMeasured;
  const RunTime end = record.done ? *record.done : record.last_token.value_or(record.scheduled);
  add_output(attempt, chunks, end);
  const MaybeCount prompt = prompt_tokens(record);
  const MaybeTime prefilled = record.first_token ? record.first_token : record.done;
  if (prompt && prefilled) add_to(input_, *prefilled, static_cast<double>(*prompt));
  if (measured) {
    output_.known = output_.known || attempt.tokens.has_value();
    input_.known = input_.known || prompt.has_value();
    output_.all += static_cast<double>(attempt.tokens.value_or(0));
    if (prompt && prefilled) input_.all += static_cast<double>(*prompt);
  }
  requests_.known = requests_.known || measured;
  if (!attempt.complete) return;

  const auto tokens = static_cast<double>(attempt.tokens.value_or(0));
  add_to(requests_, end, 1);
  add_to(effective_, end, tokens);
  if (!measured) return;
  requests_.all += 1;
  effective_.all += tokens;
  effective_.known = effective_.known || attempt.tokens.has_value();
  if (!attempt.tokens || !attempt.e2e || attempt.e2e->time <= Duration{0}) return;
  const double rate = tokens / to_seconds(attempt.e2e->time);
  per_user_all_.push_back(rate);
  if (record.scheduled <= end_) per_user_.push_back(rate);
}

Rate ThroughputCollector::steady_rate(const Tally& tally) const {
  Rate rate;
  const double window = to_seconds(end_ - start_);
  if (!tally.known || window <= 0) return rate;
  double sum = 0;
  for (const double amount : tally.spans) sum += amount;
  rate.value = sum / window;
  if (sum >= kLeastEvents) rate.interval = rate_interval(tally.spans, window / kSpans);
  return rate;
}

Rate ThroughputCollector::whole_rate(const Tally& tally) const {
  Rate rate;
  const double length = to_seconds(last_ - start_);
  if (tally.known && length > 0) rate.value = tally.all / length;
  return rate;
}

Throughput ThroughputCollector::steady(std::int64_t gpus) const {
  Throughput out{.output_tokens_per_s = steady_rate(output_),
                 .input_tokens_per_s = steady_rate(input_),
                 .effective_tokens_per_s = steady_rate(effective_),
                 .requests_per_s = steady_rate(requests_),
                 .per_user_tokens_per_s = mean_rate(per_user_),
                 .per_gpu_tokens_per_s = {}};
  out.per_gpu_tokens_per_s = per_gpu(out.output_tokens_per_s, gpus);
  return out;
}

Throughput ThroughputCollector::whole(std::int64_t gpus) const {
  Throughput out{.output_tokens_per_s = whole_rate(output_),
                 .input_tokens_per_s = whole_rate(input_),
                 .effective_tokens_per_s = whole_rate(effective_),
                 .requests_per_s = whole_rate(requests_),
                 .per_user_tokens_per_s = mean_rate(per_user_all_),
                 .per_gpu_tokens_per_s = {}};
  out.per_gpu_tokens_per_s = per_gpu(out.output_tokens_per_s, gpus);
  return out;
}

}  // namespace assay
