#!/usr/bin/env python3
"""Sizes of the tree: lines per room and the largest files (`make stats`)."""
import collections
import pathlib

import tidy

LARGEST = 10


def main():
    tree = tidy.read_tree(pathlib.Path(__file__).resolve().parent.parent)
    rooms = collections.defaultdict(lambda: [0, 0, 0])  # files, source lines, test lines
    sizes = []
    for path, file in tree.items():
        if path.endswith(tidy.CODE) and path.startswith("src/"):
            lines = file.text.count("\n")
            row = rooms[tidy.room_of(path, tidy.ROOMS) or "?"]
            row[0] += 1
            row[2 if path.endswith("_test.cc") else 1] += lines
            sizes.append((lines, path))
    print(f"{'room':18}{'files':>6}{'source':>8}{'tests':>8}")
    for room in sorted(rooms, key=list(tidy.ROOMS).index):
        files, source, tests = rooms[room]
        print(f"{room:18}{files:6}{source:8}{tests:8}")
    print(f"{'all':18}{len(sizes):6}{sum(r[1] for r in rooms.values()):8}"
          f"{sum(r[2] for r in rooms.values()):8}")
    ordered = sorted(sizes, reverse=True)
    if ordered:
        print(f"\nlines per file: median {ordered[len(ordered) // 2][0]}, "
              f"p90 {ordered[len(ordered) // 10][0]}; the largest:")
    for lines, path in ordered[:LARGEST]:
        print(f"{lines:6}  {path}")


if __name__ == "__main__":
    main()
