#include "engine/load/pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/net/virtual_loop.h"
#include "engine/target/target.h"

namespace assay {
namespace {

class HandTarget;

/// Opens when the test says so.
class HandChannel final : public Channel {
 public:
  explicit HandChannel(HandTarget& target) : target_(target) {}
  ~HandChannel() override;
  HandChannel(const HandChannel&) = delete;
  HandChannel& operator=(const HandChannel&) = delete;
  void open(OpenDone done) override;
  void on_idle_closed(IdleClosed callback) override { idle_closed = std::move(callback); }
  void send(std::string_view /*wire*/, ReplySink& /*sink*/) override {}
  void cancel() override { usable = false; }
  [[nodiscard]] bool reusable() const override { return usable; }

  OpenDone done;
  IdleClosed idle_closed;
  bool usable = false;

 private:
  HandTarget& target_;
};

class HandTarget final : public Target {
 public:
  [[nodiscard]] std::string encode(const RequestPlan& /*plan*/) const override { return {}; }
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& /*loop*/) override {
    ++alive;
    return std::make_unique<HandChannel>(*this);
  }
  [[nodiscard]] int choices() const override { return 1; }

  void opens() {
    HandChannel& channel = next();
    channel.usable = true;
    OpenResult result;
    result.ok = true;
    const Channel::OpenDone done = std::move(channel.done);
    done(result);
  }
  void fails(const std::string& why) {
    OpenResult result;
    result.error = why;
    const Channel::OpenDone done = std::move(next().done);
    done(result);
  }

  std::deque<HandChannel*> opening;
  int alive = 0;

 private:
  HandChannel& next() {
    HandChannel& channel = *opening.front();
    opening.pop_front();
    return channel;
  }
};

HandChannel::~HandChannel() { --target_.alive; }
void HandChannel::open(OpenDone callback) {
  done = std::move(callback);
  target_.opening.push_back(this);
}

class PoolTest : public testing::Test {
 protected:
  struct Grant {
    int who = 0;
    Seat* seat = nullptr;
    bool fresh = false;
    std::string error;
  };

  Pool& make(const PoolOptions& options) {
    pool_ = std::make_unique<Pool>(loop_, target_, options);
    return *pool_;
  }
  Pool::Acquired ask(int who) {
    return pool_->acquire([this, who](Seat* seat, const OpenResult* fresh, const std::string& why) {
      grants_.push_back({who, seat, seat != nullptr && fresh != nullptr, why});
    });
  }
  void prepare(std::int64_t count) {
    pool_->prepare(count, [this](std::int64_t opened, const std::string& why) {
      ++prepared_calls_;
      prepared_ = opened;
      prepare_error_ = why;
    });
  }
  void prepare_all(std::int64_t count) {
    prepare(count);
    while (!target_.opening.empty()) target_.opens();
  }
  [[nodiscard]] std::vector<int> served() const {
    std::vector<int> who;
    for (const Grant& g : grants_) who.push_back(g.who);
    return who;
  }

