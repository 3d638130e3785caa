// This program again, as a server in a child process: started, watched until it says where it
// listens, stopped. It dies with the process that started it, however that ends. Ctrl-C of a
// terminal does not reach it. Not thread-safe; waits are bounded.
#pragma once

#include <sys/types.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace assay {

class ChildServer {
 public:
  struct Options {
    std::vector<std::string> args;  // without the program's name
    std::string said_path;          // a file for what it says on stderr
    int cores_from_last = 0;        // it gets so many of our cores, from the last on; 0: all
  };

  /// Waits for "serving on URL". kInternal with what it said when it ends, or says nothing in time.
  static Result<std::unique_ptr<ChildServer>> start(const Options& options);
  /// Kills it if it still lives.
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  /// Makes it stand still, and go on.
  void pause();
  void resume();
  /// Asks it to end, and waits until it has. kInternal when it fails, or does not end in time.
  Result<> stop();

 private:
  ChildServer(pid_t pid, int said, std::string said_path)
      : pid_(pid), output_(said), said_path_(std::move(said_path)) {}
  Result<> await_url();
  Error failure(const std::string& what) const;

  pid_t pid_;
  int output_;  // read end of its stdout
  std::string said_path_;
  std::string url_;
};

}  // namespace assay
