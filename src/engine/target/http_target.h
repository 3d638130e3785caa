// Target over HTTP/1.1: one POST per request, the reply an event stream (or, unasked, one JSON
// object). A connection is reused after each reply that ended well; after [DONE] the body has 100
// ms to end, then the connection is given up. Redirects are not followed. Channels live on an
// EpollLoop.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "engine/net/address.h"
#include "engine/target/openai.h"
#include "engine/target/target.h"

namespace assay {

struct HttpTargetOptions {
  std::vector<Address> addresses;                            // tried in this order, at least one
  std::string host;                                          // Host header
  std::string path;                                          // "/v1/chat/completions"
  std::vector<std::pair<std::string, std::string>> headers;  // the user's, authorization included
  OpenAiRequestOptions request;
};

class HttpTarget final : public Target {
 public:
  static Result<std::unique_ptr<HttpTarget>> create(HttpTargetOptions options);

  [[nodiscard]] std::string encode(const RequestPlan& plan) const override;
  /// `loop` must be an EpollLoop.
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override;
  [[nodiscard]] int choices() const override { return body_.choices(); }

 private:
  HttpTarget(HttpTargetOptions options, OpenAiBody body);

  HttpTargetOptions options_;
  OpenAiBody body_;
  std::string head_;  // up to the request id
  std::mutex mutex_;  // guards decoders_: workers ask for their first channel at the same time
  std::map<const Loop*, std::unique_ptr<OpenAiDecoder>> decoders_;
};

}  // namespace assay
