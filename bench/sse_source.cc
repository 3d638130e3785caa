// A source of SSE streams whose send instants are known: one thread, epoll, HTTP/1.1, OpenAI chat
// chunks of about 235 bytes. It answers POST /v1/chat/completions with `--events` events (or the
// request's max_tokens), the first `--ttft` after the request, the next ones `--interval` apart,
// and notes CLOCK_MONOTONIC just before each send(). It shares no code with what it judges.
//
// The truth file: "ASAYTRU1", then per reply, in the order of their ends: u32 length of
// x-request-id, its bytes, i64 instant of the request, u32 count, count × i64 send instants, one
// per event. Little-endian, instants in nanoseconds.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text.h"
#include "options.h"

namespace assay {
namespace {

struct Options {
  std::int64_t port = 0;  // 0: any free one
  Duration ttft{500ms};
  Duration interval{50ms};
  std::int64_t events = 0;  // per reply; 0: the request's max_tokens
  std::int64_t per_segment = 1;
  std::string mode = "paced";  // or flat-out
  std::int64_t streams = 1;    // flat-out starts when so many streams are live
  Duration flat_out_for{5s};
  std::string truth;
};

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n";
constexpr std::string_view kEvent =
    R"(data: {"id":"chatcmpl-5f3c2c9be0a74d0f9d5c1f9b8a7e6d5c","object":"chat.completion.chunk",)"
    R"("created":1760000000,"model":"deepseek-ai/DeepSeek-V3","choices":[{"index":0,)"
    R"("delta":{"content":" tok"},"logprobs":null,"finish_reason":null}]})"
    "\n\n";
constexpr int kSendBuffer = 64 * 1024;    // bounds what the kernel holds for 10,000 streams
constexpr std::int64_t kSpinNs = 60'000;  // polls instead of sleeping when the next send is so near

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "sse_source: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

std::string chunk(std::string_view body) {
  return fmt::format("{:x}\r\n{}\r\n", body.size(), body);
}

/// Everything after the last token event: the reason of the end, the usage, [DONE], the last chunk.
std::string tail(std::int64_t tokens) {
  return chunk(R"(data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},)"
               R"("finish_reason":"length"}]})"
               "\n\n") +
         chunk(fmt::format(R"(data: {{"object":"chat.completion.chunk","choices":[],)"
                           R"("usage":{{"prompt_tokens":16,"completion_tokens":{},)"
                           R"("total_tokens":{}}}}})"
                           "\n\n",
                           tokens, tokens + 16)) +
         chunk("data: [DONE]\n\n") + "0\r\n\r\n";
}

std::string plain_reply(std::string_view status, std::string_view json) {
  return fmt::format(
      "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}", status,
      json.size(), json);
}

struct Request {
  std::string target;  // "POST /v1/chat/completions"
  std::string request_id;
  std::int64_t max_tokens = 16;
  std::size_t size = 0;  // of the whole request; 0: not all here yet
};

std::int64_t number_after(std::string_view text, std::string_view key, std::int64_t otherwise) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return otherwise;
  text = text.substr(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(": "), text.size()));
  return parse_int(text.substr(0, text.find_first_not_of("0123456789"))).value_or(otherwise);
}

Request parse(std::string_view buffer) {
  Request request;
  const std::size_t head_end = buffer.find("\r\n\r\n");
  if (head_end == std::string_view::npos) return request;
  std::size_t body_size = 0;
  std::string_view head = buffer.substr(0, head_end);
  request.target = head.substr(0, head.find(" HTTP/"));
  for (std::string_view line : split(head, '\n')) {
    const std::string_view value = trim(line.substr(std::min(line.find(':') + 1, line.size())));
    if (starts_with_ignoring_case(line, "content-length:")) {
      body_size = static_cast<std::size_t>(parse_int(value).value_or(0));
    } else if (starts_with_ignoring_case(line, "x-request-id:")) {
      request.request_id = value;
    }
  }
  if (buffer.size() < head_end + 4 + body_size) return request;
  request.size = head_end + 4 + body_size;
  const std::string_view body = buffer.substr(head_end + 4, body_size);
  request.max_tokens = number_after(body, "\"max_completion_tokens\"",
                                    number_after(body, "\"max_tokens\"", request.max_tokens));
  return request;
}

