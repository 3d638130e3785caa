#include "engine/target/http_target.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/core/check.h"
#include "base/core/result.h"
#include "base/core/version.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/loop.h"
#include "engine/target/http_channel.h"
#include "engine/target/openai.h"
#include "engine/target/target.h"

namespace assay {

Result<std::unique_ptr<HttpTarget>> HttpTarget::create(HttpTargetOptions options) {
  CHECK(!options.addresses.empty());
  OpenAiBody body = TRY(OpenAiBody::create(options.request));
  return std::unique_ptr<HttpTarget>(new HttpTarget(std::move(options), std::move(body)));
}

HttpTarget::HttpTarget(HttpTargetOptions options, OpenAiBody body)
    : options_(std::move(options)), body_(std::move(body)) {
  head_ = fmt::format(
      "POST {} HTTP/1.1\r\n"
      "host: {}\r\n"
      "user-agent: assay/{}\r\n"
      "content-type: application/json\r\n"
      "accept: {}\r\n"
      "accept-encoding: identity\r\n",
      options_.path, options_.host, version_number(),
      options_.request.stream ? "text/event-stream" : "application/json");
  for (const auto& [name, value] : options_.headers)
    head_ += fmt::format("{}: {}\r\n", name, value);
}

std::string HttpTarget::encode(const RequestPlan& plan) const {
  const std::string body = body_.fill(plan.prompt, plan.tokens_output);
  std::string wire;
  wire.reserve(head_.size() + body.size() + 96);
  wire += head_;
  wire +=
      fmt::format("x-request-id: {}\r\ncontent-length: {}\r\n\r\n", plan.request_id, body.size());
  wire += body;
  return wire;
}

std::unique_ptr<Channel> HttpTarget::channel(Loop& loop) {
  auto* const epoll_loop = dynamic_cast<EpollLoop*>(&loop);
  CHECK(epoll_loop != nullptr, "an HTTP channel needs a loop with sockets");
  OpenAiDecoder* decoder = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<OpenAiDecoder>& slot = decoders_[&loop];
    if (!slot) slot = std::make_unique<OpenAiDecoder>();
    decoder = slot.get();
  }
  return std::make_unique<internal::HttpChannel>(*epoll_loop, options_.addresses, *decoder);
}

}  // namespace assay
