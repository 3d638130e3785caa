// The renderers of one run: pure functions from a Measurement to bytes, so that equal measurements
// give equal text. Rounding for the eye happens here and nowhere else. Formats and keys:
// docs/formats/report.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "study/measure/measurement.h"

namespace assay {

struct TextStyle {
  enum class Colour : std::uint8_t { kNever, kAlways } colour = Colour::kNever;
  std::size_t width = 100;  // columns
};

/// The summary for one screen, verdict first: at most 30 lines of `width` columns.
std::string render_text(const Measurement& m, const TextStyle& style);

/// One object of schema assay.report/1. Numbers carry at most 9 significant digits; unknown is
/// null, never NaN.
std::string render_json(const Measurement& m);

}  // namespace assay
