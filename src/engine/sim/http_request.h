// HTTP/1.1 requests as a server reads them: whole requests out of bytes that come torn anywhere.
// Bodies by content-length or chunked. What is not HTTP or is over a bound is refused with the
// status to answer; after that the connection can't go on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct HttpRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // in order, names in lower case
  std::string body;
  bool keep_alive = true;
  bool http_1_0 = false;  // knows no chunked replies

  /// The first header of that name (lower case); empty where there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

class HttpRequestReader {
 public:
  static constexpr std::size_t kHeadMax = std::size_t{64} * 1024;
  static constexpr std::size_t kBodyMax = std::size_t{64} * 1024 * 1024;

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole request, if it is here.
  std::optional<HttpRequest> next();
  /// Not 0 once the bytes can't be a request: 400, 413, 431 or 501.
  [[nodiscard]] int refused() const { return refused_; }

 private:
  enum class Progress { kMore, kDone };
  bool read_head();
  bool read_head_line(std::string_view line);
  bool decide_body();
  Progress read_body();
  Progress read_chunks();
  bool refuse(int status);
  std::optional<std::string_view> line();

  std::string buffer_;
  std::size_t used_ = 0;     // bytes of buffer_ that are behind us
  std::size_t scanned_ = 0;  // no head end before here
  int refused_ = 0;
  HttpRequest request_;
  bool head_done_ = false;
  bool chunked_ = false;
  bool in_trailers_ = false;
  std::size_t body_left_ = 0;  // of the body, or of the chunk in hand
  bool chunk_open_ = false;    // the line end after a chunk's bytes is still to come
};

}  // namespace assay
