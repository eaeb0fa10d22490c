#!/usr/bin/env python3
"""Counts the cases by the verdict in their second line: tests/first_answers/count.py [--list]. Fails when one has none, and
when an answer names a measured run like the one asked for that the interval of its own first line does not hold."""
import pathlib
import re
import sys

VERDICTS = ("Signed: ", "Not signed: ", "Not read yet.")


# "4.5 h (3.2 - 11)", "then 11 ms (6.8 - 36) a token": the last of the headline, which is what a run was measured for.
RANGE = re.compile(r"(\d[\d.,]*) (days|h|min|s|ms) \((\d[\d.,]*) - (\d[\d.,]*)\)")
START = {"min": 10, "h": 1 / 6}  # of the machines, whatever a run takes
# A run that is not like it, or was measured until the first token alone, says less than its factor.
SAYS_LESS = ("no measured run is like yours", "none close to this one", "predicted from its data sheet")


def outside(lines):
    """What the nearest measured run says, where the headline's interval ends before it."""
    text = re.sub(r"\n {7,}", " ", "\n".join(lines))
    sure = re.search(r"^  sure\?(.*)$", text, re.M)
    factor = sure and re.search(r"(?:it|its first token) (?:took (\d+\.\d) x as long|was (\d+\.\d) x as fast)", sure[1])
    if not factor or any(words in sure[1] for words in SAYS_LESS):
        return None
    head = next((RANGE.findall(line) for line in lines if RANGE.search(line)), [])
    if not head:
        return None
    told = head[0 if "its first token" in factor[0] else -1]
    middle, low, high = (float(figure.replace(",", "")) - START.get(told[1], 0) for figure in told[:1] + told[2:])
    rounding = 0.06
    together = re.search(r"; together with \d+ other sources? near it (\d+\.\d) x", sure[1])
    factor = [None, together[1] if together and factor[1] else factor[1], together[1] if together and factor[2] else factor[2]]
    if factor[1] and high < 0.97 * middle * (float(factor[1]) - rounding):
        return f"{middle:g} ({low:g} - {high:g}), and the nearest run took {factor[1]} x as long"
    best = "reaches a higher MFU" in sure[1]
    if factor[2] and not best and low > 1.03 * middle / (float(factor[2]) - rounding):
        return f"{middle:g} ({low:g} - {high:g}), and the nearest run was {factor[2]} x as fast"
    return None


def main():
    here = pathlib.Path(__file__).resolve().parent
    counts = {verdict: [] for verdict in VERDICTS}
    wrong, missed = [], []
    for path in sorted(here.rglob("*.case")):
        lines = path.read_text().split("\n")
        verdict = next((v for v in VERDICTS if len(lines) > 1 and lines[1].startswith(v)), None)
        if verdict is None or (verdict.endswith(": ") and len(lines[1]) < len(verdict) + 10):
            wrong.append(str(path.relative_to(here)))
        else:
            counts[verdict].append(f"{path.relative_to(here)}: {lines[1][len(verdict):]}")
        if said := outside(lines):
            missed.append(f"{path.relative_to(here)}: {said}")
    if "--list" in sys.argv[1:]:
        print("\n".join(counts["Not signed: "]))
    for verdict in VERDICTS:
        print(f"{len(counts[verdict]):4} {verdict.rstrip(': .').lower()}")
    for name in wrong:
        print(f"error: the second line of {name} begins with none of: {', '.join(v.strip() for v in VERDICTS)}", file=sys.stderr)
    for line in missed:
        print(f"error: the interval of the first line ends before what was measured: {line}", file=sys.stderr)
    return 1 if wrong or missed or not any(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
