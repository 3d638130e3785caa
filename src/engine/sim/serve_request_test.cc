#include "engine/sim/serve_request.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kHello = R"("messages":[{"role":"user","content":"hello there, you"}])";

std::string body(std::string_view more = {}) {
  std::string out = "{" + std::string(kHello);
  if (!more.empty()) out += "," + std::string(more);
  return out + "}";
}

TEST(ServeRequest, ReadsWhatMatters) {
  const auto request = read_serve_request(
      ServeDialect::kChat, body(R"("model":"m","stream":true,"max_tokens":7,"temperature":0.1,
                                   "stream_options":{"include_usage":true}, "n":1, "stop":null)"));
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_FALSE(request->usage_in_each);
  EXPECT_EQ(request->output_tokens, 7);
  EXPECT_EQ(request->prompt_tokens, 4);  // hello there , you
}

TEST(ServeRequest, CountsAllMessagesAndTheTextPartsAmongThem) {
  const auto request = read_serve_request(ServeDialect::kChat,
                                          R"({"messages":[{"role":"system","content":"be brief"},
          {"role":"assistant","content":null},
          {"role":"user","content":[{"type":"text","text":"one two"},
                                    {"type":"image_url","image_url":{"url":"x"}},
                                    {"type":"text","text":"three"}]}]})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->prompt_tokens, 5);
  EXPECT_EQ(request->output_tokens, kServeTokensDefault);
  EXPECT_FALSE(request->stream);
}

TEST(ServeRequest, TheNewerNameOfMaxTokensWins) {
  const auto request =
      read_serve_request(ServeDialect::kChat, body(R"("max_tokens":3,"max_completion_tokens":5)"));
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->output_tokens, 5);
}

TEST(ServeRequest, PromptsMayBeTextOneTextOrTokenIds) {
  for (const auto& [prompt, tokens] : {std::pair{R"("a b c")", 3}, std::pair{R"(["a b"])", 2},
                                       std::pair{"[5, 6, 7, 8]", 4}, std::pair{R"("")", 1}}) {
    const auto request =
        read_serve_request(ServeDialect::kCompletions, R"({"prompt":)" + std::string(prompt) + "}");
    ASSERT_TRUE(request.has_value()) << prompt;
    EXPECT_EQ(request->prompt_tokens, tokens) << prompt;
  }
}

TEST(ServeRequest, LlamaCppSaysItsLengthInItsOwnWay) {
  const auto open = read_serve_request(ServeDialect::kLlamaCpp, R"({"prompt":"a","n_predict":-1})");
  ASSERT_TRUE(open.has_value());
  EXPECT_EQ(open->output_tokens, kServeTokensDefault);
  const auto told = read_serve_request(ServeDialect::kLlamaCpp,
                                       R"({"prompt":"a","n_predict":9,"max_tokens":"ignored"})");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->output_tokens, 9);
}

struct BadRequest {
  ServeDialect dialect;
  std::string body;
  std::string_view param, says;
};

