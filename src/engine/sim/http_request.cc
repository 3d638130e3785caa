#include "engine/sim/http_request.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/core/text.h"

namespace assay {
namespace {

constexpr std::string_view kTokenExtras = "!#$%&'*+-.^_`|~";

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kTokenExtras.find(c) != std::string_view::npos;
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<std::size_t> parse_size(std::string_view text, int base) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<HttpRequest> HttpRequestReader::next() {
  if (refused_ != 0) return std::nullopt;
  if (!head_done_ && !read_head()) return std::nullopt;
  if (read_body() == Progress::kMore) return std::nullopt;
  buffer_.erase(0, used_);
  used_ = scanned_ = 0;
  head_done_ = chunked_ = in_trailers_ = false;
  return std::exchange(request_, {});
}

bool HttpRequestReader::refuse(int status) {
  refused_ = status;
  buffer_.clear();
  return false;
}

/// The next line of the buffer without its end, which may be a bare \n.
std::optional<std::string_view> HttpRequestReader::line() {
  const std::size_t end = buffer_.find('\n', std::max(used_, scanned_));
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string_view text = std::string_view(buffer_).substr(used_, end - used_);
  used_ = end + 1;
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// True once the whole head is here and makes sense.
bool HttpRequestReader::read_head() {
  for (;;) {
    const std::optional<std::string_view> text = line();
    if (used_ > kHeadMax || (!text && buffer_.size() > kHeadMax)) return refuse(431);
    if (!text) return false;
    if (text->empty() && request_.method.empty()) continue;  // RFC 9112 2.2: skip blank lines first
    if (text->empty()) break;
    if (!read_head_line(*text)) return false;
  }
  head_done_ = true;
  return decide_body();
}

bool HttpRequestReader::read_head_line(std::string_view text) {
  if (!request_.method.empty()) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || !is_token(text.substr(0, colon))) return refuse(400);
    request_.headers.emplace_back(lower(text.substr(0, colon)), trim(text.substr(colon + 1)));
    return true;
  }
  const std::size_t first = text.find(' ');
  const std::size_t last = text.rfind(' ');
  if (first == std::string_view::npos || first == last) return refuse(400);
  const std::string_view version = text.substr(last + 1);
  if (!is_token(text.substr(0, first)) || !version.starts_with("HTTP/1.")) return refuse(400);
  request_.method = text.substr(0, first);
  request_.target = text.substr(first + 1, last - first - 1);
  request_.http_1_0 = version == "HTTP/1.0";
  request_.keep_alive = !request_.http_1_0;
  return true;
}

bool HttpRequestReader::decide_body() {
  const std::string_view connection = request_.header("connection");
  if (equal_ignoring_case(connection, "close")) request_.keep_alive = false;
  if (equal_ignoring_case(connection, "keep-alive")) request_.keep_alive = true;
  const std::string_view coding = request_.header("transfer-encoding");
  const std::string_view length = request_.header("content-length");
  body_left_ = 0;
  if (!coding.empty()) {
    if (!equal_ignoring_case(coding, "chunked")) return refuse(501);
    if (!length.empty()) return refuse(400);  // RFC 9112 6.1: the way of request smuggling
    chunked_ = true;
    chunk_open_ = false;
    return true;
  }
  if (length.empty()) return true;
  const std::optional<std::size_t> size = parse_size(length, 10);
  if (!size) return refuse(400);
  if (*size > kBodyMax) return refuse(413);
  body_left_ = *size;
  return true;
}

HttpRequestReader::Progress HttpRequestReader::read_body() {
  if (refused_ != 0) return Progress::kMore;
  if (chunked_) return read_chunks();
  if (buffer_.size() - used_ < body_left_) return Progress::kMore;
  request_.body = buffer_.substr(used_, body_left_);
  used_ += body_left_;
  return Progress::kDone;
}

HttpRequestReader::Progress HttpRequestReader::read_chunks() {
  for (;;) {
    if (body_left_ > 0) {
      const std::size_t take = std::min(body_left_, buffer_.size() - used_);
      request_.body.append(buffer_, used_, take);
      used_ += take;
      body_left_ -= take;
      if (body_left_ > 0) return Progress::kMore;
    }
    const std::optional<std::string_view> text = line();
    if (!text) {
      if (buffer_.size() - used_ > kHeadMax) refuse(431);
      return Progress::kMore;
    }
    if (in_trailers_) {
      if (text->empty()) return Progress::kDone;
      continue;
    }
    if (chunk_open_) {
      chunk_open_ = false;
      if (text->empty()) continue;
      refuse(400);
      return Progress::kMore;
    }
    const std::optional<std::size_t> size = parse_size(trim(text->substr(0, text->find(';'))), 16);
    if (!size || *size > kBodyMax || request_.body.size() + *size > kBodyMax) {
      refuse(size ? 413 : 400);
      return Progress::kMore;
    }
    in_trailers_ = *size == 0;
    chunk_open_ = *size > 0;
    body_left_ = *size;
  }
}

}  // namespace assay
