// The simulated engine as a Target in this process: what the real load code runs against in virtual
// time. Every channel is a connection to one engine, which starts with the first of them; all live
// on one Loop, which outlives the target. Faults that concern bytes alone (slow-loris, comments,
// line ends, torn characters) change nothing here, where there are no bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/net/loop.h"
#include "engine/sim/model.h"
#include "engine/sim/sim_spec.h"
#include "engine/target/target.h"

namespace assay {

class SimTarget final : public Target {
 public:
  SimTarget(SimSpec spec, std::uint64_t seed);
  ~SimTarget() override;
  SimTarget(const SimTarget&) = delete;
  SimTarget& operator=(const SimTarget&) = delete;

  /// Prompt tokens and output tokens asked for are all that a request holds.
  [[nodiscard]] std::string encode(const RequestPlan& plan) const override;
  [[nodiscard]] std::unique_ptr<Channel> channel(Loop& loop) override;
  [[nodiscard]] int choices() const override { return 1; }

 private:
  SimSpec spec_;
  std::uint64_t seed_;
  std::shared_ptr<SimEngine> engine_;  // its channels hold it too
};

}  // namespace assay
