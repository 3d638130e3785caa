#include "base/core/random.h"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/core/math.h"

namespace assay {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t Draws::next_u64() { return mix(key_ + kGolden * ++count_); }

double Draws::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

std::uint64_t Draws::below(std::uint64_t n) {
  // Lemire's multiply-shift with rejection (2019, doi:10.1145/3230636).
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t reject_below = (0 - n) % n;
  for (;;) {
    const Wide product = static_cast<Wide>(next_u64()) * n;
    if (static_cast<std::uint64_t>(product) >= reject_below)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

double Draws::exponential() { return -exact_log(1.0 - uniform()); }

double Draws::normal() {
  // Marsaglia's polar form: no cosine, whose bits differ between C libraries.
  for (;;) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * exact_log(s) / s);
  }
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : key_(mix(mix(seed + kGolden) ^ hash64(name))) {}

Draws RandomStream::at(std::uint64_t index) const {
  return Draws(mix(key_ + kGolden * (index + 1)));
}

std::uint64_t hash64(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return h;
}

}  // namespace assay
