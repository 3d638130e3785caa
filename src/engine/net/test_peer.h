// The other end of a connection, for tests: a listening socket on loopback, and blocking sockets
// accepted from it. Calls that fail end the test program.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "engine/net/address.h"

namespace assay {

/// Owns one blocking descriptor.
class TestPeer {
 public:
  explicit TestPeer(int fd) : fd_(fd) { CHECK(fd_ >= 0, "errno {}", errno); }
  ~TestPeer() { close(); }
  TestPeer(TestPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TestPeer& operator=(TestPeer&&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      CHECK(n > 0, "errno {}", errno);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// At most `size` bytes; fewer only where the other end closed.
  [[nodiscard]] std::string read(std::size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t n = ::recv(fd_, bytes.data(), size, MSG_WAITALL);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }
  [[nodiscard]] std::string read_until(std::string_view end) const {
    std::string bytes;
    while (!bytes.ends_with(end)) {
      const std::string byte = read(1);
      if (byte.empty()) break;
      bytes += byte;
    }
    return bytes;
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

 private:
  int fd_;
};

class TestListener {
 public:
  TestListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
    CHECK(::listen(fd_, 64) == 0);
  }
  ~TestListener() { close(); }
  TestListener(const TestListener&) = delete;
  TestListener& operator=(const TestListener&) = delete;

  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size) == 0);
    return ntohs(bound.sin_port);
  }
  [[nodiscard]] Address address() const {
    const auto found = resolve("127.0.0.1", port());
    CHECK(found.has_value());
    return found->front();
  }
  [[nodiscard]] TestPeer accept() const { return TestPeer(::accept(fd_, nullptr, nullptr)); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

/// An address of loopback where nobody listens.
inline Address refusing_address() {
  TestListener gone;
  return gone.address();
}

}  // namespace assay
