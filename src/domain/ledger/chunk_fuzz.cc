#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/check.h"
#include "domain/ledger/record.h"

/// Walking any blob ends, and what was read from an undamaged one packs to a blob that reads the
/// same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  const std::string_view blob(reinterpret_cast<const char*>(data), size);
  const RunTime scheduled(1'000'000);
  ChunkReader reader(blob, scheduled);
  ChunkWriter writer;
  writer.start(scheduled);
  std::size_t count = 0;
  for (auto chunk = reader.next(); chunk; chunk = reader.next()) {
    // The writer is never given instants centuries apart.
    if (chunk->at < RunTime(0) || chunk->at > 10'000h) return 0;
    writer.append(*chunk);
    ++count;
  }
  CHECK(count <= size / 4 && count == writer.count());
  const std::string packed = writer.take();
  ChunkReader first(blob, scheduled);
  ChunkReader second(packed, scheduled);
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = first.next();
    const auto b = second.next();
    CHECK(a && b && a->at == b->at && a->bytes == b->bytes && a->tokens == b->tokens &&
          a->flags == b->flags);
  }
  return 0;
}
