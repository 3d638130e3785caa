#include "engine/sim/http_request.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
namespace {

/// All requests of `wire`, fed in two parts that meet at `cut`.
std::vector<HttpRequest> read_torn(std::string_view wire, std::size_t cut, int* refused) {
  HttpRequestReader reader;
  std::vector<HttpRequest> requests;
  for (const std::string_view part : {wire.substr(0, cut), wire.substr(cut)}) {
    reader.feed(part);
    while (std::optional<HttpRequest> request = reader.next()) requests.push_back(*request);
  }
  *refused = reader.refused();
  return requests;
}

std::vector<HttpRequest> read_bytewise(std::string_view wire, int* refused) {
  HttpRequestReader reader;
  std::vector<HttpRequest> requests;
  for (const char& c : wire) {
    reader.feed({&c, 1});
    while (std::optional<HttpRequest> request = reader.next()) requests.push_back(*request);
  }
  *refused = reader.refused();
  return requests;
}

constexpr std::string_view kThree =
    "\r\nPOST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Request-ID:  r-1 \r\n"
    "Content-Length: 5\r\n\r\nhello"
    "GET /health HTTP/1.1\nhost: a\n\n"
    "POST /x HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n"
    "4;ext=1\r\nab\r\n\r\nA\r\n0123456789\r\n0\r\ntrailer: t\r\n\r\n";

void expect_three(const std::vector<HttpRequest>& requests) {
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].target, "/v1/chat/completions");
  EXPECT_EQ(requests[0].header("x-request-id"), "r-1");
  EXPECT_EQ(requests[0].body, "hello");
  EXPECT_TRUE(requests[0].keep_alive);
  EXPECT_EQ(requests[1].method, "GET");
  EXPECT_EQ(requests[1].body, "");
  EXPECT_EQ(requests[2].body, "ab\r\n0123456789");
}

TEST(HttpRequestReader, ReadsTheSameHoweverTheBytesAreTorn) {
  int refused = 0;
  for (std::size_t cut = 0; cut <= kThree.size(); ++cut) {
    SCOPED_TRACE(cut);
    expect_three(read_torn(kThree, cut, &refused));
    EXPECT_EQ(refused, 0);
  }
  expect_three(read_bytewise(kThree, &refused));
}

TEST(HttpRequestReader, WaitsForTheWholeBody) {
  HttpRequestReader reader;
  reader.feed("POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nab");
  EXPECT_FALSE(reader.next());
  reader.feed("c");
  const std::optional<HttpRequest> request = reader.next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->body, "abc");
}

TEST(HttpRequestReader, KnowsWhetherTheConnectionGoesOn) {
  const auto keeps = [](std::string_view wire) {
    HttpRequestReader reader;
    reader.feed(wire);
    const std::optional<HttpRequest> request = reader.next();
    return request && request->keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
}

int refusal(std::string_view wire) {
  int whole = 0;
  int bytewise = 0;
  read_torn(wire, 0, &whole);
  read_bytewise(wire, &bytewise);
  EXPECT_EQ(whole, bytewise) << wire.substr(0, 80);
  return whole;
}

TEST(HttpRequestReader, RefusesWhatIsNoRequest) {
  EXPECT_EQ(refusal("hello\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET /\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/2.0\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nbad name: x\r\n\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ncontent-length: 1e3\r\n\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n"), 501);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n"), 400);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
            400);
}

TEST(HttpRequestReader, RefusesWhatIsOverItsBounds) {
  const std::string long_head =
      "GET / HTTP/1.1\r\nx: " + std::string(HttpRequestReader::kHeadMax, 'a');
  EXPECT_EQ(refusal(long_head), 431);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n"), 413);
  EXPECT_EQ(refusal("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4000001\r\n"), 413);
}

}  // namespace
}  // namespace assay
