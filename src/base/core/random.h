// Random numbers that are the same on every machine and addressable by index: draw j of item i of a
// named stream is a pure function of (seed, name, i, j). Adding a draw in one place never shifts
// another, and any worker can draw any item without drawing those before it. Own distributions,
// since std:: ones differ between libraries. The mixer is SplitMix64's finaliser (Steele, Lea,
// Flood 2014, doi:10.1145/2660193.2660195).
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

/// The draws of one item of a stream, in order. Cheap to make and to copy.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : key_(key) {}

  std::uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in {0, …, n−1}, without modulo bias. n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Exponential with mean 1.
  double exponential();
  /// Standard normal (polar method on our own log).
  double normal();

 private:
  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

/// A named sub-stream of a root seed.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);
  [[nodiscard]] Draws at(std::uint64_t index) const;

 private:
  std::uint64_t key_;
};

/// FNV-1a, 64 bit: identities of prompts and names, not security.
std::uint64_t hash64(std::string_view text);

}  // namespace assay
