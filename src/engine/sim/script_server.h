// The scripted server: plays a Script behind a real socket, on a loop and a thread of its own, and
// remembers what it was asked so that tests can assert on it. GET /v1/models and GET /health are
// answered by the server itself unless a reply matches their path. Public functions may be called
// from any thread; the destructor stops the server and joins its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/sim/script.h"

namespace assay {

struct ScriptServeOptions {
  std::string host = "127.0.0.1";  // an address, or a name that resolves
  std::uint16_t port = 0;          // 0: any free one
};

/// One request as the server saw it. What the server answers by itself is not in the log.
struct ServedRequest {
  std::int64_t connection = 0;  // from 1, in the order of accepts
  std::int64_t in_flight = 0;   // requests being answered, this one included
  Instant at;                   // when it was complete
  std::string target;
  std::string request_id;  // x-request-id
  std::string prompt;
  std::string body;
};

class ScriptServer {
 public:
  /// Fails with kUsage where the address can't be bound.
  static Result<std::unique_ptr<ScriptServer>> start(Script script,
                                                     const ScriptServeOptions& options = {});
  ~ScriptServer();
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:8000".
  [[nodiscard]] std::string url() const;
  /// The first kLogMax requests so far.
  [[nodiscard]] std::vector<ServedRequest> requests() const;
  [[nodiscard]] std::int64_t connections() const;
  /// Drops every connection and ends the thread. Called again, it does nothing.
  void stop();

  static constexpr std::size_t kLogMax = 100'000;

 private:
  struct Core;
  explicit ScriptServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Serves until `stop` is asked for; tells the URL through `on_ready` once connections are taken.
Result<> serve_script(Script script, const ScriptServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready,
                      std::stop_token stop);

}  // namespace assay
