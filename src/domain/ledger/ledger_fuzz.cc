#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>

#include "base/core/check.h"
#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace {

using namespace assay;

/// A small complete ledger, as bytes: what the inputs damage.
std::string valid_ledger() {
  std::string folder = "/tmp/assay_fuzz_XXXXXX";
  CHECK(::mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/valid.assay";
  {
    auto writer = LedgerWriter::create(path, {{"seed", "1"}});
    CHECK(writer);
    RequestRecord record;
    record.text = "reply";
    record.chunks = std::string("\x02\x01\x01\x11", 4);
    CHECK((*writer)->append(record) && (*writer)->append(PhaseRow{0, "steady", {}, {}}) &&
          (*writer)->append(WorkerRow{}) && (*writer)->append(HistogramRow{}) &&
          (*writer)->append(EventRow{}) && (*writer)->close("complete"));
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
  return bytes;
}

/// The input as a list of edits, 4 bytes each: where (2, in units of 1/65536 of the file), the
/// value to put there, and how often.
std::string damaged(std::string bytes, const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t at = (std::size_t{data[i]} * 256 + data[i + 1]) * bytes.size() / 65536;
    const std::size_t times = std::min<std::size_t>(data[i + 3] % 16 + 1U, bytes.size() - at);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), times,
                static_cast<char>(data[i + 2]));
  }
  return bytes;
}

void read(const std::string& bytes) {
  const int fd = ::memfd_create("ledger", MFD_CLOEXEC);
  CHECK(fd >= 0);
  CHECK(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const auto ledger = read_ledger(fmt::format("/proc/self/fd/{}", fd));
  CHECK(ledger || !ledger.error().what.empty());
  if (ledger) {
    for (const RequestRecord& request : ledger->requests) {
      ChunkReader chunks(request.chunks, request.scheduled);
      while (chunks.next()) {
      }
    }
  }
  ::close(fd);
}

}  // namespace

/// Any bytes, and any damage to a good ledger, are read or refused in words. The first byte says
/// which of the two.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string kValid = valid_ledger();
  if (size == 0) return 0;
  if (data[0] % 8 == 0) {
    read({data + 1, data + size});
  } else {
    read(damaged(kValid, data + 1, size - 1));
  }
  return 0;
}
