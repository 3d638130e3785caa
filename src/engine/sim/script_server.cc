#include "engine/sim/script_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/core/json_writer.h"
#include "base/core/result.h"
#include "base/core/time.h"
#include "engine/net/epoll_loop.h"
#include "engine/net/listener.h"
#include "engine/net/loop.h"
#include "engine/net/socket.h"
#include "engine/net/stamp.h"
#include "engine/sim/http_request.h"
#include "engine/sim/playback.h"
#include "engine/sim/script.h"

namespace assay {
namespace {

HeadStep json_head(int status) {
  HeadStep head;
  head.status = status;
  head.framing = BodyFraming::kLength;
  head.content_type = "application/json";
  return head;
}

Reply json_reply(int status, std::string json) {
  Reply reply;
  reply.steps = {json_head(status), BodyStep{std::move(json)}};
  return reply;
}

Reply models_reply(const std::string& model) {
  JsonWriter json;
  json.begin_object().field("object", "list").key("data").begin_array().begin_object();
  json.field("id", std::string_view(model)).field("object", "model");
  json.end_object().end_array().end_object();
  return json_reply(200, json.take());
}

Reply refusal(int status, std::string_view why) {
  JsonWriter json;
  json.begin_object().key("error").begin_object().field("message", why).field("code", status);
  json.end_object().end_object();
  return json_reply(status, json.take());
}

bool divides(std::optional<std::int64_t> every, std::int64_t n) {
  return !every || n % *every == 0;
}
bool equals(std::optional<std::int64_t> wanted, std::int64_t n) { return !wanted || *wanted == n; }

}  // namespace

struct ScriptServer::Core {
  /// One accepted connection: reads requests, plays one reply at a time.
  struct Connection final : SocketHandler {
    Connection(Core& c, std::int64_t n) : core(c), number(n), socket(c.loop, *this) {}

    void on_connect(std::error_code /*error*/) override {}
    void on_send_start(Instant /*at*/) override {}
    void on_sent(Instant at) override;
    void on_read(std::string_view bytes, const Stamp& stamp) override;
    void on_closed(std::error_code error, Instant at) override;

    void next_request();
    void play(const Reply& reply, const AskedReply& asked);
    void play_on();
    void send_next();
    void finish();
    void apply(LastStep step);
    void drop();

    Core& core;
    std::int64_t number;
    Socket socket;
    HttpRequestReader reader;
    bool counted = false;  // this reply is in core.in_flight
    bool playing = false;
    bool keep_alive = true;
    Playback playback;
    std::size_t next_send = 0;
    Instant origin;
    Loop::TimerId timer = 0;
  };

  explicit Core(Script s) : script(std::move(s)) {}

  void on_accept(int descriptor);
  const Reply* choose(const HttpRequest& request, std::int64_t connection);
  void log(const HttpRequest& request, const AskedReply& asked, std::int64_t connection,
           Instant at);

  Script script;
  EpollLoop loop;
  std::unique_ptr<Listener> listener;
  std::string host;
  std::uint16_t port = 0;
  std::unordered_map<std::int64_t, std::unique_ptr<Connection>> live;
  std::int64_t request_count = 0;
  std::size_t turn = 0;
  std::int64_t in_flight = 0;

  mutable std::mutex mutex;  // guards the two below
  std::vector<ServedRequest> served;
  std::int64_t accepted = 0;

