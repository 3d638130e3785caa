"""The built binary as the end-to-end tests see it: a process, files and a scripted engine."""
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ASSAY = pathlib.Path(os.environ.get("ASSAY", ROOT / "build" / "release" / "assay"))
TIMEOUT_S = 90


def assay(*words, cwd=ROOT, timeout_s=TIMEOUT_S, env=None):
    """Runs to the end; the result has returncode, stdout and stderr. `env` is added to ours."""
    return subprocess.run([ASSAY, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout_s,
                          env=os.environ | (env or {}))


def report_json(*words, **options):
    """(exit code, the one object that `--format json` prints)."""
    got = assay(*words, "--format", "json", **options)
    try:
        return got.returncode, json.loads(got.stdout)
    except json.JSONDecodeError:
        raise AssertionError(f"exit {got.returncode}, no JSON: {got.stdout}{got.stderr}") from None


@contextlib.contextmanager
def started(*words, cwd=ROOT, env=None):
    """A process in the background, killed at the end if it still lives."""
    process = subprocess.Popen([ASSAY, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | (env or {}))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextlib.contextmanager
def served(*words):
    """`assay sim serve` with these flags, on a free port; yields its process and its URL."""
    with started("sim", "serve", *words) as process:
        deadline = time.monotonic() + 10
        line = ""
        while time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 0.1)[0]:
                line = process.stdout.readline()
                break
        url = re.search(r"http://[\w.:\[\]-]+", line)
        if not url:
            raise AssertionError(f"sim serve did not say its address, but: {line!r}")
        yield process, url[0]


@contextlib.contextmanager
def scripted_engine(script=ROOT / "scripts" / "quickstart-script.yaml"):
    """A server that plays a script; yields its URL."""
    with served("--script", script) as (_, url):
        yield url


@contextlib.contextmanager
def real_engine(name):
    """llama.cpp's server, by scripts/engine; yields its URL."""
    script = ROOT / "scripts" / "engine"
    command = [script, "start", "llama", "--name", name, "--owner", str(os.getpid())]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    try:
        yield subprocess.run([script, "url", "llama", "--name", name], check=True,
                             capture_output=True, text=True).stdout.strip()
    finally:
        subprocess.run([script, "stop", "llama", "--name", name], check=True)


def interrupt(process):
    process.send_signal(signal.SIGINT)
