#!/usr/bin/env python3
"""The command line from outside: exit codes, messages and files of the release binary."""
import json
import pathlib
import re
import sqlite3
import tempfile
import time
import unittest
from contextlib import closing

from assay_process import assay, interrupt, report_json, scripted_engine, started

NOBODY = "http://127.0.0.1:1"  # port 1 is closed on any machine that runs these tests
SHORT = ("--concurrency", 2, "--warmup", "0", "--input", 16, "--output", 8)


class Offline(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuses(self, code, *words, says=()):
        got = assay(*words, cwd=self.folder)
        self.assertEqual(got.returncode, code, got.stdout + got.stderr)
        for text in says:
            self.assertIn(text, got.stderr)
        self.assertEqual(list(self.folder.glob("*.assay")), [], "a refused run leaves no ledger")

    def test_version_names_number_and_commit(self):
        got = assay("--version")
        self.assertEqual(got.returncode, 0)
        self.assertRegex(got.stdout, r"^assay \d+\.\d+\.\d+ .*\b[0-9a-f]{7,}")

    def test_help_of_every_command_goes_to_stdout(self):
        for words in ((), ("run",), ("report",), ("audit",), ("sim",), ("sim", "serve")):
            with self.subTest(words=words):
                got = assay(*words, "--help")
                self.assertEqual((got.returncode, got.stderr), (0, ""))
                self.assertIn("Usage", got.stdout)

    def test_unknown_flag(self):
        self.refuses(2, "run", NOBODY, "--concurency", 4, says=["--concurency"])

    def test_all_problems_are_listed_at_once(self):
        self.refuses(2, "run", NOBODY, "--duration", "5", "--rate=-3", "--timeout", "soon",
                     says=["--duration", "--rate", "--timeout"])

    def test_open_and_closed_loop_exclude_each_other(self):
        self.refuses(2, "run", NOBODY, "--rate", 5, "--concurrency", 4, says=["--rate"])

    def test_bad_spec_file_names_file_and_line(self):
        spec = self.folder / "bad.yaml"
        spec.write_text("assay: 1\nload: {concurrency: 4}\nworkload: {inputs: 5}\n")
        self.refuses(2, "run", NOBODY, "--spec", spec, says=["bad.yaml:3", "inputs"])

    def test_nobody_listens(self):
        self.refuses(3, "run", NOBODY, "--duration", "1s", says=["127.0.0.1:1"])

    def test_too_many_connections_for_this_machine(self):
        self.refuses(7, "run", NOBODY, "--concurrency", 5_000_000, "--duration", "1s",
                     says=["descriptors"])

    def test_dry_run_sends_nothing_and_writes_nothing(self):
        got = assay("run", NOBODY, "--dry-run", "--model", "m", "--requests", 10,
                    cwd=self.folder)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_report_of_what_is_no_ledger(self):
        (self.folder / "text.assay").write_text("hello\n")
        for name in ("none.assay", "text.assay", "."):
            with self.subTest(name=name):
                got = assay("report", self.folder / name)
                self.assertEqual(got.returncode, 2)
                self.assertIn(name, got.stderr)

    def test_existing_file_is_not_overwritten(self):
        kept = self.folder / "kept.db"
        kept.write_text("precious")
        self.refuses(2, "run", NOBODY, "--out", kept, says=["kept.db"])
        self.assertEqual(kept.read_text(), "precious")


class AgainstScriptedEngine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.url = cls.enterClassContext(scripted_engine())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def test_run_and_report_agree_to_the_byte(self):
        ledger = self.folder / "agree.assay"
        code, ran = report_json("run", self.url, *SHORT, "--requests", 10, "--out", ledger)
        self.assertIn(code, (0, 4))
        self.assertEqual((ran["schema"], ran["run"]["state"]), ("assay.report/1", "complete"))
        self.assertEqual((ran["requests"]["ok"], ran["tokens"]["output"]), (10, 80))
        code, shown = report_json("report", ledger)
        self.assertEqual((code, shown), (0, ran))

    def test_summary_fits_one_screen_without_colours(self):
        ledger = self.folder / "screen.assay"
        assay("run", self.url, *SHORT, "--requests", 10, "--out", ledger)
        lines = assay("report", ledger).stdout.splitlines()
        self.assertLessEqual(len(lines), 30)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertNotIn("\x1b", "".join(lines))

    def test_check_gives_4_for_an_invalid_run_only(self):
        ledger = self.folder / "check.assay"
        code, ran = report_json("run", self.url, *SHORT, "--requests", 10, "--out", ledger)
        self.assertEqual(code, 4 if ran["validity"]["verdict"] == "invalid" else 0)
        self.assertEqual(assay("report", "--check", ledger).returncode, code)

    def test_ctrl_c_drains_reports_and_keeps_the_ledger(self):
        ledger = self.folder / "interrupted.assay"
        with started("run", self.url, *SHORT, "--duration", "60s", "--out", ledger) as process:
            wait_for_rows(ledger, 1)
            interrupt(process)
            out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("interrupted", out)
        self.assertEqual(report_json("report", ledger)[1]["run"]["state"], "interrupted")

    def test_a_reader_at_the_end_of_the_run_is_told_and_changes_nothing(self):
        ledger = self.folder / "read.assay"
        with started("run", self.url, *SHORT, "--duration", "2s", "--out", ledger) as process:
            wait_for_rows(ledger, 1)
            with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True,
                                         isolation_level=None)) as base:
                base.execute("BEGIN")
                base.execute("SELECT count(*) FROM request").fetchone()
                out, err = process.communicate(timeout=30)
        self.assertIn(process.returncode, (0, 4), out + err)
        self.assertIn("another process reads the ledger", err)
        self.assertEqual(report_json("report", ledger)[1]["run"]["state"], "complete")

    def test_prompt_prints_the_ttft_line(self):
        got = assay("run", self.url, "--prompt", "Say hello.", "--requests", 1, "--warmup", "0",
                    "--out", self.folder / "prompt.assay")
        self.assertRegex(got.stdout, re.compile(r"^TTFT: [\d.]+ ms$", re.M))

    def test_secrets_stay_out_of_the_ledger(self):
        ledger = self.folder / "secret.assay"
        assay("run", self.url, *SHORT, "--requests", 2, "--header", "X-Api-Key: hush-5f2a",
              "--out", ledger)
        self.assertNotIn(b"hush-5f2a", ledger.read_bytes())


