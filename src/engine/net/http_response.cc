#include "engine/net/http_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/core/text.h"

namespace assay {
namespace {

/// The start of a line, made safe to print.
std::string excerpt(std::string_view line) {
  std::string out;
  for (const char c : line.substr(0, 40)) out += c >= ' ' && c < 127 ? c : '?';
  return out;
}

}  // namespace

void HttpResponseDecoder::reset() { *this = HttpResponseDecoder(); }

bool HttpResponseDecoder::fail(std::string why) {
  state_ = State::kFailed;
  keep_alive_ = false;
  error_ = std::move(why);
  return false;
}

bool HttpResponseDecoder::feed(std::string_view bytes, HttpResponseSink& sink) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::kFailed:
        return false;
      case State::kDone:
        // The response stands, however the bytes were torn; only the connection is spoilt.
        keep_alive_ = false;
        error_ = "bytes after the end of the response";
        return false;
      case State::kCloseBody:
        sink.on_body(bytes);
        return true;
      case State::kLengthBody:
      case State::kChunkData: {
        const std::size_t n = std::min<std::uint64_t>(remaining_, bytes.size());
        remaining_ -= n;
        const bool length_body = state_ == State::kLengthBody;
        const std::string_view piece = bytes.substr(0, n);
        bytes.remove_prefix(n);
        // The state moves before the callback, which may look at it.
        if (remaining_ == 0) state_ = length_body ? State::kDone : State::kChunkEnd;
        sink.on_body(piece);
        if (state_ == State::kDone) sink.on_message_end();
        break;
      }
      default: {
        std::string_view line;
        const Line got = take_line(bytes, line);
        if (got == Line::kTooLong) {
          const bool of_chunk = state_ == State::kChunkSize || state_ == State::kChunkEnd;
          return fail(fmt::format("{} over {} bytes",
                                  of_chunk ? "the line of a chunk size is" : "the header lines are",
                                  kHeadMax));
        }
        if (got == Line::kMore) return true;
        const bool ok = on_line(line, sink);
        line_.clear();
        if (!ok) return false;
      }
    }
  }
  return state_ != State::kFailed;
}

bool HttpResponseDecoder::finish(HttpResponseSink& sink) {
  if (state_ == State::kDone) return true;
  if (state_ == State::kCloseBody) {
    state_ = State::kDone;
    keep_alive_ = false;
    sink.on_message_end();
    return true;
  }
  if (state_ == State::kFailed) return false;
  return fail(started() ? "the connection closed inside the response"
                        : "the connection closed before a response");
}

