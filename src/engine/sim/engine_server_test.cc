#include "engine/sim/engine_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "base/core/text.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"
#include "domain/ledger/test_folder.h"
#include "engine/sim/blocking_client.h"
#include "engine/sim/sim_spec.h"

namespace assay {
namespace {

constexpr std::string_view kFast = "servers: 8\n  ttft: 1ms\n  gap: 10us";
constexpr std::string_view kBodyEnd = "\r\n0\r\n\r\n";

std::string chat(std::string_view more = R"("stream":true,"max_tokens":3)") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"one two"}}],{}}})", more);
}

class EngineServerTest : public testing::Test {
 protected:
  /// `sim` is what stands below `sim:` in a spec file.
  void serve(std::string_view sim, EngineServeOptions options = {}) {
    const auto no_files = [](const std::string& path) -> Result<std::string> {
      return usage_error("no files here", path, "none");
    };
    const auto spec = resolve_sim_spec(
        {.yaml = fmt::format("sim:\n  {}\n", sim), .path = "t", .flags = {}}, no_files);
    ASSERT_TRUE(spec.has_value()) << spec.error().front().text();
    auto server = EngineServer::start(*spec, options);
    ASSERT_TRUE(server.has_value()) << server.error().text();
    server_ = std::move(*server);
  }
  void serve_with_ledger(std::string_view sim, int threads = 1) {
    EngineServeOptions options;
    options.ledger = folder_.file("truth.assay");
    options.threads = threads;
    serve(sim, options);
  }
  /// Stops, and reads what the server wrote down, by request id.
  std::map<std::string, RequestRecord> stopped(Duration grace = EngineServer::kGrace) {
    const Result<> end = server_->stop(grace);
    EXPECT_TRUE(end.has_value());
    Result<Ledger> ledger = read_ledger(folder_.file("truth.assay"));
    EXPECT_TRUE(ledger.has_value());
    std::map<std::string, RequestRecord> records;
    if (!ledger) return records;
    EXPECT_EQ(ledger->meta_or(meta::kState), "complete");
    for (RequestRecord& record : ledger->requests) {
      const std::string id = record.request_id;
      EXPECT_TRUE(records.emplace(id, std::move(record)).second) << id << " twice";
    }
    return records;
  }
  /// One request and its reply, on a connection of its own.
  std::string asked(std::string_view body, std::string_view path = "/v1/chat/completions") {
    BlockingClient one(server_->port());
    one.send(
        fmt::format("POST {} HTTP/1.1\r\nconnection: close\r\nx-request-id: r\r\n"
                    "content-length: {}\r\n\r\n{}",
                    path, body.size(), body));
    return one.read_until("");
  }
  std::string got(std::string_view path) {
    BlockingClient one(server_->port());
    one.send(fmt::format("GET {} HTTP/1.1\r\nconnection: close\r\n\r\n", path));
    return one.read_until("");
  }

  internal::TestFolder folder_;
  std::unique_ptr<EngineServer> server_;
};

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; ++count) {
    at = text.find(what, at + what.size());
  }
  return count;
}