  VirtualLoop loop_;
  HandTarget target_;
  std::vector<Grant> grants_;
  int prepared_calls_ = 0;
  std::int64_t prepared_ = -1;
  std::string prepare_error_;
  std::unique_ptr<Pool> pool_;
};

PoolOptions limited(std::int64_t limit, std::optional<std::int64_t> depth = {}) {
  PoolOptions options;
  options.limit = limit;
  options.queue_depth = depth;
  return options;
}

TEST_F(PoolTest, PrepareTellsHowManyOpenedOnceAllAreHeardOf) {
  make(limited(3));
  prepare(3);
  ASSERT_EQ(target_.opening.size(), 3U);
  target_.opens();
  target_.fails("refused");
  EXPECT_EQ(prepared_calls_, 0);
  target_.opens();
  EXPECT_EQ(prepared_calls_, 1);
  EXPECT_EQ(prepared_, 2);
  EXPECT_EQ(prepare_error_, "refused");
  EXPECT_EQ(pool_->connects(), 3);
}

TEST_F(PoolTest, PreparingNothingIsDoneAtOnce) {
  make(limited(3));
  prepare(0);
  EXPECT_EQ(prepared_calls_, 1);
  EXPECT_EQ(prepared_, 0);
  EXPECT_TRUE(target_.opening.empty());
}

TEST_F(PoolTest, AtMost64OpenAtOnce) {
  make(limited(200));
  prepare(200);
  EXPECT_EQ(target_.opening.size(), 64U);
  for (int i = 0; i < 200; ++i) {
    EXPECT_LE(target_.opening.size(), 64U);
    target_.opens();
  }
  EXPECT_EQ(prepared_, 200);
  EXPECT_EQ(target_.alive, 200);
}

TEST_F(PoolTest, LastUsedComesFirst) {
  make(limited(3));
  prepare_all(3);
  Seat* const a = ask(1).seat;
  Seat* const b = ask(2).seat;
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_NE(a->id, b->id);
  pool_->release(*a, loop_.now());
  pool_->release(*b, loop_.now());
  EXPECT_EQ(ask(3).seat, b);
  EXPECT_EQ(ask(4).seat, a);
  EXPECT_EQ(pool_->connects(), 3);
}

TEST_F(PoolTest, ConnectionsAreNumberedInSteps) {
  PoolOptions options = limited(2);
  options.first_connection = 1;
  options.connection_step = 4;
  make(options);
  prepare_all(2);
  EXPECT_EQ(ask(1).seat->id + ask(2).seat->id, 1 + 5);
}

TEST_F(PoolTest, TheQueueIsFirstInFirstOutAndTheLimitHolds) {
  make(limited(1));
  prepare_all(1);
  Seat* const seat = ask(0).seat;
  for (int who = 1; who <= 3; ++who) {
    const Pool::Acquired got = ask(who);
    EXPECT_EQ(got.seat, nullptr);
    EXPECT_FALSE(got.refused);
  }
  EXPECT_EQ(pool_->queued(), 3U);
  EXPECT_TRUE(target_.opening.empty());
  for (int i = 0; i < 3; ++i) pool_->release(*seat, loop_.now());
  EXPECT_EQ(served(), (std::vector{1, 2, 3}));
  EXPECT_FALSE(grants_[0].fresh);
  EXPECT_EQ(target_.alive, 1);
}

TEST_F(PoolTest, DepthZeroRefusesWhatFindsNoFreeConnection) {
  make(limited(1, 0));
  prepare_all(1);
  Seat* const seat = ask(1).seat;
  ASSERT_NE(seat, nullptr);
  EXPECT_TRUE(ask(2).refused);
  pool_->release(*seat, loop_.now());
  EXPECT_EQ(ask(3).seat, seat);
  EXPECT_TRUE(grants_.empty());
}

TEST_F(PoolTest, DepthTwoHoldsTwo) {
  make(limited(1, 2));
  prepare_all(1);
  Seat* const seat = ask(1).seat;
  EXPECT_FALSE(ask(2).refused);
  EXPECT_FALSE(ask(3).refused);
  EXPECT_TRUE(ask(4).refused);
  pool_->release(*seat, loop_.now());
  EXPECT_FALSE(ask(5).refused);
  EXPECT_TRUE(ask(6).refused);
}

TEST_F(PoolTest, ARequestWhoseConnectionIsBeingOpenedIsNotInTheQueue) {
  make(limited(2, 0));
  EXPECT_FALSE(ask(1).refused);
  EXPECT_FALSE(ask(2).refused);
  EXPECT_TRUE(ask(3).refused);
  EXPECT_EQ(target_.opening.size(), 2U);
  target_.opens();
  target_.opens();
  EXPECT_EQ(served(), (std::vector{1, 2}));
  EXPECT_TRUE(grants_[0].fresh);
}

TEST_F(PoolTest, WhoLeavesIsPassedOver) {
  make(limited(1));
  prepare_all(1);
  Seat* const seat = ask(0).seat;
  const Pool::Ticket first = ask(1).ticket;
  const Pool::Ticket second = ask(2).ticket;
  ask(3);
  pool_->abandon(second);
  pool_->abandon(second);
  EXPECT_EQ(pool_->queued(), 2U);
  pool_->abandon(first);
  EXPECT_EQ(pool_->queued(), 1U);
  pool_->release(*seat, loop_.now());
  EXPECT_EQ(served(), (std::vector{3}));
  EXPECT_EQ(pool_->queued(), 0U);
  pool_->abandon(first);
  EXPECT_EQ(pool_->queued(), 0U);
}

TEST_F(PoolTest, WhoLeavesMakesRoom) {
  make(limited(1, 1));
  prepare_all(1);
  ask(0);
  const Pool::Ticket ticket = ask(1).ticket;
  EXPECT_TRUE(ask(2).refused);
  pool_->abandon(ticket);
  EXPECT_FALSE(ask(3).refused);
}

TEST_F(PoolTest, AFailureGoesToWhoeverHasWaitedLongest) {
  make(limited(2));
  ask(1);
  ask(2);
  ask(3);
  target_.fails("no route");
  ASSERT_EQ(grants_.size(), 1U);
  EXPECT_EQ(grants_[0].who, 1);
  EXPECT_EQ(grants_[0].seat, nullptr);
  EXPECT_EQ(grants_[0].error, "no route");
  // The place that came free is tried again for those who still wait.
  ASSERT_EQ(target_.opening.size(), 2U);
  target_.opens();
  target_.opens();
  EXPECT_EQ(served(), (std::vector{1, 2, 3}));
  EXPECT_EQ(target_.alive, 2);
}

TEST_F(PoolTest, ColdModeOpensForEachRequestAndClosesAfterIt) {
  PoolOptions options = limited(1);
  options.mode = ConnectMode::kCold;
  make(options);
  EXPECT_EQ(ask(1).seat, nullptr);
  ask(2);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  ASSERT_EQ(grants_.size(), 1U);
  EXPECT_TRUE(grants_[0].fresh);
  const std::int64_t id = grants_[0].seat->id;
  pool_->release(*grants_[0].seat, loop_.now());
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  ASSERT_EQ(grants_.size(), 2U);
  EXPECT_NE(grants_[1].seat->id, id);
  pool_->release(*grants_[1].seat, loop_.now());
  EXPECT_EQ(target_.alive, 0);
  EXPECT_EQ(pool_->connects(), 2);
}

TEST_F(PoolTest, AColdConnectionNobodyWaitsForFreesItsPlace) {
  PoolOptions options = limited(1);
  options.mode = ConnectMode::kCold;
  make(options);
  pool_->abandon(ask(1).ticket);
  target_.opens();
  EXPECT_EQ(target_.alive, 0);
  ask(2);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  EXPECT_EQ(served(), (std::vector{2}));
}

TEST_F(PoolTest, WithoutLimitAFewSpareOnesFollowTheLoad) {
  make({});
  prepare_all(2);
  ask(1);
  EXPECT_TRUE(target_.opening.empty());
  ask(2);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  EXPECT_NE(ask(3).seat, nullptr);
}

TEST_F(PoolTest, WithoutLimitAllWhoWaitGetAConnection) {
  make({});
  for (int who = 1; who <= 100; ++who) EXPECT_FALSE(ask(who).refused);
  EXPECT_EQ(target_.opening.size(), 64U);
  for (int i = 0; i < 100; ++i) target_.opens();
  EXPECT_EQ(grants_.size(), 100U);
  EXPECT_EQ(served().front(), 1);
  EXPECT_EQ(served().back(), 100);
}

TEST_F(PoolTest, ARefusedSpareConnectionIsNotTriedAgainUntilNeeded) {
  make({});
  prepare_all(2);
  ask(1);
  ask(2);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.fails("refused");
  EXPECT_TRUE(target_.opening.empty());
  ask(3);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  EXPECT_EQ(served(), (std::vector{3}));
  // Things go well again, hence spare ones.
  EXPECT_EQ(target_.opening.size(), 1U);
}

TEST_F(PoolTest, AConnectionThatThePeerClosesIsReplacedWhenNeeded) {
  make(limited(1));
  prepare(1);
  HandChannel* const channel = target_.opening.front();
  target_.opens();
  const Channel::IdleClosed closed = channel->idle_closed;
  closed();
  EXPECT_EQ(target_.alive, 0);
  EXPECT_EQ(ask(1).seat, nullptr);
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  EXPECT_EQ(served(), (std::vector{1}));
  EXPECT_TRUE(grants_[0].fresh);
}

TEST_F(PoolTest, AConnectionThatCanCarryNoMoreIsReplacedForThoseWhoWait) {
  make(limited(1));
  prepare_all(1);
  Seat* const seat = ask(1).seat;
  ask(2);
  seat->channel->cancel();
  pool_->release(*seat, loop_.now());
  EXPECT_TRUE(grants_.empty());
  ASSERT_EQ(target_.opening.size(), 1U);
  target_.opens();
  EXPECT_EQ(served(), (std::vector{2}));
  EXPECT_EQ(target_.alive, 1);
}

TEST_F(PoolTest, AHundredThousandLeaveQuicklyInAnyOrder) {
  make(limited(1));
  prepare_all(1);
  ask(0);
  std::vector<Pool::Ticket> tickets;
  for (int who = 1; who <= 100'000; ++who) tickets.push_back(ask(who).ticket);
  for (std::size_t i = tickets.size(); i-- > 1;) pool_->abandon(tickets[i]);
  EXPECT_EQ(pool_->queued(), 1U);
  pool_->abandon(tickets[0]);
  EXPECT_EQ(pool_->queued(), 0U);
}

}  // namespace
}  // namespace assay
