// Server-sent events decoder by the WHATWG rules (html.spec.whatwg.org, 9.2.6): lines end with \n,
// \r\n or \r, mixed at will; `data:` with or without a blank, several data lines joined with \n;
// comments anywhere; event, id and retry fields; a byte order mark at the start; everything torn at
// any byte. Works on bytes, so a torn UTF-8 character does no harm. Fed in pieces; an event that
// lies whole in one piece is handed out uncopied. Beyond the rules, a line of the field `error`,
// which llama.cpp sent for years, is data of an event of type error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

class SseSink {
 public:
  virtual ~SseSink() = default;
  /// `type` is the event field, empty if none. `data` has at least kPadding readable bytes behind
  /// it, and so must what feed() is given.
  virtual void on_sse_event(std::string_view type, std::string_view data) = 0;
};

class SseDecoder {
 public:
  static constexpr std::size_t kPadding = 64;
  /// An event may be that long, not longer: the stated bound of memory per stream.
  static constexpr std::size_t kEventMax = 16 * 1024 * 1024;

  /// False when an event grows over kEventMax; the decoder is of no more use then.
  bool feed(std::string_view bytes, SseSink& sink);
  /// The stream is over: hands out an event whose blank line never came, which the rules drop. The
  /// caller decides what of it can be believed: it may be torn.
  void finish(SseSink& sink);
  void reset();

 private:
  void skip_byte_order_mark(std::string_view& bytes);
  void on_line(std::string_view line, bool in_place, SseSink& sink);
  void on_data(std::string_view value, bool in_place);
  void dispatch(SseSink& sink);
  void keep_data();

  std::string line_;            // a line torn over pieces
  std::string data_;            // data that had to be copied: torn, or of several lines
  std::string_view data_view_;  // data that lies in the piece being fed
  std::string type_;
  bool has_data_ = false;
  bool in_place_ = false;      // data_view_ holds it, not data_
  bool after_cr_ = false;      // a \n that follows belongs to the line end before
  std::uint8_t bom_seen_ = 0;  // bytes of the mark seen; 4: past the start
};

}  // namespace assay
