#include "domain/ledger/host.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Host, GoesThroughItsJson) {
  const Host host{.cores = 2,
                  .descriptors = 20'000,
                  .local_ports = 28'232,
                  .kernel = "6.1.0 \"odd\"",
                  .machine = "x86_64"};
  const Host read = host_from_json(host_to_json(host));
  EXPECT_EQ(read.cores, 2);
  EXPECT_EQ(read.descriptors, 20'000);
  EXPECT_EQ(read.local_ports, 28'232);
  EXPECT_EQ(read.kernel, host.kernel);
  EXPECT_EQ(read.machine, "x86_64");
}

TEST(Host, KnowsNothingFromForeignText) {
  for (const char* text : {"", "[1]", "{", "null", R"({"cores": "two", "descriptors": null})"}) {
    const Host host = host_from_json(text);
    EXPECT_FALSE(host.cores) << text;
    EXPECT_FALSE(host.descriptors) << text;
    EXPECT_EQ(host.kernel, "") << text;
  }
}

}  // namespace
}  // namespace assay
