#!/usr/bin/env python3
"""Proves of every rule of tidy.py that it accepts a good tree and can fail on a bad one."""
import unittest

import tidy

HEADER = "// What it is for. What it promises.\n#pragma once\n"
ROOM = "room(base/core\n  SOURCES a.cc\n  HEADERS a.h\n  TESTS a_test.cc)\n"
SPEC = "room(domain/spec SOURCES s.cc DEPENDS base/core)\n"
GOOD = {
    "src/base/core/CMakeLists.txt": ROOM,
    "src/base/core/a.h": HEADER,
    "src/base/core/a.cc": '#include "base/core/a.h"\nint x = 1;  // TO' 'DO(#12): tell why\n',
    "src/base/core/a_test.cc": '#include "base/core/a.h"\nauto c = "cases/stream";\n',
    "src/domain/spec/CMakeLists.txt": SPEC,
    "src/domain/spec/s.cc": '#include <vector>\n#include "base/core/a.h"\n',
    "cases/stream/one.txt": "ends without a newline, with blanks  ",
    "Makefile": "check:\n\ttrue\n",
    "README.md": "# One\n\nSee [the map](docs/map.md#x).\n\n"
                 "```sh\n# a comment\nmake check\n./go\n```\n",
    "docs/map.md": "# Map\n",
    "go": "#!/bin/sh\n",
}
CORE = "src/base/core/"
LONG_FILE = "x\n" * (tidy.FILE_LINES_MAX + 1)

# rule -> changes to the good tree, each of which the rule must refuse (None removes a file).
BAD = {
    "banned_words": [{CORE + "a.cc": line + "\n"} for line in (
        "auto t = std::chrono::system_clock::now();", "std::this_thread::sleep_for(1s);",
        "int r = rand();", "std::normal_distribution<> d;", "double d = strtod(s, 0);",
        "int i = std::stoi(s);", "// F" "IXME: later", "// X" "XX", "throw 1;", "assert(x);",
        "GTEST_SKIP();", "class IClock {};", "class ClockImpl {};", '#include "../x.h"',
        "int y;  // NOLINT", "int y;  // NOLINT(some-check)")],
    "empty_names": [{"src/base/utils/a.txt": ""}, {"scripts/helpers.py": ""}],
    "todo_form": [{CORE + "a.cc": "// TO" "DO: later\n"}, {CORE + "a.cc": "// TO" "DO(me): x\n"}],
    "file_length": [{CORE + "a.cc": LONG_FILE}],
    "line_length": [{CORE + "a.cc": "x" * (tidy.COLUMNS_MAX + 1) + "\n"}],
    "white_space": [{"README.md": "# One \n"}, {"README.md": "# One"}, {CORE + "a.cc": "\tx\n"}],
    "executable_bits": [{"new": tidy.File("#!/bin/sh\n", False)}, {"new": tidy.File("x\n", True)}],
    "header_opening": [{CORE + "a.h": "#pragma once\n"}, {CORE + "a.h": "// Purpose.\n"}],
    "room_table": [
        {"src/base/core/CMakeLists.txt": "room(base/core DEPENDS domain/spec)\n"},
        {"src/base/attic/CMakeLists.txt": "room(base/attic)\n"},
        {"src/CMakeLists.txt": "room(base/stats)\n"}],
    "room_includes": [
        {CORE + "a.cc": '#include "domain/spec/s.h"\n'},
        {"src/domain/spec/s.cc": '#include "base/core/hidden.h"\n'},
        {"src/domain/spec/CMakeLists.txt": "room(domain/spec SOURCES s.cc)\n"},
        {CORE + "a.cc": '#include "sqlite3.h"\n'}],
    "dead_files": [{CORE + "b.cc": ""}, {"src/stray.cc": ""}],
    "dead_depends": [{"src/domain/spec/s.cc": "int x;\n"}],
    "one_title": [{"README.md": "# One\n\n# Two\n"}, {"README.md": "no title\n"}],
    "links": [{"docs/map.md": None}],
    "commands_exist": [{"Makefile": "other:\n"}, {"go": None}, {"go": tidy.File("x\n", False)}],
    "cases_used": [{"cases/unused/one.txt": ""}],
}


def tree_with(changes):
    tree = {path: tidy.File(text, text.startswith("#!")) for path, text in GOOD.items()}
    for path, change in changes.items():
        if change is None:
            del tree[path]
        else:
            tree[path] = change if isinstance(change, tidy.File) else tidy.File(change, False)
    return tree


class Rules(unittest.TestCase):
    def test_good_tree_has_no_problem(self):
        self.assertEqual(tidy.problems(tree_with({})), [])

    def test_every_rule_has_a_bad_example(self):
        self.assertEqual(set(BAD), {rule.__name__ for rule in tidy.RULES})

    def test_every_rule_refuses_its_bad_examples(self):
        for rule in tidy.RULES:
            for changes in BAD[rule.__name__]:
                with self.subTest(rule=rule.__name__, changes=changes):
                    self.assertNotEqual(list(rule(tree_with(changes))), [])

    def test_every_banned_word_has_a_bad_example(self):
        text = "\n".join(line for change in BAD["banned_words"] for line in change.values())
        for pattern, _ in tidy.BANNED + tidy.BANNED_IN_COMMENTS:
            with self.subTest(pattern=pattern):
                self.assertRegex(text, pattern)

    def test_harmless_neighbours_are_accepted(self):
        line = "class Instant {}; steady_clock x; operand();  // throw; NOLINT(a-b): the C API\n"
        self.assertEqual(list(tidy.banned_words(tree_with({CORE + "a.cc": line}))), [])

    def test_a_raw_string_may_be_wide_and_the_line_after_it_keeps_its_number(self):
        wide = "x" * (tidy.COLUMNS_MAX + 1)
        text = f'auto s = R"(a\n{wide})";\n{wide}\n'
        found = list(tidy.line_length(tree_with({CORE + "a.cc": text})))
        self.assertEqual([problem.line for problem in found], [3])


if __name__ == "__main__":
    unittest.main()
