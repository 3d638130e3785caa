#include "serve/report/lines.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text.h"
#include "serve/report/report.h"

namespace assay {
namespace {

constexpr std::size_t kLabelWidth = 10;
constexpr std::size_t kLongestPart = 240;  // columns; error texts come from outside
constexpr std::string_view kSeparator = " · ";

std::string_view escape(Paint paint) {
  switch (paint) {
    case Paint::kPlain:
      return "";
    case Paint::kGood:
      return "\x1b[32m";
    case Paint::kBad:
      return "\x1b[31m";
    case Paint::kWarn:
      return "\x1b[33m";
    case Paint::kDim:
      return "\x1b[2m";
  }
  return "";
}

std::string painted(std::string text, Paint paint, const TextStyle& style) {
  if (style.colour == TextStyle::Colour::kNever || paint == Paint::kPlain) return text;
  return std::string(escape(paint)) + text + "\x1b[0m";
}

std::size_t step(std::string_view text) {
  return std::max<std::size_t>(1, utf8_sequence_length(text));
}

}  // namespace

std::size_t columns(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(step(text));
  return n;
}

std::string cut(std::string_view text, std::size_t width) {
  std::string out;
  const std::size_t all = columns(text);
  const std::size_t keep = all <= width ? all : width - std::min<std::size_t>(width, 1);
  for (std::size_t n = 0; n < keep; ++n) {
    const std::size_t bytes = step(text);
    const bool control = static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f;
    out += control ? std::string_view(" ") : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  if (all > width && width > 0) out += "…";
  return out;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t n = columns(text);
  return std::string(n < width ? width - n : 0, ' ') + std::string(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t n = columns(text);
  return std::string(text) + std::string(n < width ? width - n : 0, ' ');
}

void Lines::add(std::string_view label, const std::vector<std::string>& parts, Paint paint) {
  std::string line = pad_right(label, kLabelWidth);
  bool fresh = true;  // nothing after the label yet
  const auto end_line = [&] {
    lines_.push_back(painted(cut(line, style_.width), paint, style_));
    line = std::string(kLabelWidth, ' ');
    fresh = true;
  };
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string text = cut(part, kLongestPart);
    // A part stays whole where a line can hold it; longer ones break between words.
    const bool whole = kLabelWidth + columns(text) <= style_.width;
    std::string_view separator = kSeparator;
    for (const std::string_view word :
         whole ? std::vector<std::string_view>{text} : split(text, ' ')) {
      const std::size_t needed = columns(separator) + columns(word);
      if (!fresh && columns(line) + needed > style_.width) end_line();
      if (!fresh) line += separator;
      line += word;
      fresh = false;
      separator = " ";
    }
  }
  if (!fresh) end_line();
}

void Lines::add_raw(std::string_view line, Paint paint) {
  lines_.push_back(painted(cut(line, style_.width), paint, style_));
}

void Lines::keep(std::size_t limit) {
  if (lines_.size() <= limit || limit < 2) return;
  const auto last = lines_.end() - 1;
  const auto from = lines_.begin() + static_cast<std::ptrdiff_t>(limit) - 2;
  lines_.erase(from, last);
  lines_.insert(lines_.end() - 1, std::string(kLabelWidth, ' ') + "… more with --format json");
}

std::string Lines::text() const {
  std::string out;
  for (const std::string& line : lines_) {
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace assay
