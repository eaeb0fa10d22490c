#!/usr/bin/env python3
"""Each piece of advice that the planner can give is named by a golden case of tests/golden/plan, and by the page of reasons.

    python3 tests/advice_test.py [SOURCE]

A new one without a case is advice that nobody has read in an answer."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parent.parent
# Not had with the frozen catalogue, and why.
WITHOUT_A_CASE = {"os-price": "no price list of ours has Windows"}


def main():
    ids = set()
    for source in (ROOT / "src/plan/advice").glob("*.cpp"):
        text = source.read_text()
        ids |= set(re.findall(r'Severity::\w+,\s*"([a-z0-9-]+)"', text))
        ids |= set(re.findall(r'\b(?:smell|hint)\(\s*"([a-z0-9-]+)"', text))
    cases = "".join(path.read_text() for path in (ROOT / "tests/golden/plan").glob("*.case"))
    page = (ROOT / "docs/reference/reasons.md").read_text()
    problems = []
    if len(ids) < 60:
        problems.append(f"only {len(ids)} pieces of advice were found in src/plan/advice: does this test still know their shape?")
    for id_ in sorted(ids):
        if f'"id": "{id_}"' not in cases and id_ not in WITHOUT_A_CASE:
            problems.append(f"{id_}: no case of tests/golden/plan has it; show: advice.{id_} of a plan that gives it")
        if not re.search(rf"(?<![\w-]){id_}(?![\w-])", page):
            problems.append(f"{id_}: docs/reference/reasons.md does not have it")
    print("\n".join(problems) or f"advice: {len(ids)} pieces, each in a case")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
