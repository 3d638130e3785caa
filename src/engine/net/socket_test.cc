#include "engine/net/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/core/time.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/stamp.h"
#include "engine/net/test_peer.h"

namespace assay {
namespace {

/// Writes down every call; each test says what is to happen at which one.
class SocketTest : public testing::Test, protected SocketHandler {
 protected:
  void SetUp() override {
    SocketHandler& handler = *this;
    socket_ = std::make_unique<Socket>(loop_, handler);
  }

  /// Connected, with the other end in hand.
  TestPeer connected() {
    at_connect_ = [this] { loop_.stop(); };
    socket_->connect(listener_.address());
    loop_.run();
    EXPECT_EQ(log_, "connect ");
    log_.clear();
    return listener_.accept();
  }
  void stop_at_read() {
    at_read_ = [this] { loop_.stop(); };
  }

  void on_connect(std::error_code error) override {
    error_ = error;
    log_ += error ? "refused " : "connect ";
    if (at_connect_) at_connect_();
  }
  void on_send_start(Instant at) override {
    send_start_ = at;
    log_ += "start ";
  }
  void on_sent(Instant at) override {
    sent_ = at;
    log_ += "sent ";
    if (at_sent_) at_sent_();
  }
  void on_read(std::string_view bytes, const Stamp& stamp) override {
    bytes_ += bytes;
    stamps_.push_back(stamp);
    if (!log_.ends_with("read ")) log_ += "read ";
    if (at_read_) at_read_();
  }
  void on_closed(std::error_code error, Instant /*at*/) override {
    error_ = error;
    log_ += "closed ";
    loop_.stop();
  }

