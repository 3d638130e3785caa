// A listening TCP socket on an EpollLoop: hands every accepted connection over as a non-blocking
// descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "engine/net/epoll_loop.h"

namespace assay {

class Listener {
 public:
  /// Called on the loop; the descriptor is the callee's.
  using Accepted = std::function<void(int descriptor)>;

  /// `port` 0 takes any free one. kUsage when the address can't be listened on. Accepting starts
  /// with the loop.
  static Result<std::unique_ptr<Listener>> open(EpollLoop& loop, const std::string& host,
                                                std::uint16_t port, Accepted accepted);
  /// Stops listening. While the loop runs, only on its thread.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  struct Core;
  Listener(boost::intrusive_ptr<Core> core, std::uint16_t port);

  boost::intrusive_ptr<Core> core_;
  std::uint16_t port_;
};

}  // namespace assay
