#include "engine/net/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/http_response.h"
#include "engine/net/socket.h"
#include "engine/net/stamp.h"

namespace assay {
namespace {

class OneExchange final : private SocketHandler, private HttpResponseSink {
 public:
  OneExchange(const Address& address, std::string_view request)
      : address_(address), request_(request) {}

  Result<HttpReply> run(Duration within) {
    SocketHandler& handler = *this;
    Socket socket(loop_, handler);
    socket_ = &socket;
    loop_.at(loop_.now() + within, [this, within] {
      give_up(fmt::format("no whole reply within {}", format_duration(within)));
    });
    socket.connect(address_);
    loop_.run();
    if (!error_) return reply_;
    return fail(
        {ExitCode::kUnreachable, *error_, address_.text, "start the server, or correct the URL"});
  }

 private:
  void give_up(std::string why) {
    error_ = std::move(why);
    loop_.stop();
  }

  void on_connect(std::error_code error) override {
    if (error) return give_up(error.message());
    socket_->send(request_);
  }
  void on_send_start(Instant /*at*/) override {}
  void on_sent(Instant /*at*/) override {}

  void on_read(std::string_view bytes, const Stamp& /*stamp*/) override {
    const bool ok = decoder_.feed(bytes, *this);
    if (decoder_.complete()) return loop_.stop();
    if (!ok) give_up(fmt::format("no HTTP reply: {}", decoder_.error()));
  }

  void on_closed(std::error_code error, Instant /*at*/) override {
    if (!error && decoder_.finish(*this)) return loop_.stop();
    give_up(error ? error.message() : decoder_.error());
  }

  void on_head(const HttpHead& head) override { reply_.status = head.status; }
  void on_body(std::string_view bytes) override {
    reply_.body.append(
        bytes.substr(0, kHttpReplyMax - std::min(kHttpReplyMax, reply_.body.size())));
  }
  void on_message_end() override {}

  const Address& address_;
  std::string_view request_;
  EpollLoop loop_;
  Socket* socket_ = nullptr;
  HttpResponseDecoder decoder_;
  HttpReply reply_;
  std::optional<std::string> error_;
};

}  // namespace

Result<HttpReply> http_exchange(const std::vector<Address>& addresses, std::string_view request,
                                Duration within) {
  Result<HttpReply> last =
      fail({ExitCode::kUnreachable, "no address to connect to", "", "give a URL"});
  for (const Address& address : addresses) {
    last = OneExchange(address, request).run(within);
    if (last) break;
  }
  return last;
}

}  // namespace assay
