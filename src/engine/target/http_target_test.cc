#include "engine/target/http_target.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/core/result.h"
#include "base/core/version.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/test_peer.h"
#include "engine/target/target.h"

namespace assay {
namespace {

HttpTargetOptions options() {
  HttpTargetOptions o;
  o.addresses = {refusing_address()};
  o.host = "engine:8000";
  o.path = "/v1/completions";
  o.headers = {{"authorization", "Bearer k"}, {"x-team", "perf"}};
  o.request.chat = o.request.exact_output = false;
  o.request.model = "m";
  return o;
}

TEST(HttpTarget, EncodesAWholeRequest) {
  const auto target = HttpTarget::create(options());
  ASSERT_TRUE(target);
  const std::string body =
      R"({"model":"m","prompt":"hi","max_tokens":16,"temperature":0,"stream":true,)"
      R"("stream_options":{"include_usage":true}})";
  EXPECT_EQ((*target)->encode({.prompt = "hi", .tokens_output = 16, .request_id = "r-1"}),
            "POST /v1/completions HTTP/1.1\r\n"
            "host: engine:8000\r\n"
            "user-agent: assay/" +
                std::string(version_number()) +
                "\r\n"
                "content-type: application/json\r\n"
                "accept: text/event-stream\r\n"
                "accept-encoding: identity\r\n"
                "authorization: Bearer k\r\n"
                "x-team: perf\r\n"
                "x-request-id: r-1\r\n"
                "content-length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
}

TEST(HttpTarget, AnUnstreamedRequestAcceptsJson) {
  HttpTargetOptions o = options();
  o.request.stream = false;
  const auto target = HttpTarget::create(std::move(o));
  ASSERT_TRUE(target);
  EXPECT_NE((*target)->encode({}).find("\r\naccept: application/json\r\n"), std::string::npos);
}

TEST(HttpTarget, KnowsTheUsersChoicesAndRefusesABrokenBody) {
  HttpTargetOptions three = options();
  three.request.body = R"({"n":3})";
  const auto target = HttpTarget::create(std::move(three));
  ASSERT_TRUE(target);
  EXPECT_EQ((*target)->choices(), 3);
  HttpTargetOptions broken = options();
  broken.request.body = "n=3";
  const auto refused = HttpTarget::create(std::move(broken));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
}

TEST(HttpTarget, ARefusedChannelLeavesNothingBehind) {
  const auto target = HttpTarget::create(options());
  ASSERT_TRUE(target);
  EpollLoop loop;
  const std::unique_ptr<Channel> one = (*target)->channel(loop);
  const std::unique_ptr<Channel> two = (*target)->channel(loop);
  int refused = 0;
  for (Channel* channel : {one.get(), two.get()}) {
    channel->open([&](const OpenResult& result) { refused += result.ok ? 0 : 1; });
  }
  loop.run();  // ends by itself: no timer and no socket is left behind
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace assay
