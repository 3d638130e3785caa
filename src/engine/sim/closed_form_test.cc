// The model against queueing theory: what it says of queues that have a closed form must come out
// of it within 1 %, and inside its own intervals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/time.h"
#include "base/stats/interval.h"
#include "base/stats/mean.h"
#include "base/stats/quantile.h"
#include "base/stats/select.h"
#include "engine/sim/distribution.h"
#include "engine/sim/queue_play.h"
#include "engine/sim/sim_spec.h"

namespace assay {
namespace {

using internal::play_queue;
using internal::QueuePlay;
using internal::QueueSeen;
using Tail = std::function<double(double seconds)>;  // P(X > t)

constexpr double kService = 0.05;  // seconds
constexpr double kMu = 1 / kService;

struct Closed {
  double mean = 0;  // seconds
  Tail tail;
};

/// The t with tail(t) = 1 − p, by bisection.
double quantile(const Tail& tail, double p) {
  double low = 0, high = 1e4;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) > 1 - p ? low : high) = middle;
  }
  return high;
}

void expect_near_share(double seen, double truth, const std::string& what) {
  EXPECT_NEAR(seen / truth, 1, 0.01) << what << ": " << seen << " s, in theory " << truth << " s";
}

/// p99 within 1 %, and the truth inside its 95 % interval.
void expect_p99(const std::vector<std::int64_t>& ns, const Tail& tail, const std::string& what) {
  const double p99 = quantile(tail, 0.99);
  const std::size_t rank = nearest_rank(0.99, ns.size());
  const std::int64_t value = select_ranks(ns, std::vector{rank}).front();
  expect_near_share(static_cast<double>(value) / 1e9, p99, what + " p99");
  const auto ranks = quantile_ranks(0.99, ns.size(), effective_count(ns, 0.99, value));
  ASSERT_TRUE(ranks.has_value());
  const auto bounds = select_ranks(ns, std::vector{ranks->low, ranks->high});
  EXPECT_LE(static_cast<double>(bounds[0]), p99 * 1e9) << what;
  EXPECT_GE(static_cast<double>(bounds[1]), p99 * 1e9) << what;
}

/// The same of the mean, too.
void expect_like(const std::vector<std::int64_t>& ns, const Closed& closed,
                 const std::string& what) {
  const double sum = std::accumulate(ns.begin(), ns.end(), 0.0);
  expect_near_share(sum / static_cast<double>(ns.size()) / 1e9, closed.mean, what + " mean");
  const std::optional<Interval> mean = mean_interval(std::span(ns));
  ASSERT_TRUE(mean.has_value());
  EXPECT_LE(mean->low, closed.mean * 1e9) << what;
  EXPECT_GE(mean->high, closed.mean * 1e9) << what;
  expect_p99(ns, closed.tail, what);
}

SimSpec servers(std::int64_t count, SimDistribution service,
                std::optional<std::int64_t> queue = std::nullopt) {
  SimSpec spec;
  spec.engine = ServersSpec{.servers = count, .service = std::move(service)};
  spec.queue = queue;
  return spec;
}

SimDistribution exponential_service() {
  return SimDistribution::exponential(from_seconds(kService));
}

double erlang_c(double a, double c) {
  // By the recursion of Erlang B, which stays in range for any c.
  double b = 1;
  for (int n = 1; n <= static_cast<int>(c); ++n) b = a * b / (n + a * b);
  return b / (1 - a / c * (1 - b));
}

/// P(Erlang(k, rate) > t).
double erlang_tail(int k, double rate, double t) {
  double term = std::exp(-rate * t), sum = term;
  for (int i = 1; i < k; ++i) sum += term *= rate * t / i;
  return sum;
}

struct Load {
  double rho;
  std::int64_t requests;
  std::uint64_t seed;
};

class Mmc : public testing::TestWithParam<std::tuple<int, Load>> {};

