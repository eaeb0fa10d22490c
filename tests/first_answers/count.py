#!/usr/bin/env python3
"""Counts the cases by the verdict in their second line: tests/first_answers/count.py [--list]. Fails when one has none."""
import pathlib
import sys

VERDICTS = ("Signed: ", "Not signed: ", "Not read yet.")


def main():
    here = pathlib.Path(__file__).resolve().parent
    counts = {verdict: [] for verdict in VERDICTS}
    wrong = []
    for path in sorted(here.rglob("*.case")):
        lines = path.read_text().split("\n")
        verdict = next((v for v in VERDICTS if len(lines) > 1 and lines[1].startswith(v)), None)
        if verdict is None or (verdict.endswith(": ") and len(lines[1]) < len(verdict) + 10):
            wrong.append(str(path.relative_to(here)))
        else:
            counts[verdict].append(f"{path.relative_to(here)}: {lines[1][len(verdict):]}")
    if "--list" in sys.argv[1:]:
        print("\n".join(counts["Not signed: "]))
    for verdict in VERDICTS:
        print(f"{len(counts[verdict]):4} {verdict.rstrip(': .').lower()}")
    for name in wrong:
        print(f"error: the second line of {name} begins with none of: {', '.join(v.strip() for v in VERDICTS)}", file=sys.stderr)
    return 1 if wrong or not any(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
