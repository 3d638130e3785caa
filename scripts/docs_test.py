#!/usr/bin/env python3
"""The commands of the papers work as printed.

Every ```sh block of docs/howto/*.md is run, in order, as one shell script from the top of the tree.
In README.md and CONTRIBUTING.md, where blocks build and test, the flags of every `assay` command
must be known to `--help` (tidy checks that programs and make verbs exist).
"""
import collections
import os
import re
import subprocess
import unittest

import tidy
from assay_process import ASSAY, ROOT, assay

HOWTO_TIMEOUT_S = 180
RUN_INVALID = 4  # assay's word that the machine was too busy to measure: no fault of the paper
TRIES = 3


class Papers(unittest.TestCase):
    def test_flags_in_the_front_papers_exist(self):
        for path, line, command in tidy.shell_commands(tidy.read_tree(ROOT)):
            words = command.split()
            if "/" in path or not words[0].endswith("assay"):
                continue
            verbs = []
            for word in words[1:]:
                if not re.fullmatch(r"[a-z]+", word):
                    break
                verbs.append(word)
            shown = assay(*verbs, "--help").stdout
            for flag in re.findall(r"--[a-z-]+", command):
                with self.subTest(place=f"{path}:{line}", flag=flag):
                    self.assertRegex(shown, rf"{flag}\b")

    def test_howto_documents_run(self):
        scripts = collections.defaultdict(str)
        for document, _, line in tidy.shell_lines(tidy.read_tree(ROOT)):
            if document.startswith("docs/howto/"):
                scripts[document] += line + "\n"
        self.assertNotEqual(scripts, {})
        for document, script in scripts.items():
            with self.subTest(document=document):
                for _ in range(TRIES):
                    got = self.play(script)
                    if got.returncode != RUN_INVALID:
                        break
                self.assertEqual(got.returncode, 0, script + "\n" + got.stdout + got.stderr)

    def play(self, script):
        path = f"{ASSAY.parent}:{os.environ['PATH']}"
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT,
                              env=os.environ | {"PATH": path}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=HOWTO_TIMEOUT_S)


if __name__ == "__main__":
    unittest.main()
