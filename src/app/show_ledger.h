// A ledger as a command shows it: measured from the file alone, rendered in the form asked for.
// `assay run` and `assay report` both show through here, so they can't differ.
#pragma once

#include <cstdint>
#include <string>

#include "app/world.h"
#include "base/core/result.h"
#include "study/measure/measurement.h"

namespace assay {

enum class ReportFormat : std::uint8_t { kText, kJson };

/// An unreadable file, or one whose spec can't be read, is a usage error that names it.
Result<Measurement> measure_file(const std::string& path);

/// Colours where `world` takes them; always ends with a line end.
std::string rendered(const World& world, const Measurement& measurement, ReportFormat format);

}  // namespace assay
