// What an audit can say against a server that keeps no truth: how long the way there is, what the
// fastest answer takes, and who stamps what comes back. Pure, from the ledger of a closed loop of
// one with a new connection for each request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "domain/ledger/ledger.h"

namespace assay {

struct EndpointAudit {
  bool pass = false;  // every request ended well, and the limits below hold
  std::string url, model, server;
  std::int64_t requests = 0, failed = 0;
  std::string example;  // of a failure
  // The TCP handshake is one round trip.
  std::optional<double> round_trip_min_us, round_trip_p50_us;
  // From the send to the first token, alone on the server: no TTFT of a loaded run lies below.
  std::optional<double> floor_min_ms, floor_p50_ms;
  std::optional<double> send_lag_p99_us, receive_lag_p99_us, kernel_stamp_share;
};

EndpointAudit audit_endpoint(const Ledger& client);

}  // namespace assay
