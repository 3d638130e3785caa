// Target that answers in this process: at once by default, which shows the ceiling and the send lag
// of the load engine itself; with a given first-token delay and gap it is an engine of known
// latency for tests in virtual time. Works on any Loop, opens no socket.
#pragma once

#include <memory>
#include <string>

#include "base/core/time.h"
#include "engine/net/loop.h"
#include "engine/target/target.h"

namespace assay {

struct NullTiming {
  Duration connect{0};
  Duration first{0};  // from send to the first token
  Duration gap{0};    // between tokens
};

class NullTarget final : public Target {
 public:
  explicit NullTarget(NullTiming timing = {}) : timing_(timing) {}

  /// The number of tokens to answer with is all that a request holds.
  [[nodiscard]] std::string encode(const RequestPlan& plan) const override;
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override;
  [[nodiscard]] int choices() const override { return 1; }

 private:
  NullTiming timing_;
};

}  // namespace assay
