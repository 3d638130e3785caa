#include "engine/sim/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "base/core/math.h"
#include "base/core/random.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

constexpr double kSpreadMax = 10;

Duration to_duration(double ns) {
  const auto most = static_cast<double>(kDurationMax.count());
  return Duration(static_cast<std::int64_t>(std::clamp(ns, 0.0, most) + 0.5));
}

double to_ns(Duration d) { return static_cast<double>(d.count()); }

/// Gamma of scale 1.
double draw_gamma(double shape, Draws& draws) {
  double boost = 1;
  if (shape < 1) {
    boost = exact_exp(exact_log(1 - draws.uniform()) / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal();
    const double t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    const double u = 1 - draws.uniform();
    if (exact_log(u) < 0.5 * x * x + d - d * v + d * exact_log(v)) return d * v * boost;
  }
}

}  // namespace

SimDistribution SimDistribution::fixed(Duration value) {
  SimDistribution out;
  out.a_ = to_ns(value);
  return out;
}

SimDistribution SimDistribution::exponential(Duration mean) {
  SimDistribution out;
  out.kind_ = Kind::kExponential;
  out.a_ = to_ns(mean);
  return out;
}

SimDistribution SimDistribution::log_normal(Duration median, double sigma) {
  SimDistribution out;
  out.kind_ = Kind::kLogNormal;
  out.a_ = to_ns(median);
  out.b_ = sigma;
  return out;
}

SimDistribution SimDistribution::log_normal_of_mean(Duration mean, double sigma) {
  return log_normal(to_duration(to_ns(mean) * exact_exp(-0.5 * sigma * sigma)), sigma);
}

SimDistribution SimDistribution::gamma(Duration mean, double cv) {
  CHECK(cv > 0, "cv {}", cv);
  SimDistribution out;
  out.kind_ = Kind::kGamma;
  out.a_ = to_ns(mean);
  out.b_ = cv;
  out.shape_ = 1 / (cv * cv);
  return out;
}

SimDistribution SimDistribution::table(std::vector<Duration> values, std::string name) {
  CHECK(!values.empty(), "an empty table");
  SimDistribution out;
  out.kind_ = Kind::kTable;
  out.values_ = std::move(values);
  out.name_ = std::move(name);
  return out;
}

Duration SimDistribution::draw(Draws& draws) const {
  switch (kind_) {
    case Kind::kFixed:
      return Duration(static_cast<std::int64_t>(a_));
    case Kind::kExponential:
      return to_duration(a_ * draws.exponential());
    case Kind::kLogNormal:
      return to_duration(a_ * exact_exp(b_ * draws.normal()));
    case Kind::kGamma:
      return to_duration(a_ / shape_ * draw_gamma(shape_, draws));
    case Kind::kTable:
      return values_[draws.below(values_.size())];
  }
  return Duration(0);
}

double SimDistribution::mean_seconds() const {
  double ns = a_;
  if (kind_ == Kind::kLogNormal) ns = a_ * exact_exp(0.5 * b_ * b_);
  if (kind_ == Kind::kTable) {
    double sum = 0;
    for (const Duration value : values_) sum += to_ns(value);
    ns = sum / static_cast<double>(values_.size());
  }
  return ns / 1e9;
}

std::string SimDistribution::text() const {
  const std::string a = format_duration(Duration(static_cast<std::int64_t>(a_)));
  switch (kind_) {
    case Kind::kFixed:
      return "det:" + a;
    case Kind::kExponential:
      return "exp:" + a;
    case Kind::kLogNormal:
      return fmt::format("lognormal:{},{}", a, b_);
    case Kind::kGamma:
      return fmt::format("gamma:{},{}", a, b_);
    case Kind::kTable:
      return "table:" + name_;
  }
  return {};
}

namespace {

constexpr std::string_view kForms =
    "det:50ms, exp:50ms, lognormal:50ms,0.5, gamma:50ms,0.7 or table:FILE";

std::unexpected<Wrong> wrong(std::string what, std::string hint = std::string(kForms)) {
  return std::unexpected(Wrong{std::move(what), std::move(hint)});
}

Parsed<SimDistribution> read_table(const std::string& path, const ReadFile& read_file) {
  const Result<std::string> text = read_file(path);
  if (!text) return wrong(text.error().text(), "name a file of one duration per line");
  std::vector<Duration> values;
  std::int64_t number = 0;
  for (const std::string_view raw : split(*text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    const Parsed<Duration> value = read_duration(line, Zero::kAllowed);
    if (!value) return wrong(fmt::format("{}:{}: {}", path, number, value.error().what), "");
    values.push_back(*value);
  }
  if (values.empty()) return wrong(path + " holds no duration", "one per line, such as 50ms");
  return SimDistribution::table(std::move(values), path);
}

Parsed<double> read_spread(std::string_view text, std::string_view what) {
  const std::optional<double> value = parse_number(text);
  if (value && *value > 0 && *value <= kSpreadMax) return *value;
  return wrong(
      fmt::format("the {} must be above 0 and at most {}, not {}", what, kSpreadMax, quoted(text)));
}

Parsed<SimDistribution> read_spread_one(std::string_view kind, std::string_view rest) {
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos) {
    return wrong(fmt::format("{} needs a duration and a number, with a comma between", kind));
  }
  std::string_view first = rest.substr(0, comma);
  const bool of_mean = kind == "lognormal" && first.starts_with("mean=");
  if (of_mean) first.remove_prefix(5);
  const Parsed<Duration> at = read_duration(first, Zero::kRefused);
  if (!at) return wrong(at.error().what);
  const Parsed<double> spread =
      read_spread(rest.substr(comma + 1), kind == "gamma" ? "coefficient of variation" : "sigma");
  if (!spread) return std::unexpected(spread.error());
  if (kind == "gamma") return SimDistribution::gamma(*at, *spread);
  return of_mean ? SimDistribution::log_normal_of_mean(*at, *spread)
                 : SimDistribution::log_normal(*at, *spread);
}

}  // namespace

Parsed<SimDistribution> read_distribution(std::string_view text, const ReadFile& read_file) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = colon == std::string_view::npos ? "det" : text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (kind == "table") return read_table(std::string(rest), read_file);
  if (kind == "lognormal" || kind == "gamma") return read_spread_one(kind, rest);
  if (kind != "det" && kind != "exp") return wrong(quoted(text) + " is no distribution of times");
  const Parsed<Duration> value =
      read_duration(rest, kind == "det" ? Zero::kAllowed : Zero::kRefused);
  if (!value) return wrong(value.error().what);
  return kind == "det" ? SimDistribution::fixed(*value) : SimDistribution::exponential(*value);
}

}  // namespace assay