class Audit(unittest.TestCase):
    """The audit as it is: a child process, sockets, real time. Whether this machine passes is its
    own business; that a broken instrument fails is ours."""

    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.env = {"XDG_STATE_HOME": str(cls.home)}
        cls.kept = cls.home / "assay" / "audit.json"
        started_at = time.monotonic()
        cls.code, cls.audit = report_json("audit", "--quick", env=cls.env)
        cls.took_s = time.monotonic() - started_at

    def test_has_the_schema_and_a_verdict_that_is_the_exit_code(self):
        self.assertEqual(self.audit["schema"], "assay.audit/1")
        self.assertEqual(self.code, {"pass": 0, "fail": 4}[self.audit["verdict"]])
        broken = [rung["name"] for rung in self.audit["rungs"]
                  if rung["must"] and rung["limit_broken"]]
        self.assertEqual(self.audit["verdict"], "fail" if broken else "pass")
        self.assertLess(self.took_s, 30)  # 20 on a machine of its own

    def test_every_event_was_joined(self):
        for rung in self.audit["rungs"]:
            with self.subTest(rung=rung["name"]):
                self.assertGreater(rung["events"], 0)
                lost = (rung["failed"], rung["unmatched"], rung["events_lost"])
                self.assertEqual(lost, (0, 0, 0))
                for key in ("streams", "events_per_s", "ttft_bias_ms", "ttft_err_p99_ms",
                            "stamp_err_p99_us", "send_lag_p99_us", "kernel_stamp_share",
                            "cpu_s_per_m_events"):
                    self.assertIsInstance(rung[key], (int, float), key)

    def test_all_that_a_stall_makes_late_is_told_as_late(self):
        stall = next(rung for rung in self.audit["rungs"] if rung["late"] is not None)
        self.assertGreater(stall["late"], 10)
        self.assertEqual(stall["late_untold"], 0)

    def test_the_result_is_kept_and_a_run_beyond_it_is_warned(self):
        audit = json.loads(self.kept.read_text())
        self.assertEqual(audit, self.audit)
        audit["trust"] = {"events_per_s": 1, "streams": 1}
        beyond = self.home / "beyond"
        (beyond / "assay").mkdir(parents=True)
        (beyond / "assay" / "audit.json").write_text(json.dumps(audit))
        with scripted_engine() as url:
            got = assay("run", url, *SHORT, "--requests", 10, "--format", "json", "--out",
                        self.home / "beyond.assay", env={"XDG_STATE_HOME": str(beyond)})
        self.assertIn("beyond the last audit", got.stderr)
        checks = {check["name"]: check for check in json.loads(got.stdout)["validity"]["checks"]}
        self.assertEqual((checks["audit"]["status"], checks["audit"]["must"]), ("fail", False))

    def test_a_broken_instrument_fails_and_leaves_the_kept_result_alone(self):
        before = self.kept.read_bytes()
        code, audit = report_json("audit", "--quick", "--inject", "late-stamp=1ms", env=self.env)
        self.assertEqual((code, audit["verdict"]), (4, "fail"))
        self.assertEqual(audit["trust"], {"events_per_s": 0, "streams": 0})
        for rung in audit["rungs"]:
            self.assertIn("ttft_bias_ms", rung["limit_broken"] or "", rung["name"])
        self.assertEqual(self.kept.read_bytes(), before)

    def test_a_server_of_yours_is_told_apart(self):
        with scripted_engine() as url:
            code, audit = report_json("audit", "--target", url)
        self.assertIn(code, (0, 4))
        self.assertEqual(audit["trust"], {"events_per_s": None, "streams": None})
        self.assertGreater(audit["target"]["floor_min_ms"], 0)
        self.assertGreater(audit["target"]["round_trip_min_us"], 0)

    def test_ctrl_c_ends_it_and_its_server_and_keeps_nothing(self):
        home = self.home / "interrupted"
        with started("audit", env={"XDG_STATE_HOME": str(home)}) as process:
            self.assertIn("rung 1", process.stderr.readline())
            self.assertIn("rung 2", process.stderr.readline())
            interrupt(process)
            out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("interrupted", err)
        self.assertFalse(home.exists())


def wait_for_rows(ledger, count, timeout_s=20):
    """Returns once the ledger holds that many requests."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as base:
                if base.execute("SELECT count(*) FROM request").fetchone()[0] >= count:
                    return
        except sqlite3.OperationalError:
            pass  # not there yet
        time.sleep(0.05)
    raise AssertionError(f"{ledger} held fewer than {count} requests after {timeout_s} s")


if __name__ == "__main__":
    unittest.main()
