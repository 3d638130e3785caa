#!/usr/bin/env python3
"""Against a real LLM engine (llama.cpp's server): what assay says must agree with what the engine
itself counted and timed, and a killed run must leave a ledger that can be read.
"""
import pathlib
import random
import re
import sqlite3
import tempfile
import time
import unittest
import urllib.request
from contextlib import closing

from assay_process import assay, real_engine, report_json, started

SLOTS = 4  # of scripts/engine
KILLS = 10
SEED = 20261201


def counters(url):
    text = urllib.request.urlopen(url + "/metrics", timeout=10).read().decode()
    return {name: float(value) for name, value in
            re.findall(r"^llamacpp:(\w+) ([\d.e+-]+)$", text, re.M)}


def rows(ledger, query):
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as base:
        return base.execute(query).fetchall()


class RealEngine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.url = cls.enterClassContext(real_engine("test"))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def measure(self, name, **flags):
        """One run; returns (report, what the engine's counters grew by, the ledger's path)."""
        words = [word for flag, value in flags.items() for word in (f"--{flag}", value)]
        ledger = self.folder / f"{name}.assay"
        before = counters(self.url)
        code, report = report_json("run", self.url, "--warmup", "0", *words, "--out", ledger)
        after = counters(self.url)
        self.assertIn(code, (0, 4), report)
        return report, {key: after[key] - before[key] for key in after}, ledger

    def test_output_tokens_equal_the_engines_own_counter(self):
        for flags in ({"concurrency": SLOTS, "requests": 24, "input": 48, "output": 24},
                      {"rate": 6, "requests": 24, "input": 32, "output": 12},
                      {"concurrency": 2 * SLOTS, "duration": "4s", "input": 32, "output": 16}):
            with self.subTest(flags=flags):
                name = "tokens-" + "-".join(map(str, flags.values()))
                report, grown, _ = self.measure(name, **flags)
                self.assertEqual(report["requests"]["failed"], 0)
                self.assertEqual(report["tokens"]["source"], "usage")
                self.assertEqual(report["tokens"]["output"], grown["tokens_predicted_total"])

    def test_latencies_agree_with_the_engines_own_timings(self):
        """One request at a time. The engine times its prompt work and its token loop; we see these
        plus HTTP, one wake-up and one write: more by a little, never less."""
        report, grown, ledger = self.measure("timings", concurrency=1, requests=12, input=64,
                                             output=48)
        count = report["requests"]["ok"]
        prompt_ms = grown["prompt_seconds_total"] * 1000 / count
        ttft_ms = report["latency"]["service_ttft_ms"]["mean"]
        self.assertGreater(ttft_ms, prompt_ms * 0.98)
        self.assertLess(ttft_ms, prompt_ms * 1.10 + 25)
        decode_ms = grown["tokens_predicted_seconds_total"] * 1000 / count
        seen = rows(ledger, "SELECT avg(last_token_ns - first_token_ns) / 1e6 FROM request")[0][0]
        self.assertLess(abs(seen - decode_ms), decode_ms * 0.05 + 5)

    def test_waiting_for_a_slot_is_ttft_and_not_connect_time(self):
        """The engine withholds the response headers while its slots are full."""
        report, _, ledger = self.measure("queue", concurrency=3 * SLOTS, requests=36, input=32,
                                         output=32)
        self.assertEqual(report["requests"]["ok"], 36)
        connect, wait = rows(ledger, "SELECT max(tcp_ns), max(first_token_ns - send_start_ns) "
                                     "FROM request")[0]
        self.assertLess(connect, 100e6)
        self.assertGreater(wait, 300e6)

    def test_an_over_long_prompt_is_an_http_error_with_the_engines_words(self):
        report, _, ledger = self.measure("long", concurrency=1, requests=1, input=4000, output=4)
        self.assertEqual(report["requests"]["outcomes"].get("http_error"), 1)
        status, text = rows(ledger, "SELECT http_status, error_text FROM request")[0]
        self.assertEqual(status, 400)
        self.assertIn("context", text)

    def test_a_killed_run_leaves_a_ledger_that_says_interrupted(self):
        chance = random.Random(SEED)
        for kill in range(KILLS):
            delay_s = chance.uniform(1.0, 4.0)
            with self.subTest(kill=kill, delay_s=delay_s):
                ledger = self.folder / f"killed-{kill}.assay"
                with started("run", self.url, "--concurrency", SLOTS, "--duration", "60s",
                             "--warmup", "0", "--input", 16, "--output", 4, "--out",
                             ledger) as process:
                    time.sleep(delay_s)
                    process.kill()
                    process.wait()
                self.assert_interrupted(ledger, delay_s)

    def assert_interrupted(self, ledger, delay_s):
        got = assay("report", ledger)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        self.assertIn("interrupted", got.stdout)
        # Lost is at most the last second; the start of the process and one request take a part of
        # the delay, too.
        last = rows(ledger, "SELECT coalesce(max(done_ns), 0) FROM request")[0][0] / 1e9
        self.assertGreater(last, delay_s - 1.0 - 0.8)


if __name__ == "__main__":
    unittest.main()
