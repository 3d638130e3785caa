// A blocking HTTP client for tests of servers: it shares nothing with the code under test, and
// gives up after five seconds of silence.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

class BlockingClient {
 public:
  explicit BlockingClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~BlockingClient() { close(fd_); }
  BlockingClient(const BlockingClient&) = delete;
  BlockingClient& operator=(const BlockingClient&) = delete;

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void post(std::string_view body, std::string_view path = "/v1/chat/completions") {
    send("POST " + std::string(path) + " HTTP/1.1\r\nx-request-id: r\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  /// Everything up to and with `end`, or up to the end of the connection.
  std::string read_until(std::string_view end) {
    std::string all;
    std::array<char, 4096> buffer;
    while (!all.ends_with(end) || end.empty()) {
      const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
      error_ = got < 0 ? errno : 0;
      if (got <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
};

}  // namespace assay
