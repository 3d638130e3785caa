// HTTP/1.1 response decoder, push style: feed it whatever a read brought, torn anywhere, and it
// hands out the head, the body in pieces (views into the fed bytes, nothing is copied) and the end.
// Understands chunked bodies with extensions and trailers, content-length, bodies that end with the
// connection, and interim 1xx heads. One decoder decodes one response at a time; reset() makes it
// ready for the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

/// Views die with the call that hands the head over.
struct HttpHead {
  int status = 0;
  std::string_view content_type;
  std::string_view server;
  std::string_view location;
};

class HttpResponseSink {
 public:
  virtual ~HttpResponseSink() = default;
  virtual void on_head(const HttpHead& head) = 0;
  virtual void on_body(std::string_view bytes) = 0;
  /// The body is complete as HTTP defines it.
  virtual void on_message_end() = 0;
};

class HttpResponseDecoder {
 public:
  /// Bound of all header lines together; of the trailers likewise.
  static constexpr std::size_t kHeadMax = 64 * 1024;

  /// False when the bytes are not HTTP or go over a bound: error() says why, and the decoder is of
  /// no more use. Bytes after the end of a message are an error too, since nobody asked for them:
  /// the message stays complete, the connection may not be used again.
  bool feed(std::string_view bytes, HttpResponseSink& sink);
  /// The peer closed. Ends a body that is delimited by the close; else false with error() set.
  bool finish(HttpResponseSink& sink);
  void reset();

  /// Has the response begun, so that a close now cuts it?
  [[nodiscard]] bool started() const { return state_ != State::kStatusLine || !line_.empty(); }
  [[nodiscard]] bool complete() const { return state_ == State::kDone; }
  /// May the connection carry another request after this one?
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  enum class State : std::uint8_t {
    kStatusLine,
    kHeader,
    kLengthBody,
    kCloseBody,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone,
    kFailed,
  };

  enum class Line : std::uint8_t { kMore, kReady, kTooLong };
  Line take_line(std::string_view& bytes, std::string_view& line);
  bool on_line(std::string_view line, HttpResponseSink& sink);
  bool on_status_line(std::string_view line);
  bool on_header(std::string_view line);
  bool on_head_end(HttpResponseSink& sink);
  bool on_chunk_size(std::string_view line);
  bool fail(std::string why);

  State state_ = State::kStatusLine;
  std::string line_;             // a line torn over reads
  std::size_t head_bytes_ = 0;   // of the head or the trailers so far
  std::uint64_t remaining_ = 0;  // of the body or the chunk
  int status_ = 0;
  bool chunked_ = false;
  bool has_length_ = false;
  bool keep_alive_ = true;
  bool close_asked_ = false;  // wins over keep-alive
  std::string content_type_, server_, location_;
  std::string error_;
};

}  // namespace assay
