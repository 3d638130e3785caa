#include "engine/sim/script_server.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "engine/sim/blocking_client.h"
#include "engine/sim/script.h"

namespace assay {
namespace {

std::unique_ptr<ScriptServer> serve(std::string_view yaml) {
  auto script = parse_script(yaml, "s.yaml");
  if (!script) {
    ADD_FAILURE() << script.error().front().text();
    return nullptr;
  }
  auto server = ScriptServer::start(std::move(*script));
  if (!server) ADD_FAILURE() << server.error().text();
  return server ? std::move(*server) : nullptr;
}

constexpr std::string_view kAsk =
    R"({"model":"m","stream":true,"max_tokens":3,"messages":[{"role":"user","content":"hello"}]})";

TEST(ScriptServer, PlaysRepliesInTurnOnOneConnection) {
  const auto server = serve("script: 1\nreplies: [{steps: [{event: a}]}, {steps: [{event: b}]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient client(server->port());
  for (const char* text : {"data: a", "data: b", "data: a"}) {
    client.post(kAsk);
    EXPECT_NE(client.read_until("0\r\n\r\n").find(text), std::string::npos);
  }
  const std::vector<ServedRequest> log = server->requests();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0].prompt, "hello");
  EXPECT_EQ(log[0].request_id, "r");
  EXPECT_EQ(log[2].connection, 1);
  EXPECT_EQ(log[2].in_flight, 1);
}

TEST(ScriptServer, AnswersModelsAndHealthByItself) {
  const auto server = serve("script: 1\nmodel: tiny\nreplies: [{steps: [{event: a}]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient client(server->port());
  client.send("GET /v1/models HTTP/1.1\r\n\r\n");
  EXPECT_NE(client.read_until("]}").find("\"id\":\"tiny\""), std::string::npos);
  client.send("GET /health HTTP/1.1\r\nconnection: close\r\n\r\n");
  EXPECT_TRUE(client.read_until("").ends_with("{}"));
  EXPECT_TRUE(server->requests().empty());
}

TEST(ScriptServer, AMatchGoesBeforeTheTurn) {
  const auto server = serve(R"(
script: 1
replies:
  - {steps: [{event: plain}]}
  - {match: {request_every: 2}, steps: [{event: second}]}
  - {match: {path: /v1/models}, steps: [{head: {status: 500, framing: length}}, {body: no}]}
)");
  ASSERT_NE(server, nullptr);
  BlockingClient client(server->port());
  client.post(kAsk);
  EXPECT_NE(client.read_until("0\r\n\r\n").find("plain"), std::string::npos);
  client.post(kAsk);
  EXPECT_NE(client.read_until("0\r\n\r\n").find("second"), std::string::npos);
  client.send("GET /v1/models HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read_until("no").starts_with("HTTP/1.1 500"));
}

TEST(ScriptServer, ResetsAndClosesWhereTold) {
  const auto server = serve(
      "script: 1\nconnections: [{nth: 2, do: reset}]\n"
      "replies: [{steps: [{body: x}, close]}, {steps: [{body: x}, reset]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient closed(server->port());
  closed.post(kAsk);
  EXPECT_TRUE(closed.read_until("").ends_with("1\r\nx\r\n"));
  EXPECT_EQ(closed.error(), 0);
  BlockingClient at_once(server->port());
  EXPECT_EQ(at_once.read_until(""), "");
  EXPECT_EQ(at_once.error(), ECONNRESET);
  BlockingClient later(server->port());
  later.post(kAsk);
  later.read_until("");
  EXPECT_EQ(later.error(), ECONNRESET);
}

TEST(ScriptServer, CountsWhatIsInFlight) {
  const auto server = serve(
      "script: 1\nreplies: [{match: {request: 1}, steps: [{body: x}, hang]}, {steps: [{event: "
      "a}]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient hanging(server->port());
  hanging.post(kAsk);
  hanging.read_until("x\r\n");
  BlockingClient other(server->port());
  other.post(kAsk);
  other.read_until("0\r\n\r\n");
  ASSERT_EQ(server->requests().size(), 2u);
  EXPECT_EQ(server->requests()[1].in_flight, 2);
  EXPECT_EQ(server->connections(), 2);
}

TEST(ScriptServer, RefusesWhatIsNoRequest) {
  const auto server = serve("script: 1\nreplies: [{steps: [{event: a}]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient client(server->port());
  client.send("nonsense\r\n\r\n");
  EXPECT_TRUE(client.read_until("").starts_with("HTTP/1.1 400"));
}

TEST(ScriptServer, StopsWithRepliesInFlight) {
  const auto server = serve("script: 1\nreplies: [{steps: [{body: x}, {wait: 1h}, {body: y}]}]");
  ASSERT_NE(server, nullptr);
  BlockingClient client(server->port());
  client.post(kAsk);
  client.read_until("x\r\n");
  server->stop();
  server->stop();
  EXPECT_EQ(client.read_until(""), "");
}

TEST(ScriptServer, SaysWhyItCannotListen) {
  const auto first = serve("script: 1\nreplies: [{steps: [hang]}]");
  ASSERT_NE(first, nullptr);
  const auto second = ScriptServer::start({}, {.host = "127.0.0.1", .port = first->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::kUsage);
  EXPECT_TRUE(second.error().text().starts_with("127.0.0.1:"));
  EXPECT_NE(second.error().text().find("cannot listen"), std::string::npos);
}

TEST(ServeScript, RunsUntilToldToStop) {
  auto script = parse_script("script: 1\nreplies: [{steps: [hang]}]", "s.yaml");
  ASSERT_TRUE(script);
  std::stop_source stop;
  std::string url;
  const Result<> served = serve_script(
      *script, {},
      [&](const std::string& at) {
        url = at;
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_TRUE(served);
  EXPECT_TRUE(url.starts_with("http://127.0.0.1:"));
}

}  // namespace
}  // namespace assay
