// Request bytes ahead of their instant. RequestBuilder makes request i as a pure function of the
// spec and i. RequestFeed is the bounded queue of one worker's requests that the builder thread
// keeps filled at least one second ahead of an open loop; without a thread (virtual time) it builds
// when asked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/spsc_ring.h"
#include "base/core/time.h"
#include "domain/ledger/record.h"
#include "domain/spec/spec.h"
#include "domain/workload/arrival.h"
#include "domain/workload/prompt.h"
#include "engine/load/plan.h"
#include "engine/target/target.h"

namespace assay {

struct PreparedRequest {
  std::int64_t id = 0;
  bool warmup = false;   // open loop: decided by the schedule; closed loop: by the worker
  RunTime scheduled{0};  // open loop only
  std::string wire;      // what Target::encode made
  std::string item;
  std::string request_id;
  MaybeCount tokens_planned;
  std::int64_t tokens_output = 0;
};

class RequestBuilder {
 public:
  /// `salt` is the drawn one. `target` must outlive the builder.
  RequestBuilder(const Spec& spec, std::string salt, const Target& target);
  [[nodiscard]] std::unique_ptr<PreparedRequest> build(std::int64_t id) const;

 private:
  Workload workload_;
  std::string id_prefix_;
  const Target& target_;
};

/// The schedule of an open loop: the arrivals one after the other, with their phase, until duration
/// or count.
class OpenSchedule {
 public:
  OpenSchedule(const LoadSpec& spec, const LoadPlan& plan, std::uint64_t seed);
  /// Recorded arrivals, in order, which end the schedule with their own end.
  OpenSchedule(std::vector<RunTime> trace, const LoadPlan& plan);
  struct Arrival {
    std::int64_t id = 0;
    RunTime at{0};
    bool warmup = false;
  };
  std::optional<Arrival> next();

 private:
  void set_end();

  std::variant<ArrivalWalk, std::vector<RunTime>> arrivals_;
  LoadPlan plan_;
  std::int64_t id_ = 0;
  std::int64_t steady_count_ = 0;
  std::optional<RunTime> stop_at_;  // first instant after steady
};

class RequestFeed {
 public:
  using Fill = std::function<std::unique_ptr<PreparedRequest>()>;

  /// Holds at most `capacity` requests. With `fill`, an empty feed builds its next request on the
  /// spot.
  explicit RequestFeed(std::size_t capacity, Fill fill = nullptr);
  /// `wanted` is called by the consumer when the feed has fallen to half its capacity.
  void on_wanted(std::function<void()> wanted) { wanted_ = std::move(wanted); }

  /// Consumer: the next request, null when none is ready yet, or none will come (finished()).
  PreparedRequest* front();
  std::unique_ptr<PreparedRequest> pop();
  /// The schedule has ended and the feed is empty.
  [[nodiscard]] bool finished();

  /// Producer: false, and `request` untouched, when full.
  bool push(std::unique_ptr<PreparedRequest>& request) { return ring_.push(request); }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  void close() { closed_.store(true, std::memory_order_release); }
  [[nodiscard]] std::size_t size() const { return ring_.size(); }

 private:
  SpscRing<std::unique_ptr<PreparedRequest>> ring_;
  Fill fill_;
  std::function<void()> wanted_;
  std::atomic<bool> closed_{false};
};

/// The builder thread's work: fills the feeds until the schedule ends or `stop` asks to. Feed w
/// gets requests w, w + workers, …
class FeedFiller {
 public:
  FeedFiller(const Spec& spec, const LoadPlan& plan, const RequestBuilder& builder,
             std::vector<std::unique_ptr<RequestFeed>>& feeds);
  void run(const std::stop_token& stop);
  /// How many requests a feed should hold: 2 s of an open loop, all slots of a closed one and at
  /// least 1,024, and not more than about 256 MB in all the feeds together.
  static std::size_t capacity(const Spec& spec, const LoadPlan& plan);

 private:
  void fill_open(const std::stop_token& stop);
  void fill_closed(const std::stop_token& stop);
  /// Waits until feed `worker` takes `request`; false when told to stop.
  bool push(std::size_t worker, std::unique_ptr<PreparedRequest> request,
            const std::stop_token& stop);

  const Spec& spec_;
  LoadPlan plan_;
  const RequestBuilder& builder_;
  std::vector<std::unique_ptr<RequestFeed>>& feeds_;
  std::counting_semaphore<> wanted_{0};
};

}  // namespace assay