  std::jthread thread;  // last: joined before anything that it uses goes
};

void ScriptServer::Core::on_accept(int descriptor) {
  std::int64_t number = 0;
  {
    const std::lock_guard lock(mutex);
    number = ++accepted;
  }
  auto connection = std::make_unique<Connection>(*this, number);
  Connection& made = *connection;
  live.emplace(number, std::move(connection));
  made.socket.adopt(descriptor);
  for (const ConnectionRule& rule : script.connections) {
    const bool hit = rule.nth ? *rule.nth == number : number % rule.every.value_or(1) == 0;
    if (hit) return made.apply(rule.action);
  }
}

const Reply* ScriptServer::Core::choose(const HttpRequest& request, std::int64_t connection) {
  ++request_count;
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  std::vector<const Reply*> in_turn;
  for (const Reply& reply : script.replies) {
    const ReplyMatch& m = reply.match;
    if (!m.any()) {
      in_turn.push_back(&reply);
    } else if (equals(m.request, request_count) && divides(m.request_every, request_count) &&
               equals(m.connection, connection) && divides(m.connection_every, connection) &&
               (m.path.empty() || m.path == path) &&
               request.body.find(m.contains) != std::string::npos) {
      return &reply;
    }
  }
  if (in_turn.empty()) return nullptr;
  return in_turn[turn++ % in_turn.size()];
}

void ScriptServer::Core::log(const HttpRequest& request, const AskedReply& asked,
                             std::int64_t connection, Instant at) {
  const std::lock_guard lock(mutex);
  if (served.size() >= kLogMax) return;
  served.push_back({connection, in_flight, at, request.target,
                    std::string(request.header("x-request-id")), asked.prompt, request.body});
}

void ScriptServer::Core::Connection::on_read(std::string_view bytes, const Stamp& /*stamp*/) {
  reader.feed(bytes);
  next_request();
}

void ScriptServer::Core::Connection::next_request() {
  if (playing) return;
  const std::optional<HttpRequest> request = reader.next();
  if (!request) {
    if (reader.refused() == 0) return;
    keep_alive = false;
    return play(refusal(reader.refused(), "this is no request that the script server understands"),
                {});
  }
  keep_alive = request->keep_alive;
  const std::string_view path = std::string_view(request->target);
  const bool scripted = std::ranges::any_of(
      core.script.replies, [&](const Reply& reply) { return reply.match.path == path; });
  if (!scripted && request->method == "GET") {
    if (path == "/v1/models") return play(models_reply(core.script.model), {});
    if (path == "/health") return play(json_reply(200, "{}"), {});
  }
  const AskedReply asked = read_asked_reply(request->target, request->body);
  const Reply* reply = core.choose(*request, number);
  ++core.in_flight;
  counted = true;
  core.log(*request, asked, number, core.loop.now());
  if (reply != nullptr) return play(*reply, asked);
  play(refusal(404, "no reply of the script matches this request"), asked);
}

void ScriptServer::Core::Connection::play(const Reply& reply, const AskedReply& asked) {
  playing = true;
  playback = compose(reply, asked);
  next_send = 0;
  origin = core.loop.now();
  play_on();
}

/// Waits for the instant of the next send, or of the end.
void ScriptServer::Core::Connection::play_on() {
  const bool more = next_send < playback.sends.size();
  if (!more && !playback.last) return finish();
  const Duration at = more ? playback.sends[next_send].at : playback.last_at;
  if (origin + at <= core.loop.now()) return send_next();
  timer = core.loop.at(origin + at, [this] {
    timer = 0;
    send_next();
  });
}

void ScriptServer::Core::Connection::send_next() {
  if (next_send == playback.sends.size()) return apply(*playback.last);
  const std::string& bytes = playback.sends[next_send++].bytes;
  socket.send(bytes);
}

void ScriptServer::Core::Connection::on_sent(Instant /*at*/) {
  // Not from inside send(): a long reply without waits would call itself once per send.
  core.loop.post([&core = core, n = number] {
    const auto found = core.live.find(n);
    if (found != core.live.end() && found->second->playing) found->second->play_on();
  });
}

void ScriptServer::Core::Connection::finish() {
  playing = false;
  if (counted) --core.in_flight;
  counted = false;
  if (!keep_alive) return apply(LastStep::kClose);
  // Not from here: requests that were sent ahead would nest, each inside the reply before it.
  core.loop.post([&core = core, n = number] {
    const auto found = core.live.find(n);
    if (found != core.live.end()) found->second->next_request();
  });
}

void ScriptServer::Core::Connection::apply(LastStep step) {
  if (step == LastStep::kHang) {
    playing = true;  // so that nothing is answered any more
    return;
  }
  if (step == LastStep::kReset) {
    socket.reset();
  } else {
    socket.close();
  }
  drop();
}

void ScriptServer::Core::Connection::on_closed(std::error_code /*error*/, Instant /*at*/) {
  drop();
}

/// Forgets the connection. It is destroyed in a turn of its own, since its own code is running.
void ScriptServer::Core::Connection::drop() {
  core.loop.cancel(timer);
  if (counted) --core.in_flight;
  counted = false;
  playing = false;
  core.loop.post([&core = core, n = number] { core.live.erase(n); });
}

ScriptServer::ScriptServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}

ScriptServer::~ScriptServer() { stop(); }

Result<std::unique_ptr<ScriptServer>> ScriptServer::start(Script script,
                                                          const ScriptServeOptions& options) {
  auto core = std::make_unique<Core>(std::move(script));
  core->listener = TRY(Listener::open(core->loop, options.host, options.port,
                                      [raw = core.get()](int fd) { raw->on_accept(fd); }));
  core->port = core->listener->port();
  core->host = options.host;
  core->thread = std::jthread([raw = core.get()] { raw->loop.run(); });
  return std::unique_ptr<ScriptServer>(new ScriptServer(std::move(core)));
}

std::uint16_t ScriptServer::port() const { return core_->port; }

std::string ScriptServer::url() const {
  const bool bare_v6 = core_->host.find(':') != std::string::npos;
  return bare_v6 ? fmt::format("http://[{}]:{}", core_->host, core_->port)
                 : fmt::format("http://{}:{}", core_->host, core_->port);
}

std::vector<ServedRequest> ScriptServer::requests() const {
  const std::lock_guard lock(core_->mutex);
  return core_->served;
}

std::int64_t ScriptServer::connections() const {
  const std::lock_guard lock(core_->mutex);
  return core_->accepted;
}

void ScriptServer::stop() {
  if (!core_->thread.joinable()) return;
  // Posted, since the thread may not have come to run() yet, which forgets an earlier stop().
  core_->loop.post([core = core_.get()] { core->loop.stop(); });
  core_->thread.join();
  core_->live.clear();
  core_->listener.reset();
}

Result<> serve_script(Script script, const ScriptServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready,
                      std::stop_token stop) {
  const std::unique_ptr<ScriptServer> server = TRY(ScriptServer::start(std::move(script), options));
  on_ready(server->url());
  std::mutex mutex;
  std::condition_variable_any asked_to_stop;
  std::unique_lock lock(mutex);
  asked_to_stop.wait(lock, std::move(stop), [] { return false; });
  return {};
}

}  // namespace assay
