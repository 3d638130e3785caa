#include "engine/load/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/random.h"
#include "base/core/time.h"
#include "domain/spec/spec.h"
#include "domain/workload/prompt.h"
#include "engine/load/plan.h"
#include "engine/target/target.h"

namespace assay {

RequestBuilder::RequestBuilder(const Spec& spec, std::string salt, const Target& target)
    : workload_(spec.workload, spec.run.seed, salt),
      id_prefix_(fmt::format("assay-{:016x}", hash64(fmt::format("{}/{}", spec.run.seed, salt)))),
      target_(target) {}

std::unique_ptr<PreparedRequest> RequestBuilder::build(std::int64_t id) const {
  Prompt prompt = workload_.prompt(static_cast<std::uint64_t>(id));
  auto request = std::make_unique<PreparedRequest>();
  request->id = id;
  request->item = std::move(prompt.item);
  request->request_id = fmt::format("{}-{}", id_prefix_, id);
  request->tokens_planned = prompt.tokens_planned;
  request->tokens_output = prompt.tokens_output;
  request->wire = target_.encode({.prompt = std::move(prompt.text),
                                  .tokens_output = prompt.tokens_output,
                                  .request_id = request->request_id});
  return request;
}

OpenSchedule::OpenSchedule(const LoadSpec& spec, const LoadPlan& plan, std::uint64_t seed)
    : arrivals_(ArrivalWalk(spec.arrival, spec.rate.value_or(1), seed)), plan_(plan) {
  set_end();
}

OpenSchedule::OpenSchedule(std::vector<RunTime> trace, const LoadPlan& plan)
    : arrivals_(std::move(trace)), plan_(plan) {
  set_end();
}

void OpenSchedule::set_end() {
  if (plan_.duration && plan_.warmup_requests == 0) stop_at_ = plan_.warmup_time + *plan_.duration;
}

std::optional<OpenSchedule::Arrival> OpenSchedule::next() {
  Arrival arrival{id_, RunTime(0), false};
  if (const auto* trace = std::get_if<std::vector<RunTime>>(&arrivals_)) {
    if (static_cast<std::size_t>(id_) >= trace->size()) return std::nullopt;
    arrival.at = (*trace)[static_cast<std::size_t>(id_)];
  } else {
    arrival.at = std::get<ArrivalWalk>(arrivals_).next();
  }
  arrival.warmup =
      plan_.warmup_requests > 0 ? id_ < plan_.warmup_requests : arrival.at < plan_.warmup_time;
  ++id_;
  if (arrival.warmup) return arrival;
  // After a warm-up of so many requests, steady lasts from its first arrival on.
  if (plan_.duration && !stop_at_) stop_at_ = arrival.at + *plan_.duration;
  if (stop_at_ && arrival.at >= *stop_at_) return std::nullopt;
  if (plan_.requests && steady_count_ >= *plan_.requests) return std::nullopt;
  ++steady_count_;
  return arrival;
}

RequestFeed::RequestFeed(std::size_t capacity, Fill fill)
    : ring_(capacity), fill_(std::move(fill)) {}

PreparedRequest* RequestFeed::front() {
  if (fill_ && !closed() && ring_.size() == 0) {
    std::unique_ptr<PreparedRequest> request = fill_();
    if (request) {
      ring_.push(request);
    } else {
      close();
    }
  }
  std::unique_ptr<PreparedRequest>* const front = ring_.front();
  return front == nullptr ? nullptr : front->get();
}

std::unique_ptr<PreparedRequest> RequestFeed::pop() {
  std::unique_ptr<PreparedRequest> request = ring_.pop();
  if (wanted_ && ring_.size() == ring_.capacity() / 2) wanted_();
  return request;
}

bool RequestFeed::finished() {
  // closed_ first: what was pushed before the close is seen after it.
  return closed_.load(std::memory_order_acquire) && front() == nullptr;
}

FeedFiller::FeedFiller(const Spec& spec, const LoadPlan& plan, const RequestBuilder& builder,
                       std::vector<std::unique_ptr<RequestFeed>>& feeds)
    : spec_(spec), plan_(plan), builder_(builder), feeds_(feeds) {
  for (const auto& feed : feeds_) feed->on_wanted([this] { wanted_.release(); });
}

std::size_t FeedFiller::capacity(const Spec& spec, const LoadPlan& plan) {
  constexpr double kAheadSeconds = 2;
  constexpr std::int64_t kClosedAhead = 1024;  // a fast target frees slots by the thousand
  const double wanted = plan.open_loop ? std::ceil(spec.load.rate.value_or(1) * kAheadSeconds)
                                       : static_cast<double>(std::max(plan.slots, kClosedAhead));
  // Long prompts at a high rate would fill the memory: the feeds together hold at most that much.
  constexpr double kBytesMax = 256e6;
  constexpr double kBytesPerToken = 8;
  constexpr double kBytesAround = 1024;  // head and body without the prompt
  const double prompt = spec.workload.prompt.empty()
                            ? mean_tokens(spec.workload.input) * kBytesPerToken
                            : static_cast<double>(spec.workload.prompt.size());
  const double affordable = kBytesMax / (prompt + kBytesAround);
  const double per_worker = std::min(wanted, affordable) / plan.workers;
  return static_cast<std::size_t>(std::max(per_worker, 64.0));
}

void FeedFiller::run(const std::stop_token& stop) {
  if (plan_.open_loop) {
    fill_open(stop);
  } else {
    fill_closed(stop);
  }
  for (const auto& feed : feeds_) feed->close();
}

void FeedFiller::fill_open(const std::stop_token& stop) {
  OpenSchedule schedule(spec_.load, plan_, spec_.run.seed);
  while (const auto arrival = schedule.next()) {
    std::unique_ptr<PreparedRequest> request = builder_.build(arrival->id);
    request->scheduled = arrival->at;
    request->warmup = arrival->warmup;
    const auto worker = static_cast<std::size_t>(arrival->id) % feeds_.size();
    if (!push(worker, std::move(request), stop)) return;
  }
}

void FeedFiller::fill_closed(const std::stop_token& stop) {
  for (std::int64_t id = 0;; ++id) {
    const auto worker = static_cast<std::size_t>(id) % feeds_.size();
    if (!push(worker, builder_.build(id), stop)) return;
  }
}

bool FeedFiller::push(std::size_t worker, std::unique_ptr<PreparedRequest> request,
                      const std::stop_token& stop) {
  // The feeds wake us at half; the limit is for one that is never read again.
  constexpr Duration kLookAgain = 50ms;
  while (!feeds_[worker]->push(request)) {
    const bool woken = wanted_.try_acquire_for(kLookAgain);
    if (stop.stop_requested()) return false;
    static_cast<void>(woken);
  }
  return !stop.stop_requested();
}

}  // namespace assay