struct Stream {
  std::string inbox;
  std::string unsent;       // what the socket did not take
  bool live = false;        // a reply is under way
  std::uint32_t reply = 0;  // counts replies, so that a due send of an ended one is known as stale
  std::string request_id;
  std::int64_t request_ns = 0;
  std::int64_t events_left = 0;
  std::int64_t events_total = 0;
  std::vector<std::int64_t> sends;
};

class Source {
 public:
  explicit Source(const Options& options) : options_(options) {
    for (std::int64_t i = 0; i < options.per_segment; ++i) burst_ += chunk(kEvent);
    event_size_ = burst_.size() / static_cast<std::size_t>(options.per_segment);
    if (!options.truth.empty()) {
      truth_.open(options.truth, std::ios::binary);
      truth_ << "ASAYTRU1";
    }
  }

  void listen_and_tell();
  void run();

 private:
  struct Due {
    std::int64_t at = 0;
    int fd = 0;
    std::uint32_t reply = 0;
  };

  [[nodiscard]] bool paced() const { return options_.mode == "paced"; }
  void poll(int timeout_us);
  void accept_all();
  void read_from(int fd);
  void answer(int fd, const Request& request);
  void start_reply(int fd, const Request& request);
  void run_due();
  void send_burst(int fd, std::int64_t now);
  void send_at_once(int fd);
  void finish(int fd);
  void flat_out();
  bool push(int fd, std::string_view bytes);
  bool flush(int fd);
  void drop(int fd);
  void note_truth(const Stream& stream);
  [[nodiscard]] std::int64_t next_due() const;
  Stream& at(int fd) { return *streams_[static_cast<std::size_t>(fd)]; }
  [[nodiscard]] bool here(int fd) const {
    const auto index = static_cast<std::size_t>(fd);
    return index < streams_.size() && streams_[index] != nullptr;
  }
  void want_room(int fd, std::uint32_t also);

  Options options_;
  std::string burst_;
  std::size_t event_size_ = 0;
  std::ofstream truth_;
  int epoll_ = -1, listener_ = -1, signals_ = -1;
  std::vector<std::unique_ptr<Stream>> streams_;  // by descriptor
  std::vector<int> live_;                         // flat-out only
  // Every first send is `ttft` after its request and every later one `interval` after the one
  // before, so two queues are sorted by themselves.
  std::deque<Due> first_, next_;
  std::int64_t replies_ = 0, events_ = 0, full_sockets_ = 0, late_max_ns_ = 0;
  bool stopping_ = false;
};

void Source::listen_and_tell() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  must_set(listener_, SOL_SOCKET, SO_REUSEADDR, 1);
  must_set(listener_, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic{};
  std::memcpy(&generic, &address, sizeof generic);
  if (bind(listener_, &generic, sizeof address) != 0) stop("cannot bind the port");
  if (listen(listener_, 4096) != 0) stop("cannot listen");
  socklen_t size = sizeof generic;
  getsockname(listener_, &generic, &size);
  std::memcpy(&address, &generic, sizeof address);

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  signals_ = signalfd(-1, &ends, SFD_NONBLOCK);
  epoll_ = epoll_create1(0);
  for (const int fd : {listener_, signals_}) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &interest);
  }
  fmt::print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
}

std::int64_t Source::next_due() const {
  std::int64_t at = INT64_MAX;
  if (!first_.empty()) at = first_.front().at;
  if (!next_.empty()) at = std::min(at, next_.front().at);
  return at;
}

