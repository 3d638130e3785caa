// Lines of a text report: a label in a fixed column, then parts that are joined by " · " and
// wrapped at the style's width, between parts where possible, else between words. Columns are
// counted in code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "serve/report/report.h"

namespace assay {

enum class Paint { kPlain, kGood, kBad, kWarn, kDim };

class Lines {
 public:
  explicit Lines(const TextStyle& style) : style_(style) {}

  /// Nothing when every part is empty.
  void add(std::string_view label, const std::vector<std::string>& parts,
           Paint paint = Paint::kPlain);
  /// A line as it is, cut at the width.
  void add_raw(std::string_view line, Paint paint = Paint::kPlain);

  [[nodiscard]] std::size_t count() const { return lines_.size(); }
  /// Room left under `limit` lines.
  [[nodiscard]] std::size_t left(std::size_t limit) const {
    return lines_.size() < limit ? limit - lines_.size() : 0;
  }
  /// Drops lines before the last one until at most `limit` are left, and says so.
  void keep(std::size_t limit);
  [[nodiscard]] std::string text() const;

 private:
  TextStyle style_;
  std::vector<std::string> lines_;
};

/// Code points of UTF-8 text; a broken byte counts as one.
std::size_t columns(std::string_view text);
/// `text` in at most `width` columns, the cut shown by "…"; control characters become blanks.
std::string cut(std::string_view text, std::size_t width);
/// Padded with blanks to `width` columns.
std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);

}  // namespace assay
