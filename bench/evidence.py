"""Reads what a benchmark compares: the source's truth file and assay's ledger."""

import array
import pathlib
import sqlite3
import struct


def read_truth(path):
    """request id -> (instant the request was read, send instants), CLOCK_MONOTONIC in ns."""
    data = pathlib.Path(path).read_bytes()
    if data[:8] != b"ASAYTRU1":
        raise ValueError(f"{path} is no truth file")
    replies, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        name = data[at + 4:at + 4 + size].decode()
        at += 4 + size
        read_at, count = struct.unpack_from("<qI", data, at)
        at += 12
        replies[name] = (read_at, array.array("q", data[at:at + 8 * count]))
        at += 8 * count
    return replies


def chunk_instants(blob, scheduled):
    """Instants of a chunk blob: LEB128 varints, delta (zigzag), bytes, tokens, flags per chunk."""
    instants, now, field, value, shift = [], scheduled, 0, 0, 0
    for byte in blob:
        value |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            continue
        if field == 0:
            now += (value >> 1) ^ -(value & 1)
            instants.append(now)
        field, value, shift = (field + 1) & 3, 0, 0
    return instants


def read_ledger(path):
    """The requests that got a first token, their instants as CLOCK_MONOTONIC in ns."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as ledger:
        (start,) = ledger.execute(
            "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start_monotonic_ns'").fetchone()
        rows = ledger.execute("SELECT request_id, scheduled_ns, send_start_ns, first_token_ns,"
                              " chunks FROM request WHERE first_token_ns IS NOT NULL").fetchall()
    return [{"request_id": name, "scheduled": start + scheduled, "send_start": start + sent,
             "first_token": start + first,
             "chunks": [start + at for at in chunk_instants(chunks, scheduled)]}
            for name, scheduled, sent, first, chunks in rows]


def chunk_bytes(path):
    """Mean size of a chunk in the ledger."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as ledger:
        (chunks,) = ledger.execute("SELECT SUM(events) FROM request").fetchone()
        (held,) = ledger.execute("SELECT SUM(LENGTH(chunks)) FROM request").fetchone()
    return held / chunks


def multiply(path, target, chunks_wanted):
    """Writes to `target` the ledger at `path` with its requests repeated, one run after the other,
    until it holds so many chunks; gives their number."""
    target.write_bytes(pathlib.Path(path).read_bytes())
    with sqlite3.connect(target) as ledger:
        ledger.execute("PRAGMA synchronous = OFF")
        columns = [row[1] for row in ledger.execute("PRAGMA table_info(request)")]
        rows = ledger.execute("SELECT * FROM request WHERE first_token_ns IS NOT NULL").fetchall()
        ids = columns.index("id")
        times = [i for i, name in enumerate(columns)
                 if name.endswith("_ns") and name not in ("dns_ns", "tcp_ns", "tls_ns")]
        (span,) = ledger.execute("SELECT MAX(done_ns) FROM request").fetchone()
        each = sum(len(chunk_instants(row[columns.index("chunks")], 0)) for row in rows)
        copies = max(1, -(-chunks_wanted // each))
        places = ", ".join("?" * len(columns))
        for copy in range(1, copies):
            moved = []
            for number, row in enumerate(rows):
                row = list(row)
                row[ids] = copy * 1_000_000 + number
                for i in times:
                    row[i] = None if row[i] is None else row[i] + copy * span
                moved.append(row)
            ledger.executemany(f"INSERT INTO request VALUES ({places})", moved)
        ledger.execute("UPDATE phase SET end_ns = ? WHERE name = 'steady'", (copies * span,))
        ledger.execute("UPDATE phase SET start_ns = ?, end_ns = ? WHERE name = 'drain'",
                       (copies * span, copies * span))
    return copies * each
