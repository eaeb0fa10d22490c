#!/usr/bin/env python3
"""How many files a typical change touches, counted: those written by hand in which the name of one member of its kind stands.

    python3 tools/changes.py            compares with docs/architecture.md, and looks that every path of its tables exists
    python3 tools/changes.py --write    writes the counts into the page; a number that grew should have been wanted

Tests and what is generated or measured are not counted. A sample that becomes special (it is named in a rule, or as an
example) is exchanged for one that is not: what counts is what its kind asks for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- tools/changes.py --write -->", "<!-- end -->"

# What is added, and the names by which the code knows one of them.
SAMPLES = [
    ("a VM size with its price", ["Standard_ND96is_MI300X_v5"]),
    ("a GPU", ["H200-NVL"]),
    ("a model", ["qwen3-32b"]),
    ("a placement constraint", ["refuse_unmet_needs"]),
    ("a piece of advice", ["advise_limits"]),
    ("a lint rule", ["SLM012", "check_slm012"]),
    ("a diagnosis: why it is slow", ["batch-smaller", "judge_batch_smaller"]),
    ("a command", ["usage_command"]),
    ("an API route", ["repaired_node"]),
    ("an engine", ["make_local_driver"]),
    ("a state of a run", ["requeued"]),
    ("a metric", ["stoker_journal_bytes"]),
]
SUFFIXES = (".h", ".cpp", ".inc", ".tsv", ".md", ".txt")


def by_hand():
    """path: text of what people write in src and data."""
    texts = {}
    for path in sorted(path for top in ("src", "data") for path in (ROOT / top).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in SUFFIXES or name.startswith(("data/validation/", "data/published/")):
            continue
        if not path.stem.endswith(("_test", "testing")):
            texts[name] = path.read_text(errors="replace")
    return texts


def files_of(names, texts):
    word = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names))
    return [path for path, text in texts.items() if word.search(text)]


def table(texts):
    lines = ["| to add | files by hand | for instance | they are |", "| --- | --- | --- | --- |"]
    for kind, names in SAMPLES:
        files = files_of(names, texts)
        lines.append(f"| {kind} | {len(files)} | `{names[0]}` | {', '.join(f'`{file}`' for file in files)} |")
    return "\n".join(lines)


def missing_paths(page):
    """Paths in backticks of the page's tables that are not there."""
    missing = []
    for line in page.splitlines():
        if not line.startswith("|"):
            continue
        for path in re.findall(r"`((?:src|data|docs|tests|tools|bench|web|cmake)/[^`\s]*)`", line):
            if not (ROOT / path).exists() and not list(ROOT.glob(path)):
                missing.append(path)
    return missing


def main():
    page = PAGE.read_text()
    before, rest = page.split(BEGIN, 1)
    old, after = rest.split(END, 1)
    texts = by_hand()
    new = "\n" + table(texts) + "\n"
    problems = [f"{path}: docs/architecture.md names it, and it is not there" for path in missing_paths(page)]
    problems += [f"{kind}: no file holds {' or '.join(names)}; name another sample in tools/changes.py"
                 for kind, names in SAMPLES if not files_of(names, texts)]
    if "--write" in sys.argv[1:]:
        PAGE.write_text(before + BEGIN + new + END + after)
    elif old != new:
        said, counted = set(old.splitlines()), set(new.splitlines())
        problems += [f"docs/architecture.md says  {line}" for line in sorted(said - counted)]
        problems += [f"counted is                 {line}" for line in sorted(counted - said)]
        problems.append("tools/changes.py --write writes what is; a number that grew should have been wanted")
    print("\n".join(problems) or f"changes: {len(SAMPLES)} kinds as the page says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
