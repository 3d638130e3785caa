#!/usr/bin/env python3
"""The laws of the house that a compiler can't check, as a unit test (`ctest -L tidy`).

Each rule is a function from the tree to problems; a problem names the place and the remedy.
tidy_test.py proves of every rule that it can fail. Laws that compilers check are not here: layers
(preset `layers`), function length and naming (.clang-tidy), format (.clang-format).
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

File = collections.namedtuple("File", "text executable")
Problem = collections.namedtuple("Problem", "path line text")
RULES = []

FILE_LINES_MAX = 500
COLUMNS_MAX = 100
CODE = (".cc", ".h")
SOURCE = CODE + (".cmake", ".py", ".sh", "CMakeLists.txt", "Makefile")

BASE = {"base/core", "base/stats"}
DOMAIN = {"domain/spec", "domain/ledger", "domain/workload", "domain/cost"}
STUDY = {"study/measure", "study/fit", "study/doctor", "study/diagnose"}
ENGINE = {"engine/net", "engine/target", "engine/load", "engine/sim", "engine/probe"}
JUDGE = {"judge/experiment", "judge/plan", "judge/gate", "judge/rollout"}
SERVE = {"serve/report", "serve/store", "serve/gateway", "serve/observe"}

# The room table: which rooms each room may include. A new row needs a note in docs/decisions.
ROOMS = {
    "base/core": set(),
    "base/stats": {"base/core"},
    "domain/spec": BASE,
    "domain/ledger": BASE | {"domain/spec"},
    "domain/workload": BASE | {"domain/spec"},
    "domain/cost": BASE,
    "engine/net": BASE,
    "engine/target": BASE | DOMAIN | {"engine/net"},
    "engine/load": BASE | DOMAIN | {"engine/net", "engine/target"},
    "engine/sim": BASE | DOMAIN | {"engine/net", "engine/target"},
    "engine/probe": BASE | DOMAIN | {"engine/net"},
    "study/measure": BASE | DOMAIN,
    "study/fit": BASE | DOMAIN | {"study/measure"},
    "study/doctor": BASE | DOMAIN,
    "study/diagnose": BASE | DOMAIN | {"study/measure"},
    "judge/experiment": BASE | DOMAIN | STUDY,
    "judge/plan": BASE | DOMAIN | STUDY,
    "judge/gate": BASE | DOMAIN | STUDY,
    "judge/rollout": BASE | DOMAIN | {"judge/gate"},
    "serve/report": BASE | DOMAIN | STUDY | ENGINE | JUDGE,
    "serve/store": BASE | DOMAIN | STUDY | ENGINE | JUDGE,
    "serve/gateway": BASE | DOMAIN | STUDY | ENGINE | JUDGE,
    "serve/observe": BASE | DOMAIN | STUDY | ENGINE | JUDGE,
    "app": BASE | DOMAIN | STUDY | ENGINE | JUDGE | SERVE,
}

# What may not stand in C++ sources, and what to write instead.
BANNED = [
    (r"system_clock|high_resolution_clock", "read time through Clocks (base/core/time.h)"),
    (r"sleep_for|sleep_until|\busleep\(", "wait on a timer of the Loop (engine/net/loop.h)"),
    (r"\bs?rand\(|random_device", "draw from a named stream (base/core/random.h)"),
    (r"std::\w+_distribution", "use our own distributions: the same bits with every library"),
    (r"\b(strto[a-z]+|ato[ifl]l?|sto(i|l|ul|ll|ull|f|d))\(", "parse with base/core/text.h"),
    (r"\bthrow\b", "return a Result (base/core/result.h)"),
    (r"\bassert\(", "write CHECK (base/core/check.h): it stays on in release"),
    (r"GTEST_SKIP|gmock/", "a test runs or does not exist; interfaces get fakes, not mocks"),
    (r"\b(class|struct)\s+I[A-Z][a-z]", "an interface carries the plain name, without an I"),
    (r"\b(class|struct)\s+\w+(Impl|Manager|Helper|Util)s?\b", "name it by what it is"),
    (r'#include\s+"\.', "include from the root: floor/room/file.h"),
]
BANNED_IN_COMMENTS = [
    (r"\bF" r"IXME\b|\bX" r"XX\b", "mend it, or open an issue and name it"),
    (r"NOLINT(?!\w*\([\w.,-]+\): \w)", "name the check and the reason: NOLINT(check): why"),
]
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "stuff", "manager"}


def rule(function):
    RULES.append(function)
    return function


def lines_of(tree, suffixes):
    for path, file in tree.items():
        if path.endswith(suffixes):
            for number, line in enumerate(file.text.splitlines(), 1):
                yield path, number, line


@rule
def banned_words(tree):
    for path, number, line in lines_of(tree, CODE):
        code = line.split("//")[0]
        for text, banned in ((code, BANNED), (line, BANNED_IN_COMMENTS)):
            for pattern, instead in banned:
                if match := re.search(pattern, text):
                    yield Problem(path, number, f"'{match[0].strip()}' is banned: {instead}")


@rule
def empty_names(tree):
    for path in tree:
        for part in pathlib.PurePosixPath(path).parts:
            if part.split(".")[0].lower() in EMPTY_NAMES:
                yield Problem(path, 1, f"the name '{part}' says nothing: name what is inside")


@rule
def todo_form(tree):
    for path, number, line in lines_of(tree, SOURCE):
        if re.search(r"\bTO" r"DO\b", line) and not re.search(r"\bTO" r"DO\(#\d+\): \w", line):
            yield Problem(path, number, "write TO" + "DO(#issue): what, or do it now")


@rule
def file_length(tree):
    for path, file in tree.items():
        count = file.text.count("\n")
        if path.endswith(SOURCE) and count > FILE_LINES_MAX:
            yield Problem(path, count, f"{count} lines; split it: at most {FILE_LINES_MAX}")


def without_raw_strings(text):
    """Texts in R"(…)" are data, and as wide as they are."""
    return re.sub(r'R"(\w*)\(.*?\)\1"', lambda raw: "\n" * raw[0].count("\n"), text, flags=re.S)


@rule
def line_length(tree):
    bare = {path: File(without_raw_strings(file.text), False) for path, file in tree.items()}
    for path, number, line in lines_of(bare, SOURCE):
        if len(line) > COLUMNS_MAX:
            yield Problem(path, number, f"{len(line)} columns; break it: at most {COLUMNS_MAX}")


@rule
def white_space(tree):
    for path, file in tree.items():
        if path.startswith(("cases/", "fuzz/corpus/")):
            continue
        if file.text and not file.text.endswith("\n"):
            yield Problem(path, file.text.count("\n") + 1, "end the file with a newline")
        for number, line in enumerate(file.text.splitlines(), 1):
            if line != line.rstrip():
                yield Problem(path, number, "remove the blanks at the end of the line")
            if "\t" in line and path != "Makefile":
                yield Problem(path, number, "use spaces, not tabs")


@rule
def executable_bits(tree):
    for path, file in tree.items():
        script = file.text.startswith("#!")
        if script != file.executable:
            remedy = "chmod +x it" if script else "chmod -x it, or begin it with #!"
            yield Problem(path, 1, f"a script and its executable bit go together: {remedy}")


@rule
def header_opening(tree):
    for path, file in tree.items():
        if path.endswith(".h"):
            if not file.text.startswith("// "):
                yield Problem(path, 1, "open with a comment: purpose and contract")
            if not re.search(r"^#pragma once$", file.text, re.M):
                yield Problem(path, 1, "write #pragma once below the opening comment")


def room_lists(tree):
    """Yields (room, CMake path, {"SOURCES": […], …}) for every room(...) call."""
    for path, file in tree.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        text = re.sub(r"#.*", "", file.text)
        for call in re.finditer(r"\broom\(([^()]*)\)", text):
            name, *words = re.sub(r"\$\{[^}]*\}\S*", "", call[1]).split()
            lists, current = collections.defaultdict(list), None
            for word in words:
                if re.fullmatch(r"SOURCES|HEADERS|TESTS|FUZZERS|DEPENDS|LIBS", word):
                    current = word
                else:
                    lists[current].append(word)
            yield name, path, lists


@rule
def room_table(tree):
    for room, path, lists in room_lists(tree):
        if room not in ROOMS:
            yield Problem(path, 1, f"{room} is no room of the table in scripts/tidy.py: a new room "
                                   "needs a note in docs/decisions")
            continue
        if path != f"src/{room}/CMakeLists.txt":
            yield Problem(path, 1, f"declare {room} in src/{room}/CMakeLists.txt")
        for other in lists["DEPENDS"]:
            if other not in ROOMS[room]:
                yield Problem(path, 1, f"{room} may not include {other} (table in scripts/tidy.py)")


def room_of(path, rooms):
    parts = pathlib.PurePosixPath(path).parts[1:]
    for depth in (2, 1):
        if "/".join(parts[:depth]) in rooms:
            return "/".join(parts[:depth])
    return None


@rule
def room_includes(tree):
    rooms = {room: lists for room, _, lists in room_lists(tree)}
    for path, number, line in lines_of(tree, CODE):
        include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        room = room_of(path, rooms) if path.startswith("src/") else None
        if not include or room is None:
            continue
        other = room_of("src/" + include[1], rooms)
        if other is None:
            yield Problem(path, number, f'"{include[1]}" is in no room: use <> for a library')
        elif other != room and other not in rooms[room]["DEPENDS"]:
            yield Problem(path, number, f"{room} includes {other} but does not list it in DEPENDS "
                                        f"of src/{room}/CMakeLists.txt")
        elif other != room and include[1][len(other) + 1:] not in rooms[other]["HEADERS"]:
            yield Problem(path, number, f"\"{include[1]}\" is not among the HEADERS of {other}")


@rule
def dead_files(tree):
    rooms = {room for room, _, _ in room_lists(tree)}
    for path in tree:
        if not path.startswith("src/") or not path.endswith(CODE):
            continue
        room = room_of(path, rooms)
        lists = tree.get(f"src/{room}/CMakeLists.txt")
        name = path.removeprefix(f"src/{room}/")
        if lists is None or not re.search(rf"(^|\s){re.escape(name)}($|[\s)])", lists.text):
            yield Problem(path, 1, "no CMakeLists.txt lists it: add it to its room or remove it")


@rule
def dead_depends(tree):
    rooms = {room: (path, lists) for room, path, lists in room_lists(tree)}
    used = collections.defaultdict(set)
    for path, _, line in lines_of(tree, CODE):
        if include := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            used[room_of(path, rooms)].add(room_of("src/" + include[1], rooms))
    for room, (path, lists) in rooms.items():
        for other in lists["DEPENDS"]:
            if other in rooms and other not in used[room]:
                yield Problem(path, 1, f"{room} lists {other} but includes nothing of it")


@rule
def one_title(tree):
    for path, file in tree.items():
        if path.endswith(".md"):
            prose = re.sub(r"^```.*?^```", "", file.text, flags=re.M | re.S)
            titles = re.findall(r"^# \S.*$", prose, re.M)
            if len(titles) != 1 or not file.text.startswith("# "):
                yield Problem(path, 1, f"{len(titles)} titles; a document opens with its only one")


@rule
def links(tree):
    for path, number, line in lines_of(tree, (".md",)):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
            if "://" in target:
                continue
            full = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if full not in tree and not any(name.startswith(full + "/") for name in tree):
                yield Problem(path, number, f"the link leads nowhere: {target}")


def shell_lines(tree):
    """Yields (path, line, text) for the lines of ```sh blocks in the papers, as they stand."""
    for path, file in tree.items():
        if not path.endswith(".md"):
            continue
        inside = False
        for number, line in enumerate(file.text.splitlines(), 1):
            if line.startswith("```"):
                inside = not inside and line == "```sh"
            elif inside:
                yield path, number, line


