#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/core/check.h"
#include "base/stats/histogram.h"

/// Whatever decodes must encode to something that decodes to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto histogram = assay::Histogram::decode_v2(bytes);
  if (!histogram) return 0;
  const auto again = assay::Histogram::decode_v2(histogram->encode_v2());
  CHECK(again && *again == *histogram);
  CHECK(histogram->max().has_value() == (histogram->count() > 0));
  return 0;
}