TEST(ServeRequest, NamesTheFieldThatIsWrong) {
  constexpr auto kChat = ServeDialect::kChat;
  constexpr auto kText = ServeDialect::kCompletions;
  const auto table = std::to_array<BadRequest>({
      {kChat, "", "", "the body is not valid JSON"},
      {kChat, "{\"messages\":", "", "the body is not valid JSON"},
      {kChat, "[1]", "", "the body must be a JSON object, not an array"},
      {kChat, "{}", "messages", "'messages' is missing"},
      {kChat, R"({"messages":null})", "messages", "'messages' is missing"},
      {kChat, R"({"messages":"hi"})", "messages", "must be a list of objects, not a string"},
      {kChat, R"({"messages":[]})", "messages", "at least one message"},
      {kChat, R"({"messages":[7]})", "messages[0]", "must be an object, not a number"},
      {kChat, R"({"messages":[{"content":"x"}]})", "messages[0]", "'messages[0].role'"},
      {kChat, R"({"messages":[{"role":"user","content":1}]})", "messages[0].content",
       "must be a string or a list of parts, not a number"},
      {kChat, R"({"messages":[{"role":"user","content":["x"]}]})", "messages[0].content",
       "must be a list of objects"},
      {kChat, body(R"("max_tokens":0)"), "max_tokens", "must be at least 1, not 0"},
      {kChat, body(R"("max_tokens":-5)"), "max_tokens", "must be at least 1, not -5"},
      {kChat, body(R"("max_tokens":1.5)"), "max_tokens", "must be an integer"},
      {kChat, body(R"("max_tokens":"9")"), "max_tokens", "must be an integer, not a string"},
      {kChat, body(R"("max_tokens":9223372036854775807)"), "max_tokens", "lower 'max_tokens'"},
      {kChat, body(R"("max_tokens":18446744073709551615)"), "max_tokens", "must be an integer"},
      {kChat, body(R"("max_completion_tokens":0)"), "max_completion_tokens", "at least 1"},
      {kChat, body(R"("stream":"yes")"), "stream", "must be a boolean, not a string"},
      {kChat, body(R"("model":3)"), "model", "must be a string, not a number"},
      {kChat, body(R"("n":2)"), "n", "'n' must be 1"},
      {kChat, body(R"("stream_options":{"include_usage":true})"), "stream_options",
       "is for requests with \"stream\": true"},
      {kChat, body(R"("stream":true,"stream_options":[])"), "stream_options", "must be an object"},
      {kChat, body(R"("stream":true,"stream_options":{"include_usage":1})"),
       "stream_options.include_usage", "must be a boolean"},
      {kText, "{}", "prompt", "'prompt' is missing"},
      {kText, R"({"prompt":{}})", "prompt", "not an object"},
      {kText, R"({"prompt":["a","b"]})", "prompt", "must hold one prompt"},
      {kText, R"({"prompt":[]})", "prompt", "must hold one prompt"},
      {kText, R"({"prompt":[1,"b"]})", "prompt", "must hold one prompt"},
      {ServeDialect::kLlamaCpp, R"({"prompt":"a","n_predict":0})", "n_predict", "at least 1"},
  });
  for (const BadRequest& bad : table) {
    const auto request = read_serve_request(bad.dialect, bad.body);
    ASSERT_FALSE(request.has_value()) << bad.body;
    EXPECT_EQ(request.error().status, 400) << bad.body;
    EXPECT_EQ(request.error().param, bad.param) << bad.body;
    EXPECT_NE(request.error().message.find(bad.says), std::string::npos) << bad.body << "\n"
                                                                         << request.error().message;
  }
}

TEST(ServeRequest, AnErrorIsOpenAisErrorObject) {
  EXPECT_EQ(serve_error_json({.message = "say \"please\"", .param = "n"}),
            R"({"error":{"message":"say \"please\"","type":"invalid_request_error",)"
            R"("param":"n","code":null}})");
}

TEST(ServeRequest, TokenizeTakesTheThreeForms) {
  const auto vllm = read_tokenize_request(R"({"prompt":"a b"})");
  ASSERT_TRUE(vllm.has_value());
  EXPECT_EQ(vllm->text, "a b");
  EXPECT_FALSE(vllm->llama_cpp);
  const auto chat = read_tokenize_request(body());
  ASSERT_TRUE(chat.has_value());
  EXPECT_EQ(chat->text, "hello there, you\n");
  const auto llama = read_tokenize_request(R"({"content":"c"})");
  ASSERT_TRUE(llama.has_value());
  EXPECT_TRUE(llama->llama_cpp);
  EXPECT_FALSE(read_tokenize_request("{}").has_value());
  EXPECT_FALSE(read_tokenize_request(R"({"prompt":[1]})").has_value());
}

}  // namespace
}  // namespace assay