  EpollLoop loop_;
  TestListener listener_;
  std::unique_ptr<Socket> socket_;
  std::string log_, bytes_;
  std::vector<Stamp> stamps_;
  std::error_code error_;
  Instant send_start_{}, sent_{};
  std::function<void()> at_connect_, at_sent_, at_read_;
};

TEST_F(SocketTest, SendsAndReads) {
  const TestPeer peer = connected();
  at_sent_ = [&] { peer.write(peer.read(4)); };
  stop_at_read();
  socket_->send("ping");
  loop_.run();
  EXPECT_EQ(log_, "start sent read ");
  EXPECT_EQ(bytes_, "ping");
  EXPECT_LE(send_start_, sent_);
}

TEST_F(SocketTest, TheKernelStampsReadsOfLoopback) {
  const TestPeer peer = connected();
  stop_at_read();
  // The kernel switches its stamps on a little after the first socket asked for them.
  for (int i = 0; i < 10'000 && (stamps_.empty() || stamps_.back().source == StampSource::kUser);
       ++i) {
    peer.write("x");
    loop_.run();
  }
  ASSERT_FALSE(stamps_.empty());
  EXPECT_EQ(stamps_.back().source, StampSource::kKernel);
  Instant before{};
  for (const Stamp& stamp : stamps_) {
    EXPECT_LE(before, stamp.at);
    EXPECT_LE(stamp.at, stamp.user);
    before = stamp.at;
  }
}

TEST_F(SocketTest, NoStampLiesBeforeTheSendThatCausedIt) {
  const TestPeer peer = connected();
  at_sent_ = [&] { peer.write(peer.read(1)); };
  stop_at_read();
  for (int i = 0; i < 100; ++i) {
    socket_->send("x");
    loop_.run();
    EXPECT_GE(stamps_.back().at, send_start_);
  }
}

TEST_F(SocketTest, ADeliberateFaultMakesStampsLateAndNothingElse) {
  EpollLoop faulty(Clocks().with_late_stamps(1h));
  SocketHandler& handler = *this;
  Socket socket(faulty, handler);
  at_connect_ = at_read_ = [&faulty] { faulty.stop(); };
  socket.connect(listener_.address());
  faulty.run();
  const TestPeer peer = listener_.accept();
  const Instant before = faulty.now();
  peer.write("x");
  faulty.run();
  EXPECT_EQ(bytes_, "x");
  EXPECT_LE(stamps_.back().user, faulty.now());
  EXPECT_GE(stamps_.back().at, before + 1h);
  EXPECT_LE(stamps_.back().at, stamps_.back().user + 1h);
}

TEST_F(SocketTest, AMessageOfManyMegabytesGoesInPartsAndWhole) {
  const TestPeer peer = connected();
  std::string message(8U << 20U, '\0');
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<char>(i * 7 % 251);
  std::string arrived;
  stop_at_read();
  socket_->send(message);
  EXPECT_EQ(log_, "start ");  // no socket takes all of it at once while nobody reads
  {
    const std::jthread reader([&] {
      arrived = peer.read(message.size());
      peer.write("got it");
    });
    loop_.run();
  }
  EXPECT_EQ(log_, "start sent read ");
  EXPECT_TRUE(arrived == message);
  EXPECT_LT(send_start_, sent_);
}

TEST_F(SocketTest, ALongAnswerComesWhole) {
  TestPeer peer = connected();
  const std::string answer(3U << 20U, 'a');
  {
    const std::jthread writer([&] {
      peer.write(answer);
      peer.close();
    });
    loop_.run();
  }
  EXPECT_EQ(log_, "read closed ");
  EXPECT_TRUE(bytes_ == answer);
}

TEST_F(SocketTest, AStreamFasterThanItsReaderKeepsNoTimerWaiting) {
  const TestPeer peer = connected();
  const std::string more(2 * EpollLoop::kReadSize, 'x');
  int reads = 0;
  at_read_ = [&] {
    ++reads;
    peer.write(std::string_view(more).substr(0, EpollLoop::kReadSize));
  };
  loop_.at(loop_.now(), [&] { loop_.at(loop_.now() + 1us, [&] { loop_.stop(); }); });
  peer.write(more);
  loop_.run();
  EXPECT_GT(reads, 0);
}

TEST_F(SocketTest, TheEndOfThePeerIsNoError) {
  TestPeer peer = connected();
  peer.write("bye");
  peer.close();
  loop_.run();
  EXPECT_EQ(log_, "read closed ");
  EXPECT_EQ(bytes_, "bye");
  EXPECT_FALSE(error_);
  EXPECT_FALSE(socket_->open());
}

TEST_F(SocketTest, AResetIsAnError) {
  TestPeer peer = connected();
  peer.reset();
  loop_.run();
  EXPECT_EQ(log_, "closed ");
  EXPECT_EQ(error_, std::errc::connection_reset);
}

TEST_F(SocketTest, ResettingTellsThePeer) {
  const TestPeer peer = connected();
  socket_->reset();
  EXPECT_EQ(peer.read(1), "");
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(SocketTest, WhereNobodyListensTheConnectIsRefused) {
  at_connect_ = [this] { loop_.stop(); };
  socket_->connect(refusing_address());
  EXPECT_EQ(log_, "");  // never from inside connect()
  loop_.run();
  EXPECT_EQ(log_, "refused ");
  EXPECT_EQ(error_, std::errc::connection_refused);
}

TEST_F(SocketTest, AMissingUnixSocketIsReportedFromTheLoop) {
  at_connect_ = [this] { loop_.stop(); };
  const auto address = unix_address("/nonexistent/engine.sock");
  ASSERT_TRUE(address);
  socket_->connect(*address);
  EXPECT_EQ(log_, "");
  loop_.run();
  EXPECT_EQ(log_, "refused ");
  EXPECT_EQ(error_, std::errc::no_such_file_or_directory);
}

TEST_F(SocketTest, NoCallComesAfterClose) {
  TestPeer peer = connected();
  peer.write("unheard");
  socket_->close();
  EXPECT_FALSE(socket_->open());
  loop_.run();  // ends by itself: nothing is left to wait for
  EXPECT_EQ(log_, "");
}

TEST_F(SocketTest, NoCallComesAfterCloseWhileConnecting) {
  socket_->connect(listener_.address());
  socket_->close();
  loop_.run();
  EXPECT_EQ(log_, "");
}

TEST_F(SocketTest, MayBeDestroyedInsideOnConnect) {
  at_connect_ = [this] { socket_.reset(); };
  socket_->connect(listener_.address());
  loop_.run();
  EXPECT_EQ(log_, "connect ");
}

TEST_F(SocketTest, MayBeClosedInsideOnRead) {
  const TestPeer peer = connected();
  at_read_ = [this] { socket_->close(); };
  peer.write(std::string(2 * EpollLoop::kReadSize, 'x'));
  loop_.run();
  EXPECT_EQ(log_, "read ");
  EXPECT_EQ(stamps_.size(), 1U);
}

TEST_F(SocketTest, MayBeDestroyedInsideOnRead) {
  const TestPeer peer = connected();
  at_read_ = [this] { socket_.reset(); };
  peer.write("x");
  loop_.run();
  EXPECT_EQ(log_, "read ");
}

TEST_F(SocketTest, AnAnswerFromBeforeTheSendFailedIsReadFirst) {
  TestPeer peer = connected();
  // More than one read, and no more than the first window of a connection lets through.
  const std::string answer(EpollLoop::kReadSize + 1'000, 'a');
  peer.write(answer);
  peer.close();
  std::optional<bool> open_at_read;
  at_read_ = [&] { open_at_read = socket_->open(); };
  const std::string message(16U << 20U, 'm');
  socket_->send(message);
  EXPECT_EQ(log_, "start ");  // the failure is not told from inside send()
  loop_.run();
  EXPECT_EQ(log_, "start read closed ");
  EXPECT_EQ(bytes_.size(), answer.size());
  EXPECT_EQ(open_at_read, false);  // nobody should send on it again
}

TEST_F(SocketTest, TakesOverAnAcceptedDescriptor) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
  TestPeer peer(pair[1]);
  peer.write("hello");
  stop_at_read();
  socket_->adopt(pair[0]);
  loop_.run();
  EXPECT_EQ(bytes_, "hello");
  socket_->send("back");
  EXPECT_EQ(peer.read(4), "back");
  peer.close();
  loop_.run();
  EXPECT_EQ(log_, "read start sent closed ");
}

TEST_F(SocketTest, SocketsMayOutliveWhatTheyWaitFor) {
  const TestPeer peer = connected();
  socket_->send(std::string_view("x"));
  socket_.reset();  // and the loop goes with a wait of it still queued
}

}  // namespace
}  // namespace assay
