#include "engine/net/sse.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::uint8_t kPastStart = 4;

/// Position of the first \n or \r; size() if none. JSON holds neither, so two memchr beat a byte
/// loop.
std::size_t find_line_end(std::string_view bytes) {
  const void* const lf = std::memchr(bytes.data(), '\n', bytes.size());
  const std::size_t limit =
      lf == nullptr ? bytes.size()
                    : static_cast<std::size_t>(static_cast<const char*>(lf) - bytes.data());
  const void* const cr = limit == 0 ? nullptr : std::memchr(bytes.data(), '\r', limit);
  return cr == nullptr ? limit
                       : static_cast<std::size_t>(static_cast<const char*>(cr) - bytes.data());
}

}  // namespace

void SseDecoder::reset() { *this = SseDecoder(); }

bool SseDecoder::feed(std::string_view bytes, SseSink& sink) {
  if (bom_seen_ != kPastStart) skip_byte_order_mark(bytes);
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t size = find_line_end(bytes);
    const std::size_t held = in_place_ ? data_view_.size() : data_.size();
    if (line_.size() + held + size > kEventMax) return false;
    if (size == bytes.size()) {
      line_.append(bytes);
      break;
    }
    after_cr_ = bytes[size] == '\r';
    if (line_.empty()) {
      on_line(bytes.substr(0, size), true, sink);
    } else {
      line_.append(bytes.substr(0, size));
      on_line(line_, false, sink);
      line_.clear();
    }
    bytes.remove_prefix(size + 1);
  }
  keep_data();
  return true;
}

void SseDecoder::finish(SseSink& sink) {
  if (!line_.empty()) on_line(line_, false, sink);
  line_.clear();
  dispatch(sink);
}

void SseDecoder::skip_byte_order_mark(std::string_view& bytes) {
  while (!bytes.empty() && bom_seen_ < kByteOrderMark.size()) {
    if (bytes.front() != kByteOrderMark[bom_seen_]) {
      // Not a mark after all: what looked like one belongs to the first line.
      line_.assign(kByteOrderMark.substr(0, bom_seen_));
      break;
    }
    bytes.remove_prefix(1);
    ++bom_seen_;
  }
  if (!bytes.empty() || bom_seen_ == kByteOrderMark.size()) bom_seen_ = kPastStart;
}

void SseDecoder::on_line(std::string_view line, bool in_place, SseSink& sink) {
  if (line.empty()) return dispatch(sink);
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  const std::string_view name = line.substr(0, colon);
  // Empty or not, it lies in the line: there are readable bytes behind it.
  std::string_view value = line.substr(colon == std::string_view::npos ? line.size() : colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    on_data(value, in_place);
  } else if (name == "event") {
    type_ = value;
  } else if (name == "error") {
    // No field of the rules. llama.cpp sent its errors so for years; ignored, they would look like
    // a stream that just stops.
    type_ = name;
    on_data(value, in_place);
  }
  // id and retry matter to clients that reconnect; a measured stream is never resumed.
}

void SseDecoder::on_data(std::string_view value, bool in_place) {
  if (!has_data_ && in_place) {
    data_view_ = value;
    in_place_ = true;
  } else {
    keep_data();
    if (has_data_) data_ += '\n';
    data_ += value;
  }
  has_data_ = true;
}

void SseDecoder::keep_data() {
  if (!in_place_) return;
  data_.assign(data_view_);
  in_place_ = false;
}

void SseDecoder::dispatch(SseSink& sink) {
  // An error event counts even without data; any other event without data is none.
  if (has_data_ || type_ == "error") {
    if (!in_place_) data_.reserve(data_.size() + kPadding);
    sink.on_sse_event(type_, in_place_ ? data_view_ : std::string_view(data_));
  }
  type_.clear();
  data_.clear();
  has_data_ = false;
  in_place_ = false;
}

}  // namespace assay