HttpResponseDecoder::Line HttpResponseDecoder::take_line(std::string_view& bytes,
                                                         std::string_view& line) {
  const void* const end = std::memchr(bytes.data(), '\n', bytes.size());
  const std::size_t size =
      end == nullptr ? bytes.size()
                     : static_cast<std::size_t>(static_cast<const char*>(end) - bytes.data());
  if (line_.size() + size + head_bytes_ > kHeadMax) return Line::kTooLong;
  if (end == nullptr) {
    line_.append(bytes);
    bytes = {};
    return Line::kMore;
  }
  if (line_.empty()) {
    line = bytes.substr(0, size);
  } else {
    line_.append(bytes.substr(0, size));
    line = line_;
  }
  bytes.remove_prefix(size + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return Line::kReady;
}

bool HttpResponseDecoder::on_line(std::string_view line, HttpResponseSink& sink) {
  switch (state_) {
    case State::kStatusLine:
      // One empty line before a status line is tolerated, as RFC 9112 2.2 asks of robust parsers.
      if (line.empty() && head_bytes_ == 0) {
        head_bytes_ = 1;
        return true;
      }
      return on_status_line(line);
    case State::kHeader:
      head_bytes_ += line.size();
      return line.empty() ? on_head_end(sink) : on_header(line);
    case State::kChunkSize:
      return on_chunk_size(line);
    case State::kChunkEnd:
      if (!line.empty())
        return fail(fmt::format("a chunk is longer than its size says: '{}'", excerpt(line)));
      state_ = State::kChunkSize;
      return true;
    case State::kTrailer:
      head_bytes_ += line.size();
      if (!line.empty()) return true;
      state_ = State::kDone;
      sink.on_message_end();
      return true;
    default:
      return fail("a line where none is expected");
  }
}

bool HttpResponseDecoder::on_status_line(std::string_view line) {
  const bool http11 = line.starts_with("HTTP/1.1 ");
  if (!http11 && !line.starts_with("HTTP/1.0 ")) {
    return fail(fmt::format("no HTTP/1.1 status line: '{}'", excerpt(line)));
  }
  const std::string_view code = line.substr(9, 3);
  const auto status = parse_int(code);
  if (code.size() != 3 || !status || *status < 100 || (line.size() > 12 && line[12] != ' ')) {
    return fail(fmt::format("no status code in '{}'", excerpt(line)));
  }
  status_ = static_cast<int>(*status);
  keep_alive_ = http11;
  head_bytes_ = line.size();
  state_ = State::kHeader;
  return true;
}

bool HttpResponseDecoder::on_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return fail(fmt::format("no header line: '{}'", excerpt(line)));
  }
  // A blank before the colon is wrong, but a header that is overlooked for it would be worse.
  const std::string_view name = trim(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (equal_ignoring_case(name, "content-length")) {
    std::uint64_t length = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, ec] = std::from_chars(value.data(), end, length);
    if (value.empty() || ec != std::errc() || rest != end ||
        (has_length_ && length != remaining_)) {
      return fail(fmt::format("content-length '{}' is no single number", excerpt(value)));
    }
    has_length_ = true;
    remaining_ = length;
  } else if (equal_ignoring_case(name, "transfer-encoding")) {
    for (const std::string_view coding : split(value, ',')) {
      if (equal_ignoring_case(trim(coding), "chunked")) {
        chunked_ = true;
      } else if (!equal_ignoring_case(trim(coding), "identity")) {
        return fail(fmt::format("transfer-encoding '{}' is not known", excerpt(value)));
      }
    }
  } else if (equal_ignoring_case(name, "connection")) {
    for (const std::string_view token : split(value, ',')) {
      if (equal_ignoring_case(trim(token), "close")) close_asked_ = true;
      if (equal_ignoring_case(trim(token), "keep-alive")) keep_alive_ = true;
    }
  } else if (equal_ignoring_case(name, "content-encoding")) {
    if (!value.empty() && !equal_ignoring_case(value, "identity")) {
      return fail(
          fmt::format("content-encoding '{}' although identity was asked for", excerpt(value)));
    }
  } else if (equal_ignoring_case(name, "content-type")) {
    content_type_ = value;
  } else if (equal_ignoring_case(name, "server")) {
    server_ = value;
  } else if (equal_ignoring_case(name, "location")) {
    location_ = value;
  }
  return true;
}

bool HttpResponseDecoder::on_head_end(HttpResponseSink& sink) {
  if (status_ == 101) return fail("the server switches protocols, which nobody asked for");
  if (status_ < 200) {
    reset();  // an interim response: the real one follows
    return true;
  }
  head_bytes_ = 0;
  if (close_asked_) keep_alive_ = false;
  if (status_ == 204 || status_ == 304) {
    state_ = State::kDone;
  } else if (chunked_) {
    state_ = State::kChunkSize;
  } else if (!has_length_) {
    state_ = State::kCloseBody;
    keep_alive_ = false;
  } else {
    state_ = remaining_ == 0 ? State::kDone : State::kLengthBody;
  }
  sink.on_head({status_, content_type_, server_, location_});
  if (state_ == State::kDone) sink.on_message_end();
  return true;
}

bool HttpResponseDecoder::on_chunk_size(std::string_view line) {
  const std::string_view digits = trim(line.substr(0, line.find(';')));
  const char* const end = digits.data() + digits.size();
  const auto [rest, ec] = std::from_chars(digits.data(), end, remaining_, 16);
  if (digits.empty() || ec != std::errc() || rest != end) {
    return fail(fmt::format("no chunk size: '{}'", excerpt(line)));
  }
  state_ = remaining_ == 0 ? State::kTrailer : State::kChunkData;
  return true;
}

}  // namespace assay