def shell_commands(tree):
    for path, number, line in shell_lines(tree):
        if line.strip() and not line.lstrip().startswith("#"):
            yield path, number, line.split(" # ")[0].strip()


@rule
def commands_exist(tree):
    makefile = tree.get("Makefile", File("", False)).text
    verbs = set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))
    for path, number, command in shell_commands(tree):
        words = command.split()
        if words[0] == "make":
            for verb in (word for word in words[1:] if re.fullmatch(r"[a-z][\w-]*", word)):
                if verb not in verbs:
                    yield Problem(path, number, f"the Makefile knows no '{verb}'")
        for word in words:
            if re.match(r"(\./|scripts/|bench/)[\w./-]+$", word):
                file = tree.get(word.removeprefix("./"))
                if file is None or (word == words[0] and not file.executable):
                    yield Problem(path, number, f"'{word}' is no file or no program of this tree")


@rule
def cases_used(tree):
    readers = [file.text for path, file in tree.items() if path.endswith(CODE + (".py",))]
    for folder in sorted({"/".join(path.split("/")[:2]) for path in tree if path.count("/") > 1
                          and path.startswith("cases/")}):
        if not any(folder in text for text in readers):
            yield Problem(folder, 1, "no test names this folder: use it or remove it")


def read_tree(root):
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # an unpacked archive
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not path.relative_to(root).parts[0] in ("build", "runs", ".git")]
    tree = {}
    for name in sorted(set(names)):
        path = root / name
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if b"\0" not in content:
                tree[name] = File(content.decode("utf-8", "replace"), os.access(path, os.X_OK))
    return tree


def problems(tree):
    return [(check.__name__, problem) for check in RULES for problem in check(tree)]


def main():
    found = problems(read_tree(pathlib.Path(__file__).resolve().parent.parent))
    for name, problem in found:
        print(f"{problem.path}:{problem.line}: {problem.text} [{name}]")
    print(f"tidy: {len(RULES)} rules, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
