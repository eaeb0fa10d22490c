#!/usr/bin/env python3
"""src/layers.tsv against the tree: which room includes which.

    tools/layers.py            what the table grants and nobody takes, and what is taken and not granted
    tools/layers.py --write    the columns `uses` and `test_uses` as the tree has them, and docs/architecture.md after them

The order of the rows is written by hand, and so is what a room is for: a row may use the rows above it only, so there
can be no circle. A grant that --write adds is an arrow that somebody should have wanted: read the diff.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/layers.tsv"
PAGE = ROOT / "docs/architecture.md"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def read():
    head, rows = [], []
    for line in TABLE.read_text().splitlines():
        if line.startswith("#") or line.startswith("room\t"):
            head.append(line)
        else:
            rows.append(line.split("\t"))
    return head, rows


def words(cell):
    return [] if cell == "-" else cell.split()


def for_tests(path):
    return not {"test", "testing"}.isdisjoint(path.stem.split("_"))


def taken(rooms):
    """Room to the rooms that its files include, and those that only its tests do."""

    def room_of(path):
        fits = [room for room in rooms if path == room or path.startswith(room + "/")]
        return max(fits, key=len) if fits else None

    code, tests = {room: set() for room in rooms}, {room: set() for room in rooms}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        here = room_of(str(path.relative_to(ROOT / "src").parent))
        if here is None:
            sys.exit(f"{path}: in no room of {TABLE}")
        for line in path.read_text().splitlines():
            match = INCLUDE.match(line)
            other = room_of(match[1].rpartition("/")[0]) if match else here
            if other is None:
                sys.exit(f"{path}: {match[1]} is in no room of {TABLE}")
            if other != here:
                (tests if for_tests(path) else code)[here].add(other)
    for room in rooms:
        tests[room] -= code[room]
    return code, tests


def page_table(rows):
    out = ["| room | its job | may include |", "| --- | --- | --- |"]
    out += [f"| `{room}` | {job} | {', '.join(words(uses)) or '–'} |" for room, uses, _, _, job in rows]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    head, rows = read()
    rooms = [row[0] for row in rows]
    code, tests = taken(rooms)
    wrong = []
    for i, row in enumerate(rows):
        for column, have in ((1, code[row[0]]), (2, tests[row[0]])):
            name = ("", "uses", "test_uses")[column]
            up = [room for room in have if rooms.index(room) > i]
            wrong += [f"{row[0]}: {name} {room}, which stands above it" for room in up]
            if not options.write:
                wrong += [f"{row[0]}: {name} {room}, which is not granted" for room in have - set(words(row[column]))]
                wrong += [f"{row[0]}: {room} is granted ({name}) and not used" for room in set(words(row[column])) - have]
            row[column] = " ".join(sorted(have, key=rooms.index)) or "-"
    if options.write:
        TABLE.write_text("\n".join(head + ["\t".join(row) for row in rows]) + "\n")
        text = PAGE.read_text()
        begin, end = "<!-- src/layers.tsv, by tools/layers.py --write -->\n", "\n<!-- end -->"
        at = text.index(begin) + len(begin)
        PAGE.write_text(text[:at] + page_table(rows) + text[text.index(end, at):])
    print("\n".join(wrong) if wrong else f"{len(rooms)} rooms, {sum(map(len, code.values()))} arrows, all down")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
