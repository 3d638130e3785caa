#include "app/child_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/world.h"
#include "base/core/result.h"
#include "base/core/text.h"
#include "base/core/time.h"

namespace assay {
namespace {

constexpr Duration kStartWithin = 10s;
constexpr Duration kEndWithin = 20s;  // it writes its ledger
constexpr std::string_view kServingOn = "serving on ";

/// What the child needs between fork and exec, made before: there, only calls that are safe in a
/// copy of a process with threads are allowed.
struct Launch {
  std::vector<char*> argv;
  int output = -1;
  int said = -1;
  cpu_set_t cores{};
  bool pinned = false;
  pid_t parent = 0;
};

[[noreturn]] void become_server(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(1);  // it died before the line above
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.pinned) sched_setaffinity(0, sizeof launch.cores, &launch.cores);
  dup2(launch.output, STDOUT_FILENO);
  dup2(launch.said, STDERR_FILENO);
  execv("/proc/self/exe", launch.argv.data());
  _exit(127);
}

/// The last `count` of the cores that this process may use.
cpu_set_t last_cores(int count) {
  cpu_set_t all;
  cpu_set_t last;
  CPU_ZERO(&last);
  sched_getaffinity(0, sizeof all, &all);
  for (std::size_t core = CPU_SETSIZE; core-- > 0 && count > 0;) {
    if (CPU_ISSET(core, &all) == 0) continue;
    CPU_SET(core, &last);
    --count;
  }
  return last;
}

std::string system_error(std::string_view what) {
  return fmt::format("{}: {}", what, std::generic_category().message(errno));
}

/// Waits for output. Null when nothing came in time; empty at the end of all output.
std::optional<std::string> read_within(int descriptor, Duration limit) {
  pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit);
  if (poll(&wait, 1, static_cast<int>(ms.count())) <= 0) return std::nullopt;
  std::array<char, 4096> buffer{};
  const ssize_t n = read(descriptor, buffer.data(), buffer.size());
  return std::string(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
}

}  // namespace

Result<std::unique_ptr<ChildServer>> ChildServer::start(const Options& options) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return fail({ExitCode::kInternal, system_error("no pipe to a server"), "", ""});
  }
  Launch launch;
  launch.output = pipe_ends[1];
  launch.parent = getpid();
  launch.said = open(options.said_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::vector<std::string> words{"assay"};
  words.insert(words.end(), options.args.begin(), options.args.end());
  for (std::string& word : words) launch.argv.push_back(word.data());
  launch.argv.push_back(nullptr);
  launch.pinned = options.cores_from_last > 0;
  launch.cores = last_cores(options.cores_from_last);
  const pid_t pid = fork();
  if (pid == 0) become_server(launch);
  const int error = errno;
  close(launch.output);
  if (launch.said >= 0) close(launch.said);
  if (pid < 0) {
    close(pipe_ends[0]);
    errno = error;
    return fail({ExitCode::kInternal, system_error("no process for a server"), "", ""});
  }
  std::unique_ptr<ChildServer> server(new ChildServer(pid, pipe_ends[0], options.said_path));
  TRY(server->await_url());
  return server;
}

ChildServer::~ChildServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

Error ChildServer::failure(const std::string& what) const {
  const Result<std::string> said = read_file(said_path_);
  const std::string words(said ? trim(*said) : std::string_view());
  return {ExitCode::kInternal, words.empty() ? what : fmt::format("{}; it said: {}", what, words),
          "the simulated engine", ""};
}

Result<> ChildServer::await_url() {
  const Clocks clocks;
  const Instant deadline = clocks.now() + kStartWithin;
  std::string text;
  while (text.find('\n') == std::string::npos) {
    const std::optional<std::string> more = read_within(output_, deadline - clocks.now());
    if (!more) {
      return fail(failure(fmt::format("does not listen within {}", format_duration(kStartWithin))));
    }
    if (more->empty()) return fail(failure("ended before it listened"));
    text += *more;
  }
  const std::size_t at = text.find(kServingOn);
  if (at == std::string::npos) return fail(failure("does not say where it listens"));
  const std::string_view rest = std::string_view(text).substr(at + kServingOn.size());
  url_ = rest.substr(0, rest.find_first_of(" \n"));
  return {};
}

void ChildServer::pause() { kill(pid_, SIGSTOP); }
void ChildServer::resume() { kill(pid_, SIGCONT); }

Result<> ChildServer::stop() {
  kill(pid_, SIGTERM);
  const Clocks clocks;
  const Instant deadline = clocks.now() + kEndWithin;
  for (;;) {  // until its end of the pipe is closed
    const std::optional<std::string> more = read_within(output_, deadline - clocks.now());
    if (!more) {
      return fail(failure(fmt::format("does not end within {}", format_duration(kEndWithin))));
    }
    if (more->empty()) break;
  }
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(failure(WIFEXITED(status)
                          ? fmt::format("ended with {}", WEXITSTATUS(status))
                          : fmt::format("was killed by signal {}", WTERMSIG(status))));
}

}  // namespace assay
