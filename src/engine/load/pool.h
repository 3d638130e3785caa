// Admission: which request gets which connection, and when. Free connections first; else a bounded
// first-in first-out queue; else refusal. Connections are opened ahead where their number is known,
// on demand with a few to spare where it is not, and at most kOpening at a time, so that a thousand
// of them don't overrun the server's backlog. With cold connects every request opens its own and
// closes it after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/target/target.h"

namespace assay {

enum class ConnectMode : std::uint8_t { kReuse, kCold };

struct PoolOptions {
  std::optional<std::int64_t> limit;        // connections; null: no limit
  std::optional<std::int64_t> queue_depth;  // null: no limit; 0: refuse when no connection is free
  ConnectMode mode = ConnectMode::kReuse;
  std::int64_t first_connection = 0;  // numbering of this worker's connections
  std::int64_t connection_step = 1;
};

/// A connection in the pool.
struct Seat {
  std::int64_t id = 0;
  std::unique_ptr<Channel> channel;
  OpenResult opened;
  Instant free_since{};  // opened, or its last reply ended
  bool busy = false;
  bool used = false;  // has carried a request
};

class Pool {
 public:
  using Ticket = std::uint64_t;
  /// Called from the loop, never from inside acquire(): a seat, or null with why there is none.
  using Granted =
      std::function<void(Seat* seat, const OpenResult* fresh, const std::string& error)>;
  struct Acquired {
    Seat* seat = nullptr;  // at once
    Ticket ticket = 0;     // queued; `granted` will be called
    bool refused = false;  // the queue is full
  };

  Pool(Loop& loop, Target& target, const PoolOptions& options);

  /// Opens `count` connections; `done(opened, error)` when each has succeeded or failed.
  void prepare(std::int64_t count,
               std::function<void(std::int64_t opened, const std::string& error)> done);
  Acquired acquire(Granted granted);
  /// Queues at the front, whatever the depth: for a request that lost its connection before it was
  /// heard.
  Ticket acquire_again(Granted granted);
  /// A queued request leaves.
  void abandon(Ticket ticket);
  /// After the end of a request at `at`; hands the seat on, or closes it when it can't carry
  /// another.
  void release(Seat& seat, Instant at);
  /// The peer closed `seat` without a word. Soon after a reply that is its habit: no connection is
  /// reused then.
  void note_unannounced_close(const Seat& seat);
  [[nodiscard]] bool closes_after_reply() const { return closes_after_reply_; }

  [[nodiscard]] std::size_t queued() const { return queued_; }
  [[nodiscard]] std::int64_t connects() const { return connects_; }

 private:
  static constexpr std::size_t kOpening = 64;

  struct Waiting {
    Ticket ticket;
    Granted granted;  // empty: has left
  };

  [[nodiscard]] bool may_open() const;
  void open_wanted();
  void open_one();
  void on_opened(std::int64_t id, const OpenResult& result);
  void on_idle_closed(std::int64_t id);
  void serve_waiting();
  Granted take_waiting();
  void forget_those_who_left();
  void finish_prepare();
  Seat* take_idle();
  void drop(std::int64_t id);

  Loop& loop_;
  Target& target_;
  PoolOptions options_;
  std::unordered_map<std::int64_t, Seat> seats_;
  std::vector<std::int64_t> idle_;  // last used first: warm connections stay warm
  std::deque<Waiting> waiting_;     // tickets ascend; the first is there still
  std::size_t queued_ = 0;          // of them, those who have not left
  std::size_t opening_ = 0;
  std::int64_t busy_ = 0;
  bool closes_after_reply_ = false;
  std::int64_t to_prepare_ = 0;    // still to start opening
  std::int64_t prepare_left_ = 0;  // not heard of yet
  std::int64_t prepared_ = 0;
  std::string prepare_error_;
  std::function<void(std::int64_t, const std::string&)> prepare_done_;
  static constexpr Ticket kFirstTicket = Ticket{1} << 32;
  Ticket next_ticket_ = kFirstTicket;
  Ticket front_ticket_ = kFirstTicket - 1;
  std::int64_t next_id_;
  std::int64_t connects_ = 0;
  bool open_failed_ = false;  // the last one that was heard of
};

}  // namespace assay
