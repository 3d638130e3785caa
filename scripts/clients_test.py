#!/usr/bin/env python3
"""Other people's clients against the simulated engine: the official `openai` library, curl, a load
tester (llmeter), and assay itself. What they measure must agree with when the server really sent.

The Python clients are fetched once, pinned by scripts/client_requirements.txt, into
$XDG_CACHE_HOME/assay/clients (or ~/.cache/assay/clients).
"""
import asyncio
import contextlib
import hashlib
import io
import json
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest
from contextlib import closing

from assay_process import ROOT, TIMEOUT_S, assay, served

REQUIREMENTS = ROOT / "scripts" / "client_requirements.txt"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ENGINE = ("--servers", "64", "--ttft", "det:40ms", "--gap", "det:5ms")
# What Python adds on a busy machine of two cores; its own bias is a few milliseconds.
LOAD_TESTER_ERROR_MS = 25
# assay's median; it is below 10 us when the machine is quiet.
ASSAY_ERROR_US = 100


def fetch_clients():
    """Makes the pinned packages importable."""
    name = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    folder = CACHE / "assay" / "clients" / f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", fresh,
                            "--disable-pip-version-check", "--no-compile", "--no-warn-conflicts",
                            "--root-user-action=ignore", "-r", REQUIREMENTS],
                           check=True, stdin=subprocess.DEVNULL)
            # Whole or not at all: another run may be fetching too.
            with contextlib.suppress(OSError):
                os.rename(fresh, folder)
                os.mkdir(fresh)
    sys.path.insert(0, str(folder))


fetch_clients()
import openai  # noqa: E402
from llmeter.endpoints import OpenAICompletionStreamEndpoint  # noqa: E402
from llmeter.runner import Runner  # noqa: E402

HELLO = [{"role": "user", "content": "one two three"}]


def library(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


@contextlib.contextmanager
def faulty(fault):
    """The engine with one fault in every request; yields the openai library on it."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as spec:
        spec.write(f"sim:\n  ttft: 5ms\n  gap: 1ms\n  faults: [{{{fault}, every: 1}}]\n")
        spec.flush()
        with served("--sim", spec.name) as (_, url):
            yield library(url)


class OpenAiLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        _, url = cls.enterClassContext(served(*ENGINE))
        cls.client = library(url)

    def test_streams_with_usage(self):
        stream = self.client.chat.completions.create(
            model="any", messages=HELLO, max_tokens=7, stream=True,
            stream_options={"include_usage": True})
        chunks = list(stream)
        texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        self.assertEqual(len([text for text in texts if text]), 7)
        self.assertEqual(chunks[-1].usage.prompt_tokens, 3)
        self.assertEqual(chunks[-1].usage.completion_tokens, 7)
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices][-1], "length")

    def test_whole_replies_of_both_kinds(self):
        chat = self.client.chat.completions.create(model="any", messages=HELLO, max_tokens=4)
        self.assertEqual(len(chat.choices[0].message.content.split()), 4)
        self.assertEqual(chat.usage.total_tokens, 7)
        text = self.client.completions.create(model="any", prompt="a b", max_tokens=3)
        self.assertEqual(len(text.choices[0].text.split()), 3)

    def test_lists_the_model(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["sim"])

    def test_errors_are_of_their_kind(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="any", messages=[], max_tokens=4)
        self.assertEqual(caught.exception.param, "messages")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="any", messages=HELLO, n=2)
        self.assertEqual(caught.exception.param, "n")

    def test_faults_are_seen(self):
        with faulty("do: http_error, status: 429, retry_after: 3s") as client:
            with self.assertRaises(openai.RateLimitError) as caught:
                client.chat.completions.create(model="any", messages=HELLO)
            self.assertEqual(caught.exception.response.headers["retry-after"], "3")
        with faulty("do: error_object, after: 2") as client:
            with self.assertRaises(openai.APIError):
                list(client.chat.completions.create(model="any", messages=HELLO, stream=True))
        for harmless in ("do: crlf", "do: comments", "do: split_utf8",
                         "do: slow_loris, pause: 1us"):
            with self.subTest(harmless), faulty(harmless) as client:
                chunks = list(client.chat.completions.create(
                    model="any", messages=HELLO, max_tokens=5, stream=True))
                texts = [c.choices[0].delta.content for c in chunks if c.choices]
                self.assertEqual(len("".join(text or "" for text in texts).split()), 5)


class Curl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        _, cls.url = cls.enterClassContext(served(*ENGINE))

    def curl(self, path, *words):
        got = subprocess.run(["curl", "-sN", "--max-time", "20", self.url + path, *words],
                             capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(got.returncode, 0, got.stderr)
        return got.stdout

    def test_streams_to_the_end(self):
        body = json.dumps({"messages": HELLO, "max_tokens": 6, "stream": True})
        reply = self.curl("/v1/chat/completions", "-d", body)
        events = [line for line in reply.split("\n\n") if line]
        self.assertEqual(len(events), 6 + 3)  # role, finish reason, [DONE]
        self.assertEqual(events[-1], "data: [DONE]")
        for event in events[:-1]:
            json.loads(event.removeprefix("data: "))

    def test_status_codes(self):
        for path, words, status in (("/health", [], 200), ("/nowhere", [], 404),
                                    ("/v1/completions", [], 405),
                                    ("/v1/completions", ["-d", "{"], 400)):
            with self.subTest(path=path, words=words):
                shown = self.curl(path, "-o", os.devnull, "-w", "%{http_code}", *words)
                self.assertEqual(shown, str(status))

    def test_a_body_of_two_megabytes(self):
        body = json.dumps({"prompt": "word " * 400_000, "max_tokens": 1})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(body)
            file.flush()
            reply = json.loads(self.curl("/v1/completions", "-d", "@" + file.name))
        self.assertEqual(reply["usage"]["prompt_tokens"], 400_000)


def varints(blob):
    value = shift = 0
    for byte in blob:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def instants(scheduled, blob):
    """When each chunk came or left (docs/formats/ledger.md)."""
    numbers = list(varints(blob))
    at = scheduled
    out = []
    for delta in numbers[::4]:
        at += (delta >> 1) ^ -(delta & 1)
        out.append(at)
    return out


def read_requests(path):
    """By request id, instants on the machine's own clock."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        start = int(base.execute(
            "SELECT value FROM meta WHERE key = 'start_monotonic_ns'").fetchone()[0])
        rows = base.execute(
            "SELECT request_id, scheduled_ns, send_start_ns, first_token_ns, outcome,"
            " tokens_server_output, chunks FROM request").fetchall()
    found = {}
    for name, scheduled, sent, first, outcome, tokens, chunks in rows:
        found[name] = {"sent": start + sent, "first": start + first, "outcome": outcome,
                       "tokens": tokens,
                       "chunks": [start + at for at in instants(scheduled, chunks)]}
    return found