void Source::run() {
  prctl(PR_SET_TIMERSLACK, 1);
  while (!stopping_) {
    const std::int64_t due = next_due();
    const std::int64_t wait_ns = due == INT64_MAX ? 100'000'000 : due - monotonic_ns() - kSpinNs;
    poll(static_cast<int>(std::clamp<std::int64_t>(wait_ns / 1000, 0, 100'000)));
    run_due();
    if (!paced() && live_.size() >= static_cast<std::size_t>(options_.streams)) flat_out();
  }
  fmt::print(R"({{"replies":{},"events":{},"full_sockets":{},"late_max_us":{:.1f},"cpu_s":{:.6f}}})"
             "\n",
             replies_, events_, full_sockets_, static_cast<double>(late_max_ns_) / 1e3,
             to_seconds(process_cpu()));
}

void Source::poll(int timeout_us) {
  std::array<epoll_event, 256> ready;
  const timespec timeout{0, timeout_us * 1000L};
  const int count =
      epoll_pwait2(epoll_, ready.data(), static_cast<int>(ready.size()), &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<std::size_t>(i)].data.fd;
    const std::uint32_t what = ready[static_cast<std::size_t>(i)].events;
    if (fd == listener_) {
      accept_all();
    } else if (fd == signals_) {
      stopping_ = true;
    } else {
      if ((what & EPOLLOUT) != 0 && here(fd)) flush(fd);
      if ((what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && here(fd)) read_from(fd);
    }
  }
}

void Source::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) stop("out of descriptors");
    if (fd < 0) return;
    must_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    // A congestion control that paces would move the bytes after their noted instants.
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0) {
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    if (streams_.size() <= static_cast<std::size_t>(fd)) {
      streams_.resize(static_cast<std::size_t>(fd) + 1);
    }
    streams_[static_cast<std::size_t>(fd)] = std::make_unique<Stream>();
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &interest);
  }
}

void Source::read_from(int fd) {
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    drop(fd);
    return;
  }
  at(fd).inbox.append(buffer.data(), static_cast<std::size_t>(got));
  while (here(fd) && !at(fd).live) {
    const Request request = parse(at(fd).inbox);
    if (request.size == 0) return;
    at(fd).inbox.erase(0, request.size);
    answer(fd, request);
  }
}

void Source::answer(int fd, const Request& request) {
  if (request.target == "POST /v1/chat/completions") {
    start_reply(fd, request);
  } else if (request.target == "GET /v1/models") {
    push(fd,
         plain_reply("200 OK", R"({"object":"list","data":[{"id":"bench","object":"model"}]})"));
  } else if (request.target == "GET /health") {
    push(fd, plain_reply("200 OK", "{}"));
  } else {
    push(fd, plain_reply("404 Not Found", R"({"error":{"message":"no such path","code":404}})"));
  }
}

void Source::start_reply(int fd, const Request& request) {
  Stream& stream = at(fd);
  stream.live = true;
  ++stream.reply;
  stream.request_id = request.request_id;
  stream.request_ns = monotonic_ns();
  stream.events_total = options_.events > 0 ? options_.events : request.max_tokens;
  stream.events_left = stream.events_total;
  stream.sends.clear();
  if (paced() && options_.ttft == 0ns && options_.interval == 0ns) {
    send_at_once(fd);
    return;
  }
  if (!push(fd, kHead)) return;
  if (paced()) {
    first_.push_back({stream.request_ns + options_.ttft.count(), fd, stream.reply});
  } else {
    live_.push_back(fd);
  }
}

void Source::run_due() {
  // Bounded, so that new requests are read between long runs of due sends.
  for (int turn = 0; turn < 256; ++turn) {
    const std::int64_t now = monotonic_ns();
    if (next_due() > now) return;
    const bool from_first = !first_.empty() && first_.front().at == next_due();
    std::deque<Due>& queue = from_first ? first_ : next_;
    const Due due = queue.front();
    queue.pop_front();
    if (!here(due.fd) || !at(due.fd).live || at(due.fd).reply != due.reply) continue;
    late_max_ns_ = std::max(late_max_ns_, now - due.at);
    send_burst(due.fd, now);
    if (here(due.fd) && at(due.fd).live) {
      next_.push_back({due.at + options_.interval.count(), due.fd, due.reply});
    }
  }
}

