#include "engine/net/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"

namespace assay {
namespace {

constexpr int kBacklog = 4096;
constexpr Duration kPauseWithoutDescriptors = 10ms;

std::uint16_t bound_port(int descriptor) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &length);
  // The port stands at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

}  // namespace

struct Listener::Core final : Watcher {
  Core(EpollLoop& l, int d, Accepted a) : loop(l), descriptor(d), accepted(std::move(a)) {}

  void on_ready(std::uint32_t /*events*/) override {
    while (descriptor >= 0) {
      const int fd = accept4(descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        accepted(fd);
      } else if (errno == EMFILE || errno == ENFILE) {
        return pause();
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  /// Out of descriptors: the kernel keeps the connections for later, and would wake us without end.
  void pause() {
    loop.change(descriptor, 0, this);
    loop.at(loop.now() + kPauseWithoutDescriptors, [self = boost::intrusive_ptr<Core>(this)] {
      if (self->descriptor >= 0) self->loop.change(self->descriptor, EPOLLIN, self);
    });
  }

  void close() {
    if (descriptor < 0) return;
    loop.unwatch(descriptor, this);
    ::close(std::exchange(descriptor, -1));
  }

  EpollLoop& loop;
  int descriptor;
  Accepted accepted;
};

Listener::Listener(boost::intrusive_ptr<Core> core, std::uint16_t port)
    : core_(std::move(core)), port_(port) {}

Listener::~Listener() { core_->close(); }

Result<std::unique_ptr<Listener>> Listener::open(EpollLoop& loop, const std::string& host,
                                                 std::uint16_t port, Accepted accepted) {
  const std::vector<Address> addresses = TRY(resolve(host, port));
  const Address& address = addresses.front();
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int one = 1;
  bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0;
  ok = ok && ::bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0;
  ok = ok && ::listen(fd, kBacklog) == 0;
  if (!ok) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) ::close(fd);
    return usage_error(fmt::format("cannot listen: {}", why), address.text,
                       "choose a free port, or 0 for any");
  }
  boost::intrusive_ptr<Core> core(new Core(loop, fd, std::move(accepted)));
  loop.watch(fd, EPOLLIN, core);
  return std::unique_ptr<Listener>(new Listener(std::move(core), bound_port(fd)));
}

}  // namespace assay
