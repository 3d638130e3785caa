#include "engine/net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/core/check.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/asio_loop.h"
#include "engine/net/stamp.h"

namespace assay {
namespace {

using Descriptor =
    boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

/// One stream that is faster than we read must not keep the timers of the others waiting.
constexpr int kReadsPerTurn = 16;

std::error_code last_error() { return {errno, std::generic_category()}; }

void switch_on(int fd, int level, int option) {
  const int one = 1;
  setsockopt(fd, level, option, &one, sizeof one);
}

/// One recvmsg; the stamp is that of the last byte returned.
struct Received {
  ssize_t size = 0;
  std::optional<std::int64_t> stamp_real_ns;
};

Received receive(int fd, char* buffer, std::size_t size) {
  iovec vec{buffer, size};
  alignas(cmsghdr) std::array<char, 128> control{};
  msghdr message{};
  message.msg_iov = &vec;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  Received received;
  do {
    received.size = recvmsg(fd, &message, MSG_DONTWAIT);
  } while (received.size < 0 && errno == EINTR);
  if (received.size <= 0) return received;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      timespec ts{};
      std::memcpy(&ts, CMSG_DATA(c), sizeof ts);
      received.stamp_real_ns = static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
    }
  }
  return received;
}

}  // namespace

struct Socket::Core {
  Core(AsioLoop& l, SocketHandler& h) : loop(l), handler(&h), descriptor(l.context()) {}

  void open(int fd) {
    descriptor.assign(fd);
    switch_on(fd, SOL_SOCKET, SO_TIMESTAMPNS);
    switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
  }
  void finish_connect();
  void wait_read();
  void on_readable();
  /// True: there may be more to read. False: the socket is empty for now, or at its end.
  bool read_once();
  void end_after_reading(std::error_code error);
  void write_some();
  void end(std::error_code error, Instant at);
  void shut();

  AsioLoop& loop;
  SocketHandler* handler;  // null once closed
  Descriptor descriptor;
  std::string_view unsent;
  Instant floor{};  // no stamp of this socket may lie before it
  bool send_started = false;
  bool send_failed = false;
  int references = 0;  // one thread: no atomic needed
};

void intrusive_ptr_add_ref(Socket::Core* core) { ++core->references; }
void intrusive_ptr_release(Socket::Core* core) {
  if (--core->references == 0) delete core;
}

Socket::Socket(AsioLoop& loop, SocketHandler& handler) : core_(new Core(loop, handler)) {}

Socket::~Socket() { close(); }

bool Socket::open() const {
  return core_->handler != nullptr && core_->descriptor.is_open() && !core_->send_failed;
}

void Socket::connect(const Address& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    const std::error_code error = last_error();
    core_->loop.post([core = core_, error] {
      if (core->handler != nullptr) core->handler->on_connect(error);
    });
    return;
  }
  core_->open(fd);
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc != 0 && errno != EINPROGRESS) {
    const std::error_code error = last_error();
    core_->loop.post([core = core_, error] {
      if (core->handler != nullptr) core->handler->on_connect(error);
    });
    return;
  }
  core_->descriptor.async_wait(Descriptor::wait_write,
                               [core = core_](const boost::system::error_code& error) {
                                 if (!error && core->handler != nullptr) core->finish_connect();
                               });
}

void Socket::Core::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
  floor = loop.now();
  const boost::intrusive_ptr<Core> keep(this);
  handler->on_connect({error, std::generic_category()});
  if (error == 0 && handler != nullptr) wait_read();
}

void Socket::adopt(int descriptor) {
  core_->open(descriptor);
  core_->floor = core_->loop.now();
  core_->wait_read();
}

void Socket::send(std::string_view bytes) {
  CHECK(core_->unsent.empty(), "a message is being sent already");
  core_->unsent = bytes;
  core_->send_started = false;
  core_->write_some();
}

void Socket::close() {
  core_->handler = nullptr;
  core_->shut();
}

void Socket::reset() {
  if (core_->descriptor.is_open()) {
    const linger hard{1, 0};
    setsockopt(core_->descriptor.native_handle(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  close();
}

void Socket::Core::shut() {
  boost::system::error_code ignored;
  if (descriptor.is_open()) descriptor.close(ignored);
}

void Socket::Core::end(std::error_code error, Instant at) {
  SocketHandler* const last = handler;
  handler = nullptr;
  shut();
  if (last != nullptr) last->on_closed(error, at);
}

void Socket::Core::wait_read() {
  descriptor.async_wait(Descriptor::wait_read, [core = boost::intrusive_ptr<Core>(this)](
                                                   const boost::system::error_code& error) {
    if (!error && core->handler != nullptr) core->on_readable();
  });
}

void Socket::Core::on_readable() {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (!read_once()) break;
  }
  if (handler != nullptr) wait_read();
}

bool Socket::Core::read_once() {
  char* const buffer = loop.read_buffer();
  const Received received = receive(descriptor.native_handle(), buffer, AsioLoop::kReadSize);
  if (received.size < 0 && errno == EAGAIN) return false;
  // Both clocks right after the read: the stamp's age is measured here and nowhere else.
  const std::error_code error = received.size < 0 ? last_error() : std::error_code();
  const Instant now = loop.now();
  if (received.size <= 0) {
    end(error, now);
    return false;
  }
  std::optional<std::int64_t> kernel = received.stamp_real_ns;
  if (kernel) kernel = loop.clocks().shown(*kernel);
  const Stamp stamp = map_by_age(kernel, loop.clocks().real_now().ns, now, floor);
  floor = stamp.at;
  handler->on_read({buffer, static_cast<std::size_t>(received.size)}, stamp);
  // A short read emptied the socket; asking again would cost a system call to learn it.
  return handler != nullptr && static_cast<std::size_t>(received.size) == AsioLoop::kReadSize;
}

void Socket::Core::write_some() {
  const boost::intrusive_ptr<Core> keep(this);
  while (!unsent.empty()) {
    const Instant before = loop.now();
    if (!send_started) {
      send_started = true;
      floor = std::max(floor, before);
      handler->on_send_start(before);
    }
    const ssize_t n = ::send(descriptor.native_handle(), unsent.data(), unsent.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      descriptor.async_wait(Descriptor::wait_write, [keep](const boost::system::error_code& error) {
        if (!error && keep->handler != nullptr) keep->write_some();
      });
      return;
    }
    if (n < 0) {
      // Not from inside send(): the caller is not ready for an end yet.
      const std::error_code error = last_error();
      unsent = {};
      send_failed = true;
      loop.post([keep, error] { keep->end_after_reading(error); });
      return;
    }
    unsent.remove_prefix(static_cast<std::size_t>(n));
    if (unsent.empty()) handler->on_sent(before);
  }
}

/// A server may have answered and closed before it read everything: what it said is read first.
void Socket::Core::end_after_reading(std::error_code error) {
  while (handler != nullptr && read_once()) {
  }
  if (handler != nullptr) end(error, loop.now());
}

}  // namespace assay