void Source::send_burst(int fd, std::int64_t now) {
  Stream& stream = at(fd);
  if (!stream.unsent.empty() && !flush(fd)) return;
  const std::int64_t count = std::min(options_.per_segment, stream.events_left);
  const std::string_view bytes(burst_.data(), static_cast<std::size_t>(count) * event_size_);
  if (truth_.is_open()) {
    stream.sends.insert(stream.sends.end(), static_cast<std::size_t>(count), now);
  }
  stream.events_left -= count;
  events_ += count;
  if (!push(fd, bytes)) return;
  if (stream.events_left == 0) finish(fd);
}

void Source::send_at_once(int fd) {
  Stream& stream = at(fd);
  std::string reply(kHead);
  for (std::int64_t i = 0; i < stream.events_total; ++i) {
    reply.append(burst_, 0, event_size_);
  }
  events_ += stream.events_total;
  stream.events_left = 0;
  stream.sends.assign(static_cast<std::size_t>(stream.events_total), monotonic_ns());
  stream.live = false;
  ++replies_;
  note_truth(stream);
  push(fd, reply + tail(stream.events_total));
}

void Source::finish(int fd) {
  Stream& stream = at(fd);
  stream.live = false;
  ++replies_;
  note_truth(stream);
  push(fd, tail(stream.events_total));
}

void Source::flat_out() {
  for (const int fd : live_) at(fd).events_left = INT64_MAX;
  const std::int64_t end = monotonic_ns() + options_.flat_out_for.count();
  while (monotonic_ns() < end && !stopping_) {
    for (const int fd : live_) {
      if (here(fd)) send_burst(fd, monotonic_ns());
    }
  }
  for (const int fd : live_) {
    if (!here(fd)) continue;
    at(fd).events_total = INT64_MAX - at(fd).events_left;
    finish(fd);
  }
  live_.clear();
}

/// Sends what it can and keeps the rest. False when the stream is gone.
bool Source::push(int fd, std::string_view bytes) {
  Stream& stream = at(fd);
  if (stream.unsent.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      drop(fd);
      return false;
    }
    bytes.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
  }
  if (bytes.empty()) return true;
  if (stream.unsent.empty()) {
    ++full_sockets_;
    want_room(fd, EPOLLOUT);
  }
  stream.unsent.append(bytes);
  return true;
}

void Source::want_room(int fd, std::uint32_t also) {
  epoll_event interest{};
  interest.events = EPOLLIN | also;
  interest.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &interest);
}

/// True when nothing of this stream waits any more.
bool Source::flush(int fd) {
  Stream& stream = at(fd);
  if (stream.unsent.empty()) return true;
  const ssize_t sent = send(fd, stream.unsent.data(), stream.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) {
    drop(fd);
    return false;
  }
  stream.unsent.erase(0, sent < 0 ? 0 : static_cast<std::size_t>(sent));
  if (stream.unsent.empty()) want_room(fd, 0);
  return stream.unsent.empty();
}

void Source::drop(int fd) {
  close(fd);
  streams_[static_cast<std::size_t>(fd)].reset();
}

void Source::note_truth(const Stream& stream) {
  if (!truth_.is_open()) return;
  const auto put = [this](const auto& value) {
    truth_.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(static_cast<std::uint32_t>(stream.request_id.size()));
  truth_ << stream.request_id;
  put(stream.request_ns);
  put(static_cast<std::uint32_t>(stream.sends.size()));
  truth_.write(reinterpret_cast<const char*>(stream.sends.data()),
               static_cast<std::streamsize>(stream.sends.size() * sizeof stream.sends[0]));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  assay::Options options;
  assay::read_options(argc, argv,
                      {{"--port", &options.port},
                       {"--ttft", &options.ttft},
                       {"--interval", &options.interval},
                       {"--events", &options.events},
                       {"--per-segment", &options.per_segment},
                       {"--mode", &options.mode},
                       {"--streams", &options.streams},
                       {"--for", &options.flat_out_for},
                       {"--truth", &options.truth}});
  if ((options.mode != "paced" && options.mode != "flat-out") || options.per_segment == 0) {
    fmt::print(stderr, "--mode is paced or flat-out, and --per-segment is at least 1\n");
    return 2;
  }
  assay::raise_descriptor_limit();
  assay::Source source(options);
  source.listen_and_tell();
  source.run();
}
