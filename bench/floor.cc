// The floor: the least that a client with kernel receive stamps can do. Opens N connections, sends
// one prebuilt request on each, and reads every reply to its end with epoll + recvmsg +
// SO_TIMESTAMPNS, looking at nothing but the stamp and the last bytes of each read. What assay
// costs is told as a multiple of this. Prints one JSON object.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace assay {
namespace {

struct Options {
  std::int64_t port = 0;
  std::int64_t streams = 1000;
  std::int64_t events = 100;  // max_tokens of each request
};

struct Totals {
  std::int64_t bytes = 0;
  std::int64_t reads = 0;
  std::int64_t stamps = 0;
  std::int64_t last_stamp_ns = 0;
  std::int64_t broken = 0;
};

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "floor: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

int connect_to(std::int64_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) stop("no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic{};
  std::memcpy(&generic, &address, sizeof generic);
  if (connect(fd, &generic, sizeof address) != 0) stop("no connection");
  must_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  must_set(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  return fd;
}

std::string request(std::int64_t index, std::int64_t events) {
  const std::string body = fmt::format(
      R"({{"model":"m","stream":true,"max_tokens":{},"messages":[{{"role":"user","content":"hi"}}]}})",
      events);
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-request-id: floor-{}\r\n"
      "content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
      index, body.size(), body);
}

/// One read. True while the reply goes on.
bool read_once(int fd, std::string& buffer, Totals& totals) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(timespec))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) {
    ++totals.broken;
    return false;
  }
  totals.bytes += got;
  ++totals.reads;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_TIMESTAMPNS) {
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
    totals.last_stamp_ns = std::int64_t{stamp.tv_sec} * 1'000'000'000 + stamp.tv_nsec;
    ++totals.stamps;
  }
  return !std::string_view(buffer.data(), static_cast<std::size_t>(got)).ends_with("\r\n0\r\n\r\n");
}

void read_all(int epoll, std::int64_t live, Totals& totals) {
  std::string buffer(64 * 1024, '\0');
  std::array<epoll_event, 512> ready;
  while (live > 0) {
    const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), 30'000);
    if (count == 0) {
      errno = ETIMEDOUT;
      stop("nothing came for 30 s");
    }
    for (int i = 0; i < count; ++i) {
      const int fd = ready[static_cast<std::size_t>(i)].data.fd;
      if (read_once(fd, buffer, totals)) continue;
      epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
      --live;
    }
  }
}

int run(const Options& options) {
  raise_descriptor_limit();
  const int epoll = epoll_create1(0);
  std::vector<int> sockets;
  std::vector<std::string> requests;
  for (std::int64_t i = 0; i < options.streams; ++i) {
    sockets.push_back(connect_to(options.port));
    requests.push_back(request(i, options.events));
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = sockets.back();
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, sockets.back(), &interest) != 0) stop("epoll");
  }
  const Duration cpu_before = process_cpu();
  const std::int64_t start_ns = monotonic_ns();
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const ssize_t sent = send(sockets[i], requests[i].data(), requests[i].size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(requests[i].size())) stop("a request was not taken whole");
  }
  Totals totals;
  read_all(epoll, options.streams, totals);
  fmt::print(R"({{"cpu_s":{:.6f},"wall_s":{:.6f},"bytes":{},"reads":{},"stamps":{},"broken":{}}})"
             "\n",
             to_seconds(process_cpu() - cpu_before),
             static_cast<double>(monotonic_ns() - start_ns) / 1e9, totals.bytes, totals.reads,
             totals.stamps, totals.broken);
  return totals.broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  assay::Options options;
  assay::read_options(
      argc, argv,
      {{"--port", &options.port}, {"--streams", &options.streams}, {"--events", &options.events}});
  return assay::run(options);
}
