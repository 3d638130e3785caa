#!/usr/bin/env python3
"""Shows that the compiler refuses every include that the room table forbids.

Takes the compile command of one source of each room from build/layers (the `layers` preset) and
compiles scratch files with it: headers of listed rooms are found, all others are "No such file".
"""
import json
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import tidy

ROOT = pathlib.Path(__file__).resolve().parent.parent


def compile_commands():
    """room -> the command of its first source, without source and output."""
    commands = {}
    for entry in json.loads((ROOT / "build/layers/compile_commands.json").read_text()):
        room = tidy.room_of(str(pathlib.Path(entry["file"]).relative_to(ROOT)), tidy.ROOMS)
        if room is None or "verify_interface" in entry["command"]:
            continue
        words = shlex.split(entry["command"])
        keep = [word for index, word in enumerate(words)
                if word not in ("-c", "-o", entry["file"]) and words[index - 1] != "-o"]
        commands.setdefault(room, keep)
    return commands


def compiles(command, text):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "scratch.cc"
        source.write_text(text)
        got = subprocess.run([*command, "-c", source], cwd=ROOT / "build/layers",
                             capture_output=True, text=True)
        return got.returncode == 0, got.stderr


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tree = tidy.read_tree(ROOT)
        cls.lists = {room: lists for room, _, lists in tidy.room_lists(tree)}
        cls.commands = compile_commands()

    def reach(self, room):
        """The rooms that a room may see: those it lists, and what they list."""
        seen, queue = {room}, [room]
        while queue:
            for other in self.lists[queue.pop()]["DEPENDS"]:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        return seen

    def test_every_room_sees_what_it_lists_and_nothing_else(self):
        self.assertGreater(len(self.commands), 1)
        for room, command in self.commands.items():
            reach = self.reach(room)
            checks = []
            for other, lists in self.lists.items():
                for header in lists["HEADERS"][:1]:
                    forbidden = "" if other in reach else "!"
                    checks.append(f'#if !({forbidden}__has_include("{other}/{header}"))\n'
                                  f'#error "{room} and {other}"\n#endif\n')
            with self.subTest(room=room):
                good, errors = compiles(command, "".join(checks))
                self.assertTrue(good, errors)

    def test_an_upward_include_is_refused(self):
        upstairs = next(room for room in reversed(self.lists) if self.lists[room]["HEADERS"]
                        and "base/core" != room)
        header = f"{upstairs}/{self.lists[upstairs]['HEADERS'][0]}"
        good, errors = compiles(self.commands["base/core"], f'#include "{header}"\n')
        self.assertFalse(good)
        self.assertRegex(errors, re.escape(header) + ": No such file")

    def test_the_same_file_with_a_lawful_include_is_accepted(self):
        good, errors = compiles(self.commands["base/core"], '#include "base/core/text.h"\n')
        self.assertTrue(good, errors)


if __name__ == "__main__":
    unittest.main()
