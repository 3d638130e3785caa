#include "engine/net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/core/check.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/stamp.h"

namespace assay {
namespace {

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

struct Socket::Core final : Watcher {
  Core(EpollLoop& l, SocketHandler& h) : loop(l), handler(&h) {}
  ~Core() override { shut(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  enum class State : std::uint8_t { kIdle, kConnecting, kOpen };

  void open(int fd, State with, std::uint32_t events);
  void on_ready(std::uint32_t events) override;
  void finish_connect();
  void fail_connect(std::error_code error);
  /// True: there may be more to read. False: the socket is empty for now, or at its end.
  bool read_once();
  void end_after_reading(std::error_code error);
  void write_some();
  void end(std::error_code error, Instant at);
  void shut();

  EpollLoop& loop;
  SocketHandler* handler;  // null once closed
  int descriptor = -1;
  State state = State::kIdle;
  std::string_view unsent;
  Instant floor{};  // no stamp of this socket may lie before it
  bool send_started = false;
  bool send_failed = false;
  bool waits_for_room = false;
};

Socket::Socket(EpollLoop& loop, SocketHandler& handler) : core_(new Core(loop, handler)) {}

Socket::~Socket() { close(); }

bool Socket::open() const {
  return core_->handler != nullptr && core_->descriptor >= 0 && !core_->send_failed;
}

void Socket::Core::open(int fd, State with, std::uint32_t events) {
  descriptor = fd;
  state = with;
  switch_on(fd, SOL_SOCKET, SO_TIMESTAMPNS);
  switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
  loop.watch(fd, events, this);
}

void Socket::connect(const Address& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return core_->fail_connect(last_error());
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (rc != 0 && errno != EINPROGRESS) {
    const std::error_code error = last_error();
    ::close(fd);
    return core_->fail_connect(error);
  }
  core_->open(fd, Core::State::kConnecting, EPOLLOUT);
}

void Socket::Core::fail_connect(std::error_code error) {
  // Not from inside connect(): the caller is not ready for an answer yet.
  loop.post([core = boost::intrusive_ptr<Core>(this), error] {
    if (core->handler != nullptr) core->handler->on_connect(error);
  });
}

void Socket::adopt(int descriptor) {
  core_->open(descriptor, Core::State::kOpen, EPOLLIN);
  core_->floor = core_->loop.now();
}

void Socket::Core::on_ready(std::uint32_t events) {
  if (handler == nullptr) return;
  if (state == State::kConnecting) return finish_connect();
  if ((events & EPOLLOUT) != 0 && waits_for_room) {
    write_some();
    if (handler == nullptr) return;
  }
  // One read a turn: what is left wakes us again, and no fast stream keeps the others waiting.
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read_once();
}

void Socket::Core::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  floor = loop.now();
  if (error == 0) {
    state = State::kOpen;
    loop.change(descriptor, EPOLLIN, this);
  } else {
    shut();
  }
  handler->on_connect({error, std::generic_category()});
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
  if (core_->descriptor >= 0) {
    const linger hard{1, 0};
    setsockopt(core_->descriptor, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  close();
}

void Socket::Core::shut() {
  if (descriptor < 0) return;
  loop.unwatch(descriptor, this);
  ::close(std::exchange(descriptor, -1));
}

void Socket::Core::end(std::error_code error, Instant at) {
  SocketHandler* const last = handler;
  handler = nullptr;
  shut();
  if (last != nullptr) last->on_closed(error, at);
}

bool Socket::Core::read_once() {
  char* const buffer = loop.read_buffer();
  const Received received = receive(descriptor, buffer, EpollLoop::kReadSize);
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
  Stamp stamp = map_by_age(kernel, loop.clocks().real_now().ns, now, floor);
  floor = stamp.at;
  stamp.at += loop.clocks().late_stamps();
  handler->on_read({buffer, static_cast<std::size_t>(received.size)}, stamp);
  return handler != nullptr;
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
    const ssize_t n = ::send(descriptor, unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (!waits_for_room) loop.change(descriptor, EPOLLIN | EPOLLOUT, this);
      waits_for_room = true;
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
    if (!unsent.empty()) continue;
    if (waits_for_room) loop.change(descriptor, EPOLLIN, this);
    waits_for_room = false;
    handler->on_sent(before);
  }
}

/// A server may have answered and closed before it read everything: what it said is read first.
void Socket::Core::end_after_reading(std::error_code error) {
  while (handler != nullptr && read_once()) {
  }
  if (handler != nullptr) end(error, loop.now());
}

}  // namespace assay
