#include "engine/net/http_exchange.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/test_peer.h"

namespace assay {
namespace {

constexpr std::string_view kRequest = "GET /v1/models HTTP/1.1\r\nhost: h\r\n\r\n";
constexpr Duration kLong = 1min;

/// Asks a server that answers every request with `wire` and closes.
Result<HttpReply> exchange_with(std::string_view wire) {
  TestListener listener;
  std::string asked;
  const Result<HttpReply> reply = [&] {
    const std::jthread server([&] {
      const TestPeer peer = listener.accept();
      asked = peer.read_until("\r\n\r\n");
      peer.write(wire);
    });
    return http_exchange({listener.address()}, kRequest, kLong);
  }();
  EXPECT_EQ(asked, kRequest);
  return reply;
}

TEST(HttpExchange, BringsStatusAndBody) {
  const Result<HttpReply> reply =
      exchange_with("HTTP/1.1 404 No\r\ncontent-length: 5\r\n\r\nnever");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 404);
  EXPECT_EQ(reply->body, "never");
}

TEST(HttpExchange, TakesABodyThatEndsWithTheConnection) {
  const Result<HttpReply> reply = exchange_with("HTTP/1.0 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, "all of it");
}

TEST(HttpExchange, ABodyOverTheBoundIsCut) {
  const Result<HttpReply> reply =
      exchange_with("HTTP/1.0 200 OK\r\n\r\n" + std::string(kHttpReplyMax + 10, 'x'));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body.size(), kHttpReplyMax);
}

TEST(HttpExchange, AReplyCutShortIsNone) {
  const Result<HttpReply> reply = exchange_with("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ExitCode::kUnreachable);
  EXPECT_EQ(reply.error().what, "the connection closed inside the response");
}

TEST(HttpExchange, WhatIsNotHttpIsSaidSo) {
  const Result<HttpReply> reply = exchange_with("SSH-2.0-x\r\n");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().what, "no HTTP reply: no HTTP/1.1 status line: 'SSH-2.0-x'");
}

TEST(HttpExchange, ARefusedConnectionNamesTheAddress) {
  const Address nobody = refusing_address();
  const Result<HttpReply> reply = http_exchange({nobody}, kRequest, kLong);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ExitCode::kUnreachable);
  EXPECT_EQ(reply.error().where, nobody.text);
  EXPECT_EQ(reply.error().what, "Connection refused");
}

TEST(HttpExchange, TheNextAddressIsTriedWhereOneRefuses) {
  const TestListener listener;
  const std::jthread server([&] {
    const TestPeer peer = listener.accept();
    EXPECT_EQ(peer.read_until("\r\n\r\n"), kRequest);
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  const Result<HttpReply> reply =
      http_exchange({refusing_address(), listener.address()}, kRequest, kLong);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, "ok");
}

TEST(HttpExchange, ASilentServerIsGivenUp) {
  const TestListener listener;
  const Result<HttpReply> reply = http_exchange({listener.address()}, kRequest, 2ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().what, "no whole reply within 2ms");
}

TEST(HttpExchange, WithoutAnAddressThereIsNoReply) {
  EXPECT_FALSE(http_exchange({}, kRequest, kLong));
}

}  // namespace
}  // namespace assay