TEST_P(Mmc, WaitAndResponseAsErlangC) {
  const auto& [c, load] = GetParam();
  const double lambda = load.rho * c * kMu;
  const QueueSeen seen = play_queue({.spec = servers(c, exponential_service()),
                                     .rate = lambda,
                                     .requests = load.requests,
                                     .warmup = load.requests / 20,
                                     .seed = load.seed});
  const double spare = c * kMu - lambda;
  const double a = lambda / kMu;
  const double delayed = erlang_c(a, c);
  expect_like(seen.wait_ns,
              {delayed / spare, [&](double t) { return delayed * std::exp(-spare * t); }}, "wait");
  const double d = c - 1 - a;  // 0 would need a limit; no load here makes it so
  expect_like(seen.response_ns,
              {delayed / spare + kService,
               [&](double t) {
                 const double grown = -std::expm1(-kMu * t * d) / d;
                 return std::exp(-kMu * t) * (1 + delayed * grown);
               }},
              "response");
}

// p99 of a queue near its limit needs a hundred times as many requests as its mean: at these sizes
// the sampling error of a p99 is about half of what is allowed, and the seeds are fixed.
INSTANTIATE_TEST_SUITE_P(OneServer, Mmc,
                         testing::Combine(testing::Values(1),
                                          testing::Values(Load{0.3, 2'000'000, 1},
                                                          Load{0.5, 3'000'000, 1},
                                                          Load{0.7, 5'000'000, 1})));
INSTANTIATE_TEST_SUITE_P(FiveServers, Mmc,
                         testing::Combine(testing::Values(5),
                                          testing::Values(Load{0.5, 3'000'000, 1},
                                                          Load{0.7, 3'000'000, 1},
                                                          Load{0.75, 4'000'000, 1})));

class MmcK : public testing::TestWithParam<Load> {};