TEST_F(EngineServerTest, StreamsExactlyMaxTokens) {
  serve(kFast);
  const std::string reply = asked(chat(R"("stream":true,"max_tokens":40)"));
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(reply.find("x-request-id: r\r\n"), std::string::npos);
  EXPECT_EQ(count_of(reply, R"("delta":{"content":" )"), 40u);
  EXPECT_EQ(count_of(reply, R"("role":"assistant")"), 1u);
  EXPECT_EQ(count_of(reply, R"("finish_reason":"length")"), 1u);
  EXPECT_EQ(count_of(reply, "usage"), 0u);
  EXPECT_NE(reply.find("data: [DONE]\n\n\r\n0\r\n\r\n"), std::string::npos);
}

TEST_F(EngineServerTest, AnswersWholeAndInOtherDialects) {
  serve(kFast);
  const std::string whole = asked(chat(R"("max_tokens":4)"));
  EXPECT_NE(whole.find("content-type: application/json\r\n"), std::string::npos);
  EXPECT_NE(whole.find(R"("usage":{"prompt_tokens":2,"completion_tokens":4,"total_tokens":6})"),
            std::string::npos);
  const std::string text = asked(R"({"prompt":"a b c","max_tokens":2,"stream":true,
                                     "stream_options":{"include_usage":true}})",
                                 "/v1/completions");
  EXPECT_EQ(count_of(text, R"("text":" )"), 2u);
  EXPECT_NE(text.find(R"("prompt_tokens":3,"completion_tokens":2)"), std::string::npos);
  const std::string llama = asked(R"({"prompt":"a","n_predict":2,"stream":true})", "/completion");
  EXPECT_EQ(count_of(llama, R"("content":" )"), 2u);
  EXPECT_NE(llama.find(R"("stop":true)"), std::string::npos);
}

TEST_F(EngineServerTest, OldClientsGetABodyThatTheCloseEnds) {
  serve(kFast);
  BlockingClient old(server_->port());
  const std::string body = chat();
  old.send(fmt::format("POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{}",
                       body.size(), body));
  const std::string reply = old.read_until("");
  EXPECT_TRUE(reply.ends_with("data: [DONE]\n\n")) << reply;
}

TEST_F(EngineServerTest, OtherPages) {
  serve("model: tiny");
  EXPECT_NE(got("/v1/models").find(R"("id":"tiny")"), std::string::npos);
  EXPECT_TRUE(got("/health").starts_with("HTTP/1.1 200 "));
  EXPECT_NE(asked(R"({"prompt":"a b"})", "/tokenize").find(R"({"count":2,)"), std::string::npos);
  EXPECT_TRUE(got("/nowhere").ends_with(R"({"detail":"Not Found"})"));
  const std::string wrong = got("/v1/completions?x=1");
  EXPECT_TRUE(wrong.starts_with("HTTP/1.1 405 "));
  EXPECT_NE(wrong.find("allow: POST\r\n"), std::string::npos);
}

TEST_F(EngineServerTest, RefusesWhatIsWrong) {
  EngineServeOptions strict;
  strict.models = EngineServeOptions::Models::kStrict;
  serve("model: tiny", strict);
  const std::string bad = asked("{");
  EXPECT_TRUE(bad.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_NE(bad.find(R"("type":"invalid_request_error")"), std::string::npos);
  EXPECT_TRUE(asked(chat(R"("model":"huge")")).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(asked(chat(R"("model":"tiny")")).starts_with("HTTP/1.1 200 "));
  BlockingClient large(server_->port());
  large.send("POST /v1/completions HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n");
  EXPECT_TRUE(large.read_until("").starts_with("HTTP/1.1 413 "));
  BlockingClient noise(server_->port());
  noise.send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_TRUE(noise.read_until("").starts_with("HTTP/1.1 400 "));
}

TEST_F(EngineServerTest, RequestsThatComeEarlyAreAnsweredInTurn) {
  serve_with_ledger(kFast);
  BlockingClient early(server_->port());
  const std::string body = chat();
  const std::string post = fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{}", body.size(), body);
  std::string all;
  for (int i = 0; i < 200; ++i) all += "GET /health HTTP/1.1\r\n\r\n";
  early.send(post + all + post + "GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n");
  const std::string replies = early.read_until("");
  EXPECT_EQ(count_of(replies, R"({"status":"ok"})"), 200u);
  EXPECT_EQ(count_of(replies, "data: [DONE]"), 2u);
  EXPECT_TRUE(replies.ends_with("]}"));
  const auto records = stopped();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records.at("sim-0").reused);
  EXPECT_TRUE(records.at("sim-1").reused);
}

TEST_F(EngineServerTest, AFullQueueRefusesAndSaysWhenToComeBack) {
  serve_with_ledger(
      "servers: 1\n  ttft: 100s\n  queue: 0\n"
      "  refuse: {status: 429, retry_after: 1500ms}");
  BlockingClient first(server_->port());
  first.post(chat());
  while (got("/metrics").find("vllm:num_requests_running{engine=\"0\",model_name=\"sim\"} 1\n") ==
         std::string::npos) {
  }
  const std::string refused = asked(chat());
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_NE(refused.find("retry-after: 2\r\n"), std::string::npos);
  EXPECT_NE(refused.find(R"("code":"queue_full")"), std::string::npos);
}

struct FaultCase {
  std::string_view fault;
  std::string_view end;  // of what the client sees
  Outcome outcome;
};

TEST_F(EngineServerTest, FaultsAreSeenOnTheWireAndInTheLedger) {
  for (const FaultCase& c : {
           FaultCase{"do: http_error", R"("code":"unavailable"}})", Outcome::kHttpError},
           FaultCase{"do: error_object, after: 2",
                     R"("code":"internal_error"}})"
                     "\n\n\r\n0\r\n\r\n",
                     Outcome::kStreamError},
           FaultCase{"do: error_string, after: 2", "as asked\"}\n\n\r\n0\r\n\r\n",
                     Outcome::kStreamError},
           FaultCase{"do: error_event, after: 2",
                     R"("code":"internal_error"}})"
                     "\n\n\r\n0\r\n\r\n",
                     Outcome::kStreamError},
           FaultCase{"do: close, after: 2", "\n\n\r\n", Outcome::kTruncated},
           FaultCase{"do: missing_end", "\"finish_reason\":null}]}\n\n\r\n0\r\n\r\n",
                     Outcome::kTruncated},
           FaultCase{"do: malformed, after: 1", "data: [DONE]\n\n\r\n0\r\n\r\n", Outcome::kOk},
           FaultCase{"do: slow_loris, pause: 1us", "data: [DONE]\n\n\r\n0\r\n\r\n", Outcome::kOk},
           FaultCase{"do: comments", "data: [DONE]\n\n\r\n0\r\n\r\n", Outcome::kOk},
           FaultCase{"do: crlf", "data: [DONE]\r\n\r\n\r\n0\r\n\r\n", Outcome::kOk},
           FaultCase{"do: split_utf8", "data: [DONE]\n\n\r\n0\r\n\r\n", Outcome::kOk},
       }) {
    SCOPED_TRACE(c.fault);
    EngineServeOptions options;
    const internal::TestFolder folder;
    options.ledger = folder.file("truth.assay");
    serve(fmt::format("{}\n  faults: [{{{}, every: 1}}]", kFast, c.fault), options);
    const std::string reply = asked(chat());
    EXPECT_TRUE(reply.ends_with(c.end)) << reply;
    EXPECT_TRUE(server_->stop().has_value());
    const Result<Ledger> ledger = read_ledger(options.ledger);
    ASSERT_TRUE(ledger.has_value() && ledger->requests.size() == 1);
    const RequestRecord& record = ledger->requests.front();
    EXPECT_EQ(outcome_name(record.outcome), outcome_name(c.outcome));
    if (c.outcome == Outcome::kOk) {
      EXPECT_EQ(record.tokens_server_output, 3);
    }
  }
}

TEST_F(EngineServerTest, AResetIsAResetAndAHalfOpenStreamIsSilent) {
  serve_with_ledger(
      fmt::format("{}\n  faults: [{{do: reset, nth: 1, after: 1}}, "
                  "{{do: half_open, nth: 2, after: 1}}]",
                  kFast));
  const auto post = [](BlockingClient& to, std::string_view id) {
    const std::string body = chat();
    to.send(
        fmt::format("POST /v1/chat/completions HTTP/1.1\r\nx-request-id: {}\r\n"
                    "content-length: {}\r\n\r\n{}",
                    id, body.size(), body));
  };
  BlockingClient broken(server_->port());
  post(broken, "broken");
  broken.read_until("");
  EXPECT_EQ(broken.error(), ECONNRESET);
  {
    BlockingClient silent(server_->port());
    post(silent, "silent");
    EXPECT_NE(silent.read_until("}\n\n\r\n").find("delta"), std::string::npos);
  }
  const auto records = stopped();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records.at("broken").outcome, Outcome::kReset);
  EXPECT_EQ(records.at("silent").outcome, Outcome::kCancelled);
}

TEST_F(EngineServerTest, WhoLeavesFreesThePlaceAndIsRecorded) {
  serve_with_ledger("servers: 1\n  ttft: 1ms\n  gap: 100s");
  {
    BlockingClient leaves(server_->port());
    leaves.post(chat());
    leaves.read_until("}]}\n\n\r\n");
  }
  while (got("/metrics").find("vllm:num_requests_running{engine=\"0\",model_name=\"sim\"} 0\n") ==
         std::string::npos) {
  }
  const auto records = stopped();
  ASSERT_EQ(records.count("r"), 1u);
  EXPECT_EQ(records.at("r").outcome, Outcome::kCancelled);
}

TEST_F(EngineServerTest, StoppingCutsWhatDoesNotEnd) {
  serve_with_ledger("servers: 1\n  ttft: 1ms\n  gap: 100s");
  BlockingClient waits(server_->port());
  waits.post(chat());
  waits.read_until("}]}\n\n\r\n");
  const auto records = stopped(Duration(0));
  ASSERT_EQ(records.size(), 1u);
  const RequestRecord& cut = records.at("r");
  EXPECT_EQ(cut.outcome, Outcome::kCancelled);
  EXPECT_TRUE(cut.first_event && cut.done);
  EXPECT_EQ(waits.read_until(""), "");
}

TEST_F(EngineServerTest, TheLedgerHoldsEveryEventInOrder) {
  serve_with_ledger("servers: 8\n  ttft: 2ms\n  gap: 100us\n  tokens: {per_chunk: 3, reasoning: 4}",
                    2);
  for (int i = 0; i < 4; ++i) {
    BlockingClient one(server_->port());
    const std::string body = chat(R"("stream":true,"max_tokens":20)");
    one.send(
        fmt::format("POST /v1/chat/completions HTTP/1.1\r\nx-request-id: id-{}\r\n"
                    "content-length: {}\r\n\r\n{}",
                    i, body.size(), body));
    EXPECT_TRUE(one.read_until(kBodyEnd).ends_with(kBodyEnd));
  }
  const auto records = stopped();
  ASSERT_EQ(records.size(), 4u);
  for (const auto& [id, record] : records) {
    EXPECT_EQ(record.tokens_server_prompt, 2);
    EXPECT_EQ(record.tokens_server_output, 20);
    EXPECT_EQ(record.tokens_server_reasoning, 4);
    EXPECT_EQ(record.tokens_asked_output, 20);
    EXPECT_EQ(record.finish_reason, "length");
    EXPECT_LE(record.scheduled, record.first_byte.value());
    EXPECT_LE(record.first_byte.value(), record.first_event.value());
    EXPECT_LT(record.first_token.value(), record.first_output.value());
    EXPECT_LE(record.last_token.value(), record.done.value());
    ChunkReader chunks(record.chunks, record.scheduled);
    RunTime last = record.first_token.value();
    std::uint32_t tokens = 0;
    for (auto chunk = chunks.next(); chunk; chunk = chunks.next()) {
      EXPECT_GE(chunk->at, last);
      EXPECT_EQ((chunk->flags & kChunkReasoning) != 0, tokens < 4);
      last = chunk->at;
      tokens += chunk->tokens;
    }
    EXPECT_EQ(tokens, 20u);
    EXPECT_EQ(last, record.last_token.value());
  }
}

TEST_F(EngineServerTest, WhatComesInOneInstantLeavesInOneSend) {
  serve_with_ledger("servers: 1\n  ttft: 1ms\n  gap: 0ms");
  EXPECT_EQ(count_of(asked(chat(R"("stream":true,"max_tokens":50)")), "\"content\":\" "), 50u);
  const auto records = stopped();
  EXPECT_EQ(records.at("r").reads, 2);
  EXPECT_EQ(records.at("r").events, 50 + 3);  // role, finish reason, [DONE]
}

TEST_F(EngineServerTest, MetricsAddUp) {
  serve("servers: 8\n  ttft: 2ms\n  gap: 20ms");
  asked(chat(R"("stream":true,"max_tokens":3)"));
  asked(chat(R"("max_tokens":2)"));
  asked("{}");
  const std::string text = got("/metrics");
  const std::string labels = R"({engine="0",model_name="sim")";
  for (const std::string& line : {
           "vllm:generation_tokens_total" + labels + "} 5\n",
           "vllm:prompt_tokens_total" + labels + "} 4\n",
           "vllm:request_success_total" + labels + ",finished_reason=\"length\"} 2\n",
           "vllm:request_success_total" + labels + ",finished_reason=\"error\"} 1\n",
           "vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.001\"} 0\n",
           "vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.005\"} 2\n",
           "vllm:time_to_first_token_seconds_count" + labels + "} 2\n",
           "vllm:time_to_first_token_seconds_sum" + labels + "} 0.004\n",
           "vllm:inter_token_latency_seconds_bucket" + labels + ",le=\"0.01\"} 0\n",
           "vllm:inter_token_latency_seconds_bucket" + labels + ",le=\"0.025\"} 3\n",
           "vllm:inter_token_latency_seconds_sum" + labels + "} 0.06\n",
           "vllm:request_generation_tokens_bucket" + labels + ",le=\"2\"} 1\n",
           "vllm:request_generation_tokens_bucket" + labels + ",le=\"+Inf\"} 2\n",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(EngineServerTest, ATakenPortLeavesNoLedgerBehind) {
  serve(kFast);
  EngineServeOptions options;
  options.port = server_->port();
  options.ledger = folder_.file("none.assay");
  const auto second = EngineServer::start(SimSpec{}, options);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ExitCode::kUsage);
  EXPECT_NE(access(options.ledger.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace assay
