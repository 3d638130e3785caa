// A non-blocking stream socket on an EpollLoop whose every read carries the kernel's receive stamp:
// the reads are recvmsg, because only there the stamp comes along. Single-threaded: all calls and
// all callbacks on the loop's thread. A handler is never called after close().
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/core/time.h"
#include "engine/net/address.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/stamp.h"

namespace assay {

class SocketHandler {
 public:
  virtual ~SocketHandler() = default;
  /// Once per connect().
  virtual void on_connect(std::error_code error) = 0;
  /// The first send() of a message is about to happen, and the one that will take its last byte.
  virtual void on_send_start(Instant at) = 0;
  virtual void on_sent(Instant at) = 0;
  /// `bytes` lie in the loop's read buffer, with EpollLoop::kReadPadding readable bytes behind
  /// them.
  virtual void on_read(std::string_view bytes, const Stamp& stamp) = 0;
  /// The peer closed (no error) or the connection broke. The last call.
  virtual void on_closed(std::error_code error, Instant at) = 0;
};

class Socket {
 public:
  explicit Socket(EpollLoop& loop, SocketHandler& handler);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Starts connecting; reads start once connected.
  void connect(const Address& address);
  /// Takes over an accepted descriptor, non-blocking already; reads start at once.
  void adopt(int descriptor);
  /// Sends all of `bytes`, waiting for room as needed. They must live until on_sent. One message at
  /// a time.
  void send(std::string_view bytes);
  void close();
  /// Closes with a reset instead of an orderly end.
  void reset();

  /// Connected or on the way to it, and no send has failed: may it carry another message?
  [[nodiscard]] bool open() const;

 private:
  struct Core;
  boost::intrusive_ptr<Core> core_;
};

}  // namespace assay
