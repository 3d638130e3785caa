#include "engine/target/open.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "domain/spec/spec.h"
#include "engine/net/test_peer.h"
#include "engine/target/target.h"

namespace assay {
namespace {

TEST(FirstModel, IsTheFirstOfTheList) {
  const Result<std::string> model =
      first_model(R"({"object":"list","data":[{"id":"deepseek-v3"},{"id":"other"}]})", "u");
  ASSERT_TRUE(model);
  EXPECT_EQ(*model, "deepseek-v3");
}

TEST(FirstModel, WithoutOneItMustBeNamed) {
  for (const char* body : {"", "{}", "[]", R"({"data":[]})", R"({"data":{}})", R"({"data":[{}]})",
                           R"({"data":["m"]})", R"({"data":[{"id":""}]})", R"({"data":[{"id":7}]})",
                           R"({"data":[{"id":"m"})", "<html></html>"}) {
    const Result<std::string> model = first_model(body, "http://h/v1/models");
    ASSERT_FALSE(model) << body;
    EXPECT_EQ(model.error().code, ExitCode::kUsage);
    EXPECT_EQ(model.error().text(),
              "http://h/v1/models: the reply names no model (name the model with --model)");
  }
}

Spec spec_for(std::string url) {
  Spec spec;
  spec.target.urls = {std::move(url)};
  spec.target.api = Api::kOpenAiChat;
  spec.target.model = "m";
  return spec;
}

/// The first request that a target for this URL would send.
std::string encoded(const Spec& spec, const std::string& key = {}) {
  const Result<OpenedTarget> opened = open_target(spec, key);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().text());
  return opened ? opened->target->encode({}) : "";
}

TEST(OpenTarget, JoinsPathAndHost) {
  const std::vector<std::vector<std::string_view>> cases = {
      {"http://127.0.0.1", "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"},
      {"http://127.0.0.1:80", "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"},
      {"http://127.0.0.1:8000/", "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n"},
      {"http://127.0.0.1:8000/v1",
       "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n"},
      {"http://[::1]:9/api/", "POST /api/v1/chat/completions HTTP/1.1\r\nhost: [::1]:9\r\n"},
      {"unix:/run/e.sock", "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(encoded(spec_for(std::string(c[0]))).starts_with(c[1])) << c[0];
  }
  Spec completions = spec_for("http://127.0.0.1");
  completions.target.api = Api::kOpenAiCompletions;
  EXPECT_TRUE(encoded(completions).starts_with("POST /v1/completions HTTP/1.1\r\n"));
}

TEST(OpenTarget, AKeyBecomesABearerTokenUnlessTheUserHasHisOwn) {
  Spec spec = spec_for("http://127.0.0.1");
  EXPECT_EQ(encoded(spec).find("authorization"), std::string::npos);
  EXPECT_NE(encoded(spec, "s3cret").find("\r\nauthorization: Bearer s3cret\r\n"),
            std::string::npos);
  spec.target.headers = {{"Authorization", "Basic b"}};
  const std::string own = encoded(spec, "s3cret");
  EXPECT_NE(own.find("\r\nAuthorization: Basic b\r\n"), std::string::npos);
  EXPECT_EQ(own.find("s3cret"), std::string::npos);
}

TEST(OpenTarget, NamesWhatMustNotBePrinted) {
  Spec spec = spec_for("http://127.0.0.1");
  spec.target.headers = {
      {"x-api-key", "hunter2"}, {"Authorization", "Bearer s3same"}, {"x-team", "perf"}};
  spec.target.body =
      R"({"user": {"access_token": "correct horse"}, "tokenizer": "auto", "top_p": 1})";
  const Result<OpenedTarget> opened = open_target(spec, "s3cret");
  ASSERT_TRUE(opened);
  const auto has = [&](std::string_view secret) {
    return std::ranges::find(opened->secrets, secret) != opened->secrets.end();
  };
  EXPECT_TRUE(has("s3cret"));
  EXPECT_TRUE(has("hunter2"));
  EXPECT_TRUE(has("s3same")) << "a server may send the key back without its scheme";
  EXPECT_FALSE(has("perf"));
  EXPECT_TRUE(has("correct horse"));
  EXPECT_FALSE(has("auto"));
}

TEST(OpenTarget, NullNeedsNoUrl) {
  Spec spec;
  spec.target.api = Api::kNull;
  const Result<OpenedTarget> opened = open_target(spec, "");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->model, "null");
}

/// Opens a target whose server answers the question for its models with `wire`.
Result<OpenedTarget> open_asking(std::string_view wire, std::string& asked) {
  const TestListener listener;
  const std::jthread server([&] {
    const TestPeer peer = listener.accept();
    asked = peer.read_until("\r\n\r\n");
    peer.write(wire);
  });
  Spec spec = spec_for(fmt::format("http://127.0.0.1:{}/api", listener.port()));
  spec.target.model = "auto";
  return open_target(spec, "k");
}

TEST(OpenTarget, AsksTheServerForItsModel) {
  std::string asked;
  const Result<OpenedTarget> opened =
      open_asking("HTTP/1.0 200 OK\r\n\r\n{\"data\":[{\"id\":\"served\"}]}", asked);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->model, "served");
  EXPECT_TRUE(asked.starts_with("GET /api/v1/models HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_NE(asked.find("\r\nauthorization: Bearer k\r\n"), std::string::npos);
}

TEST(OpenTarget, SaysWhyTheServerNamesNoModel) {
  std::string asked;
  const Result<OpenedTarget> refused = open_asking("HTTP/1.0 401 No\r\n\r\n", asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  EXPECT_EQ(refused.error().what, "the server refuses with status 401");
  EXPECT_NE(refused.error().hint.find("--api-key-env"), std::string::npos);
  const Result<OpenedTarget> none = open_asking("HTTP/1.0 404 No\r\n\r\n", asked);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "the server lists no models (status 404)");
  EXPECT_EQ(none.error().hint, "name the model with --model");
}

TEST(OpenTarget, AServerThatIsNotThereIsUnreachable) {
  Spec spec = spec_for("http://" + refusing_address().text);
  spec.target.model = "auto";
  const Result<OpenedTarget> opened = open_target(spec, "");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kUnreachable);
}

TEST(OpenTarget, ABrokenUrlIsAUsageError) {
  const Result<OpenedTarget> opened = open_target(spec_for("ftp://h"), "");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kUsage);
  EXPECT_EQ(open_target(Spec{}, "").error().code, ExitCode::kUsage);
}

}  // namespace
}  // namespace assay
