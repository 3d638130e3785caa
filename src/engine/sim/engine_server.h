// The simulated engine behind a socket: OpenAI's chat and completions, llama.cpp's /completion,
// /v1/models, /health, /tokenize and /metrics over HTTP/1.1. Each serving thread has a loop and an
// engine of its own, connections going to them in turn: with more than one thread the server is as
// many replicas of the spec, each with its own queue, faults counted apart. With a ledger it writes
// down when it really sent each event, in the schema of a client's ledger: `scheduled` is when the
// request's last byte had come, request_id the x-request-id that it came with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/sim/sim_spec.h"

namespace assay {

struct EngineServeOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  int threads = 1;
  std::uint64_t seed = 1;
  enum class Models : std::uint8_t { kAny, kStrict };
  Models models = Models::kAny;  // kStrict: 404 for any model but the spec's
  std::string ledger;            // file to make; empty: none
  std::string spec_asked;        // the spec as given, for the ledger
  Clocks clocks;
};

class EngineServer {
 public:
  /// Takes connections once it returns. kUsage when the address or the ledger can't be had.
  static Result<std::unique_ptr<EngineServer>> start(const SimSpec& spec,
                                                     const EngineServeOptions& options);
  ~EngineServer();
  EngineServer(const EngineServer&) = delete;
  EngineServer& operator=(const EngineServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string url() const;
  /// The ledger can't be written any more: stop() says why.
  [[nodiscard]] bool failed() const;
  /// Takes nothing new, lets replies end for `grace`, then cuts them; closes the ledger. Called
  /// again, it does nothing.
  Result<> stop(Duration grace = kGrace);

  static constexpr Duration kGrace = 800ms;

 private:
  struct Core;
  explicit EngineServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Serves until `stop` is asked for; tells the URL through `on_ready` once connections are taken.
Result<> serve_engine(const SimSpec& spec, const EngineServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready,
                      std::stop_token stop);

}  // namespace assay