class Truth(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.ledger = self.folder / "truth.assay"

    @contextlib.contextmanager
    def engine(self):
        """Serves with a ledger, which is closed when this ends."""
        with served(*ENGINE, "--ledger", self.ledger) as (process, url):
            yield url
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=5), 0)

    def test_a_load_tester_agrees_within_its_own_error(self):
        with self.engine() as url:
            endpoint = OpenAICompletionStreamEndpoint("sim", base_url=url + "/v1", api_key="none",
                                                      max_retries=0)
            payload = endpoint.create_payload("one two three", max_tokens=10)
            with contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                result = asyncio.run(Runner(endpoint).run(payload=payload, n_requests=10,
                                                          clients=4))
        truth = read_requests(self.ledger)
        errors = []
        for response in result.responses:
            self.assertIsNone(response.error)
            self.assertEqual(response.num_tokens_output, 10)
            request = truth[response.id.removeprefix("chatcmpl-")]
            true_s = (request["first"] - request["sent"]) / 1e9
            errors.append((response.time_to_first_token - true_s) * 1e3)
        self.assertEqual(len(errors), 40)
        self.assertGreater(min(errors), 0)  # no client sees a token before it left
        self.assertLess(statistics.median(errors), LOAD_TESTER_ERROR_MS)

    def test_assay_agrees_to_the_microsecond(self):
        seen_path = self.folder / "seen.assay"
        with self.engine() as url:
            got = assay("run", url, "--concurrency", 16, "--requests", 200, "--warmup", "0",
                        "--input", 20, "--output", 20, "--out", seen_path)
        self.assertIn(got.returncode, (0, 4), got.stderr)
        truth, seen = read_requests(self.ledger), read_requests(seen_path)
        self.assertEqual(set(truth), set(seen))
        stamps, gaps = [], []
        for name, request in seen.items():
            true = truth[name]
            self.assertEqual((request["outcome"], request["tokens"]), ("ok", 20))
            self.assertEqual((true["outcome"], true["tokens"]), ("ok", 20))
            self.assertEqual(len(true["chunks"]), len(request["chunks"]))
            lags = [a - b for a, b in zip(request["chunks"], true["chunks"])]
            stamps += [lag / 1e3 for lag in lags]
            gaps += [abs(b - a) / 1e3 for a, b in zip(lags, lags[1:])]
        self.assertLess(statistics.median(stamps), ASSAY_ERROR_US)
        self.assertGreater(min(stamps), -ASSAY_ERROR_US)
        self.assertLess(statistics.median(gaps), ASSAY_ERROR_US)


if __name__ == "__main__":
    unittest.main()
