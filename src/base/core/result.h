// Errors that stop a command: Error says what is wrong, where, and how to mend it; Result<T>
// carries a value or an Error up to `app`, which turns it into one exit code. Things that happen to
// a *request* (503, reset, timeout) are not errors but observations: they live in the ledger as an
// Outcome.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// Why a command ends; the value is the process exit code.
enum class ExitCode {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,        // usage, spec or unreadable input
  kUnreachable = 3,  // no address connects before the first request
  kRunInvalid = 4,
  kGateFailed = 5,
  kInconclusive = 6,
  kPreflight = 7,  // the machine can't do what was asked
  kInterrupted = 130,
};

struct Error {
  ExitCode code = ExitCode::kInternal;
  std::string what;   // one sentence without a full stop: "the rate must be above 0, not -3"
  std::string where;  // flag, or file:line: key; empty where there is no place
  std::string hint;   // what to do; empty only when `what` says it

  /// "where: what (hint)".
  [[nodiscard]] std::string text() const {
    std::string out = where.empty() ? what : where + ": " + what;
    return hint.empty() ? out : out + " (" + hint + ")";
  }
};

/// All problems at once: validation never stops at the first.
using Errors = std::vector<Error>;

template <typename T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

using Unexpected = std::unexpected<Error>;

inline Unexpected fail(Error error) { return Unexpected(std::move(error)); }
inline Unexpected usage_error(std::string what, std::string where = {}, std::string hint = {}) {
  return Unexpected(Error{ExitCode::kUsage, std::move(what), std::move(where), std::move(hint)});
}

}  // namespace assay

/// TRY(expr): the value of a Result, or an early return with its error. Works for Result<void> and
/// move-only values. __extension__ keeps -Wpedantic quiet about the statement expression.
#define TRY(expr)                                                 \
  __extension__({                                                 \
    auto&& try_result_ = (expr);                                  \
    if (!try_result_) [[unlikely]]                                \
      return ::assay::Unexpected(std::move(try_result_).error()); \
    std::move(try_result_).value();                               \
  })
