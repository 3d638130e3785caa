// The shape of a ledger file: its SQL, and for each row type the one list of columns that the
// writer binds from and the reader fills from, so the two can't drift apart. Private to this room;
// docs/formats/ledger.md says what each column means.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "domain/ledger/ledger.h"
#include "domain/ledger/record.h"

namespace assay::internal {

inline constexpr const char* kSchemaSql = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE phase(id INTEGER PRIMARY KEY, name TEXT, start_ns INTEGER, end_ns INTEGER) STRICT;
CREATE TABLE request(
  id INTEGER PRIMARY KEY, attempt INTEGER, worker INTEGER, phase INTEGER, target INTEGER,
  session INTEGER, turn INTEGER, item TEXT, connection INTEGER, request_id TEXT, trace_id TEXT,
  scheduled_ns INTEGER, admitted_ns INTEGER, send_start_ns INTEGER, sent_ns INTEGER,
  first_byte_ns INTEGER, first_event_ns INTEGER, first_token_ns INTEGER, first_output_ns INTEGER,
  last_token_ns INTEGER, done_ns INTEGER,
  dns_ns INTEGER, tcp_ns INTEGER, tls_ns INTEGER, reused INTEGER,
  outcome TEXT, http_status INTEGER, error_code TEXT, error_text TEXT, finish_reason TEXT,
  tokens_planned INTEGER, tokens_asked_output INTEGER, tokens_local_prompt INTEGER,
  tokens_local_output INTEGER, tokens_server_prompt INTEGER, tokens_server_cached INTEGER,
  tokens_server_output INTEGER, tokens_server_reasoning INTEGER,
  bytes_out INTEGER, bytes_in INTEGER, reads INTEGER, events INTEGER,
  nll_sum REAL, nll_tokens INTEGER, score REAL,
  chunks BLOB) STRICT;
CREATE TABLE series(id INTEGER PRIMARY KEY, source TEXT, name TEXT, labels TEXT, unit TEXT) STRICT;
CREATE TABLE sample(series INTEGER, t_ns INTEGER, value REAL) STRICT;
CREATE TABLE histogram(name TEXT, worker INTEGER, phase INTEGER, hdr BLOB) STRICT;
CREATE TABLE worker(
  id INTEGER PRIMARY KEY, busy_ns INTEGER, wall_ns INTEGER, requests INTEGER, reads INTEGER,
  events INTEGER, malformed INTEGER, kernel_stamps INTEGER, user_stamps INTEGER, connects INTEGER,
  sent_again INTEGER, builder_stalls INTEGER, lost INTEGER) STRICT;
CREATE TABLE event(t_ns INTEGER, kind TEXT, detail TEXT) STRICT;
CREATE TABLE text(id INTEGER PRIMARY KEY, body TEXT) STRICT;
)sql";

inline constexpr std::array<const char*, 9> kTables{
    "meta", "phase", "request", "series", "sample", "histogram", "worker", "event", "text"};

/// Marks a field whose column is a BLOB; a plain string is TEXT.
template <typename S>
struct Blob {
  S& bytes;
};
template <typename S>
Blob(S&) -> Blob<S>;

/// `Row` or `const Row`: the writer reads fields, the reader fills them.
template <typename T, typename Row>
concept Either = std::same_as<std::remove_const_t<T>, Row>;

template <Either<RequestRecord> R, typename Visit>
void each_column(R& r, Visit&& visit) {
  visit("id", r.id);
  visit("attempt", r.attempt);
  visit("worker", r.worker);
  visit("phase", r.phase);
  visit("target", r.target);
  visit("session", r.session);
  visit("turn", r.turn);
  visit("item", r.item);
  visit("connection", r.connection);
  visit("request_id", r.request_id);
  visit("trace_id", r.trace_id);
  visit("scheduled_ns", r.scheduled);
  visit("admitted_ns", r.admitted);
  visit("send_start_ns", r.send_start);
  visit("sent_ns", r.sent);
  visit("first_byte_ns", r.first_byte);
  visit("first_event_ns", r.first_event);
  visit("first_token_ns", r.first_token);
  visit("first_output_ns", r.first_output);
  visit("last_token_ns", r.last_token);
  visit("done_ns", r.done);
  visit("dns_ns", r.dns);
  visit("tcp_ns", r.tcp);
  visit("tls_ns", r.tls);
  visit("reused", r.reused);
  visit("outcome", r.outcome);
  visit("http_status", r.http_status);
  visit("error_code", r.error_code);
  visit("error_text", r.error_text);
  visit("finish_reason", r.finish_reason);
  visit("tokens_planned", r.tokens_planned);
  visit("tokens_asked_output", r.tokens_asked_output);
  visit("tokens_local_prompt", r.tokens_local_prompt);
  visit("tokens_local_output", r.tokens_local_output);
  visit("tokens_server_prompt", r.tokens_server_prompt);
  visit("tokens_server_cached", r.tokens_server_cached);
  visit("tokens_server_output", r.tokens_server_output);
  visit("tokens_server_reasoning", r.tokens_server_reasoning);
  visit("bytes_out", r.bytes_out);
  visit("bytes_in", r.bytes_in);
  visit("reads", r.reads);
  visit("events", r.events);
  visit("nll_sum", r.nll_sum);
  visit("nll_tokens", r.nll_tokens);
  visit("score", r.score);
  visit("chunks", Blob(r.chunks));
}

template <Either<PhaseRow> R, typename Visit>
void each_column(R& r, Visit&& visit) {
  visit("id", r.id);
  visit("name", r.name);
  visit("start_ns", r.start);
  visit("end_ns", r.end);
}

template <Either<WorkerRow> R, typename Visit>
void each_column(R& r, Visit&& visit) {
  visit("id", r.id);
  visit("busy_ns", r.busy_ns);
  visit("wall_ns", r.wall_ns);
  visit("requests", r.requests);
  visit("reads", r.reads);
  visit("events", r.events);
  visit("malformed", r.malformed);
  visit("kernel_stamps", r.kernel_stamps);
  visit("user_stamps", r.user_stamps);
  visit("connects", r.connects);
  visit("sent_again", r.sent_again);
  visit("builder_stalls", r.builder_stalls);
  visit("lost", r.lost);
}

template <Either<HistogramRow> R, typename Visit>
void each_column(R& r, Visit&& visit) {
  visit("name", r.name);
  visit("worker", r.worker);
  visit("phase", r.phase);
  visit("hdr", Blob(r.hdr));
}

template <Either<EventRow> R, typename Visit>
void each_column(R& r, Visit&& visit) {
  visit("t_ns", r.at);
  visit("kind", r.kind);
  visit("detail", r.detail);
}

/// "id, attempt, …": every column of `Row`, in the order of each_column.
template <typename Row>
std::string column_list() {
  std::string list;
  const Row row{};
  each_column(row, [&](std::string_view name, const auto&) {
    if (!list.empty()) list += ", ";
    list += name;
  });
  return list;
}

}  // namespace assay::internal