TEST_P(MmcK, WaitResponseAndLossAsBirthAndDeath) {
  constexpr int kC = 3, kK = 10;
  const double lambda = GetParam().rho * kC * kMu;
  const double a = lambda / kMu;
  std::vector<double> p(kK + 1);
  p[0] = 1;
  for (int n = 1; n <= kK; ++n) {
    p[static_cast<std::size_t>(n)] = p[static_cast<std::size_t>(n) - 1] * a / std::min(n, kC);
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double waiting = 0;
  for (int n = 0; n <= kK; ++n) {
    p[static_cast<std::size_t>(n)] /= total;
    waiting += std::max(0, n - kC) * p[static_cast<std::size_t>(n)];
  }
  const double taken = 1 - p[kK];
  const QueueSeen seen = play_queue({.spec = servers(kC, exponential_service(), kK - kC),
                                     .rate = lambda,
                                     .requests = GetParam().requests,
                                     .warmup = GetParam().requests / 20,
                                     .seed = GetParam().seed});
  const double lost =
      static_cast<double>(seen.counts.refused) / static_cast<double>(seen.counts.arrived);
  EXPECT_NEAR(lost / p[kK], 1, 0.01);
  const double wait = waiting / (lambda * taken);
  expect_like(seen.wait_ns,
              {wait,
               [&](double t) {
                 double tail = 0;
                 for (int n = kC; n < kK; ++n) {
                   tail += p[static_cast<std::size_t>(n)] / taken *
                           erlang_tail(n - kC + 1, kC * kMu, t);
                 }
                 return tail;
               }},
              "wait");
  const double mean_response =
      std::accumulate(seen.response_ns.begin(), seen.response_ns.end(), 0.0) /
      static_cast<double>(seen.response_ns.size()) / 1e9;
  expect_near_share(mean_response, wait + kService, "response mean");
}

INSTANTIATE_TEST_SUITE_P(Loads, MmcK,
                         testing::Values(Load{0.7, 3'000'000, 1}, Load{1.0, 2'000'000, 1},
                                         Load{1.5, 2'000'000, 2}));

class Md1 : public testing::TestWithParam<Load> {};

TEST_P(Md1, WaitAndResponseAsCrommelin) {
  const double rho = GetParam().rho;
  const double lambda = rho * kMu;
  const QueueSeen seen = play_queue({.spec = servers(1, SimDistribution::fixed(50ms)),
                                     .rate = lambda,
                                     .requests = GetParam().requests,
                                     .warmup = GetParam().requests / 20,
                                     .seed = GetParam().seed});
  // Erlang (1909): P(W ≤ t) = (1 − ρ) Σ_k [λ(kD − t)]^k / k! · e^{−λ(kD − t)}, k ≤ t / D.
  const auto tail = [&](double t) {
    double sum = 0;
    for (int k = 0; k * kService <= t; ++k) {
      const double x = lambda * (k * kService - t);
      sum += std::pow(x, k) / std::tgamma(k + 1.0) * std::exp(-x);
    }
    return 1 - (1 - rho) * sum;
  };
  // Beyond this the sum's terms cancel to nothing; every p99 here lies far below.
  const auto bounded = [&](double t) { return t > 25 * kService ? 0.0 : tail(t); };
  const double wait = rho / (2 * kMu * (1 - rho));
  expect_like(seen.wait_ns, {wait, bounded}, "wait");
  expect_like(
      seen.response_ns,
      {wait + kService, [&](double t) { return t < kService ? 1.0 : bounded(t - kService); }},
      "response");
}

INSTANTIATE_TEST_SUITE_P(Loads, Md1,
                         testing::Values(Load{0.3, 2'000'000, 1}, Load{0.5, 3'000'000, 1},
                                         Load{0.7, 5'000'000, 2}));

class BatchServer : public testing::TestWithParam<Load> {};

TEST_P(BatchServer, WaitAndResponseAsBirthAndDeath) {
  // Replies of geometric length make the batch server a birth-and-death process with
  // μ_n = b / (N·τ(b)), b = min(n, Bmax), but for the half step that a request waits to join: 1 /
  // 2N of its response.
  constexpr int kBatch = 8;
  constexpr double kTokens = 256;
  constexpr double kBase = 0.004, kPer = 0.0005;
  const auto mu = [&](int n) {
    const int b = std::min(n, kBatch);
    return b / (kTokens * (kBase + kPer * b));
  };
  const double lambda = GetParam().rho * mu(kBatch);
  double weight = 1, total = 0, inside = 0, full = 0;
  for (int n = 0; n < 2000; ++n) {
    if (n > 0) weight *= lambda / mu(n);
    total += weight;
    inside += n * weight;
    if (n >= kBatch) full += weight;
  }
  SimSpec spec;
  spec.engine = BatchSpec{
      .batch_max = kBatch, .step_base = from_seconds(kBase), .step_per_stream = from_seconds(kPer)};
  spec.output = {OutputSpec::Kind::kGeometric, kTokens};
  spec.tokens.per_chunk = 1'000'000;  // events cost time and change nothing
  const QueueSeen seen = play_queue({.spec = spec,
                                     .rate = lambda,
                                     .requests = GetParam().requests,
                                     .warmup = GetParam().requests / 20,
                                     .seed = GetParam().seed});
  const double mean_response =
      std::accumulate(seen.response_ns.begin(), seen.response_ns.end(), 0.0) /
      static_cast<double>(seen.response_ns.size()) / 1e9;
  expect_near_share(mean_response, inside / total / lambda, "response mean");
  const double spare = mu(kBatch) - lambda;
  const double delayed = full / total;
  const Tail tail = [&](double t) { return delayed * std::exp(-spare * t); };
  expect_p99(seen.wait_ns, tail, "wait");
}

INSTANTIATE_TEST_SUITE_P(Loads, BatchServer,
                         testing::Values(Load{0.5, 1'000'000, 2}, Load{0.6, 1'000'000, 2},
                                         Load{0.7, 1'000'000, 2}));

}  // namespace
}  // namespace assay
