#include "study/doctor/endpoint.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace assay {
namespace {

/// Ten requests: handshakes of 100…190 us, first tokens 5…14 ms after the send.
Ledger ten_requests() {
  Ledger ledger;
  ledger.meta.emplace(meta::kModel, "tiny");
  for (int i = 0; i < 10; ++i) {
    RequestRecord r;
    r.scheduled = i * 100ms;
    r.tcp = 100us + i * 10us;
    r.admitted = r.scheduled + *r.tcp;
    r.send_start = *r.admitted + 3us;
    r.first_token = *r.send_start + 5ms + i * 1ms;
    ledger.requests.push_back(r);
  }
  WorkerRow worker;
  worker.kernel_stamps = 20;
  ledger.workers = {worker};
  return ledger;
}

TEST(AuditEndpoint, TellsTheWayAndTheFloor) {
  const EndpointAudit audit = audit_endpoint(ten_requests());
  EXPECT_TRUE(audit.pass);
  EXPECT_EQ(audit.model, "tiny");
  EXPECT_EQ(audit.requests, 10);
  EXPECT_EQ(audit.round_trip_min_us, 100);
  EXPECT_EQ(audit.round_trip_p50_us, 140);
  EXPECT_EQ(audit.floor_min_ms, 5);
  EXPECT_EQ(audit.floor_p50_ms, 9);
  EXPECT_EQ(audit.send_lag_p99_us, 3);
  EXPECT_EQ(audit.kernel_stamp_share, 1);
  EXPECT_EQ(audit.receive_lag_p99_us, std::nullopt);
}

TEST(AuditEndpoint, FailsOnAFailureAndShowsIt) {
  Ledger ledger = ten_requests();
  ledger.requests[4].outcome = Outcome::kHttpError;
  ledger.requests[4].error_text = "the model is loading";
  const EndpointAudit audit = audit_endpoint(ledger);
  EXPECT_FALSE(audit.pass);
  EXPECT_EQ(audit.failed, 1);
  EXPECT_EQ(audit.example, "the model is loading");
  EXPECT_EQ(audit.floor_p50_ms, 10);  // of the nine that ended well
}

TEST(AuditEndpoint, FailsWhereTheKernelDoesNotStamp) {
  Ledger ledger = ten_requests();
  ledger.workers[0].user_stamps = 2;  // 20 of 22
  EXPECT_TRUE(audit_endpoint(ledger).pass);
  ledger.workers[0].user_stamps = 3;
  EXPECT_FALSE(audit_endpoint(ledger).pass);
}

TEST(AuditEndpoint, NothingMeasuredIsNullAndNoPass) {
  const EndpointAudit audit = audit_endpoint(Ledger());
  EXPECT_FALSE(audit.pass);
  EXPECT_EQ(audit.floor_min_ms, std::nullopt);
  EXPECT_EQ(audit.round_trip_p50_us, std::nullopt);
}

}  // namespace
}  // namespace assay
