#!/usr/bin/env python3
"""Runs the parts of ./test, the cheap ones first, to the end whatever fails.

A part that can't be built counts as one failed test. The whole output of each part is kept in
build/test-logs/PART.log. The last line printed is the sum: "N passed, N failed".
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
BUILD_TIMEOUT_S = 1800
PART_TIMEOUT_S = 900
FUZZ_S = 10
TSAN_ROOMS = ["engine_net", "engine_load", "domain_ledger"]

Count = collections.namedtuple("Count", "passed failed")
FAILED = Count(0, 1)
PASSED = Count(1, 0)


class Part:
    """One part in progress: runs commands, their output going to its log."""

    def __init__(self, name):
        self.log_path = LOGS / f"{name}.log"
        self.log = open(self.log_path, "w", encoding="utf-8")

    def run(self, *command, timeout_s=PART_TIMEOUT_S):
        """True when the command ended with 0 in time."""
        words = [str(word) for word in command]
        self.say("$ " + " ".join(words))
        try:
            return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.log,
                                  stderr=subprocess.STDOUT, timeout=timeout_s).returncode == 0
        except subprocess.TimeoutExpired:
            self.say(f"stopped: not done after {timeout_s} s")
        except OSError as error:
            self.say(f"can't run {words[0]}: {error}")
        return False

    def say(self, text):
        self.log.write(text + "\n")
        self.log.flush()

    def build(self, preset, *targets, options=()):
        goal = ["--target", *targets] if targets else []
        return (self.run("cmake", "--preset", preset, *options) and
                self.run("cmake", "--build", "--preset", preset, *goal, "--", "-k", "0",
                         timeout_s=BUILD_TIMEOUT_S))

    def ctest(self, preset):
        """Counts test by test; no report or no test at all is a failure."""
        junit = ROOT / "build" / preset / "junit.xml"
        junit.unlink(missing_ok=True)
        self.run("ctest", "--preset", preset, "--output-junit", junit)
        if not junit.exists():
            return FAILED
        cases = list(xml.etree.ElementTree.parse(junit).getroot().iter("testcase"))
        passed = sum(case.get("status") == "run" for case in cases)
        return Count(passed, len(cases) - passed) if cases else FAILED

    def python(self, script):
        """Counts the tests of a unittest script by its own closing lines."""
        ended_well = self.run(sys.executable, "-B", ROOT / "scripts" / script, "-v")
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        ran = re.search(r"^Ran (\d+) tests? in", text, re.M)
        if not ran or int(ran[1]) == 0:
            return FAILED
        bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", text))
        bad = max(bad, 0 if ended_well else 1)
        return Count(max(0, int(ran[1]) - bad), bad)


def part_format(part):
    """clang-format changes nothing"""
    listed = subprocess.run(["git", "ls-files", "*.cc", "*.h"], cwd=ROOT, capture_output=True,
                            text=True, check=False).stdout.split()
    files = listed or [path for path in ROOT.glob("src/**/*.[ch]*")]
    return PASSED if part.run("clang-format-19", "--dry-run", "-Werror", *files) else FAILED


def part_release(part):
    """release build, all unit tests, the laws of the house"""
    if not part.build("release", options=["-DASSAY_TESTS=ON", "-DASSAY_BENCH=ON"]):
        return FAILED
    return part.ctest("release")


def part_layers(part):
    """every room and header compiles seeing only what it lists; upward includes are refused"""
    if not part.build("layers"):
        return FAILED
    checked = part.python("layers_test.py")
    return Count(checked.passed + 1, checked.failed)


def part_cli(part):
    """the command line from outside: exit codes, messages, files"""
    if not part.build("release", "assay", options=[]):
        return FAILED
    return part.python("cli_test.py")


def part_asan(part):
    """all unit tests under the address and undefined-behaviour sanitizers"""
    return part.ctest("asan") if part.build("asan") else FAILED


def part_tsan(part):
    """net, load and ledger under the thread sanitizer"""
    if not part.build("tsan", *(room + "_test" for room in TSAN_ROOMS)):
        return FAILED
    return part.ctest("tsan")


def part_fuzz(part):
    """every fuzzer for 10 seconds, from the corpus in the tree"""
    if not part.build("fuzz"):
        return FAILED
    fuzzers = sorted(path for path in (ROOT / "build/fuzz/fuzzers").glob("*") if path.is_file())
    results = [fuzz(part, fuzzer) for fuzzer in fuzzers]
    return Count(sum(results), len(results) - sum(results)) if results else FAILED


def fuzz(part, fuzzer):
    corpus = ROOT / "fuzz" / "corpus" / fuzzer.name
    with tempfile.TemporaryDirectory() as found:
        folders = [found] + ([corpus] if corpus.is_dir() else [])
        return part.run(fuzzer, f"-max_total_time={FUZZ_S}", "-timeout=5", "-rss_limit_mb=2048",
                        f"-artifact_prefix={LOGS}/{fuzzer.name}-", *folders,
                        timeout_s=FUZZ_S + 60)


def part_bench(part):
    """the benchmarks, small, so that they never rot"""
    if not part.build("release"):
        return FAILED
    return PASSED if part.run(ROOT / "bench" / "run", "--smoke") else FAILED


def part_engine(part):
    """against a real engine: counters agree, kill -9 leaves a readable ledger"""
    return part.python("real_engine_test.py") if part.build("release", "assay") else FAILED


def part_clients(part):
    """other clients work against the simulated engine, and its ledger tells their truth"""
    return part.python("clients_test.py") if part.build("release", "assay") else FAILED


def part_docs(part):
    """the commands of the README and of docs/howto work as printed"""
    return part.python("docs_test.py") if part.build("release", "assay") else FAILED


PARTS = {function.__name__.removeprefix("part_"): function for function in (
    part_format, part_release, part_layers, part_cli, part_asan, part_tsan, part_fuzz, part_bench,
    part_engine, part_clients, part_docs)}


def run_part(name):
    print(f"-- {name}: {PARTS[name].__doc__}", flush=True)
    started = time.monotonic()
    part = Part(name)
    count = PARTS[name](part)
    verdict = "FAIL" if count.failed else "ok"
    print(f"   {verdict:5}{count.passed + count.failed:4} tests, {count.failed} failed, "
          f"{time.monotonic() - started:.0f} s", flush=True)
    if count.failed:
        part.log.flush()
        lines = part.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join("   | " + line for line in lines[-40:]))
        print(f"   whole log: {part.log_path.relative_to(ROOT)}", flush=True)
    return count


def main():
    described = "\n".join(f"  {name:9}{function.__doc__}" for name, function in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="./test", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds and tests; without a part: everything, as CI does.",
        epilog=f"parts:\n{described}\n  fast     the same as: format release")
    parser.add_argument("part", nargs="*", help="run only these, in this order")
    asked = parser.parse_args().part or list(PARTS)
    groups = {"fast": ["format", "release"]}
    asked = [name for word in asked for name in groups.get(word, [word])]
    if unknown := [name for name in asked if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)} (see ./test --help)")
    os.makedirs(LOGS, exist_ok=True)
    counts = [run_part(name) for name in asked]
    failed = sum(count.failed for count in counts)
    print(f"{sum(count.passed for count in counts)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
