#include "app/show_ledger.h"

#include <expected>
#include <string>

#include "app/world.h"
#include "base/core/result.h"
#include "domain/ledger/ledger.h"
#include "domain/spec/parse.h"
#include "domain/spec/spec.h"
#include "serve/report/report.h"
#include "study/measure/measure.h"
#include "study/measure/measurement.h"

namespace assay {

Result<Measurement> measure_file(const std::string& path) {
  const Ledger ledger = TRY(read_ledger(path));
  const std::expected<Spec, Error> spec = spec_from_json(ledger.meta_or(meta::kSpecEffective));
  if (!spec) return usage_error("holds no usable spec: " + spec.error().text(), path);
  return measure(ledger, *spec);
}

std::string rendered(const World& world, const Measurement& measurement, ReportFormat format) {
  if (format == ReportFormat::kJson) return render_json(measurement);
  const auto colour = world.colours() ? TextStyle::Colour::kAlways : TextStyle::Colour::kNever;
  return render_text(measurement, {.colour = colour});
}

}  // namespace assay
