// The one writer of JSON: every byte that goldens see comes from here, so equal values give equal
// text. Objects and arrays nest by begin/end calls; commas are its business. Doubles print as the
// shortest text that reads back to the same value; NaN and infinity print as null, and so does an
// empty optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

class JsonWriter {
 public:
  enum class Style { kCompact, kPretty };
  explicit JsonWriter(Style style = Style::kCompact) : style_(style) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool b);
  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& null();
  /// Text that is JSON already; the caller vouches for it.
  JsonWriter& raw(std::string_view json);
  template <typename T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <typename T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  [[nodiscard]] const std::string& text() const { return out_; }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void before_value();
  void new_line();

  std::string out_;
  Style style_;
  int depth_ = 0;
  bool first_ = true;  // nothing yet at this level
  bool after_key_ = false;
};

/// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace assay
