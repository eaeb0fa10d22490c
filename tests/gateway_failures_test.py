#!/usr/bin/env python3
"""Each way in which a gateway can fail (tests/e2e/gateway_failures.tsv) has a test that is there; and each test that is named after rows
(test_f04_f33_...) stands beside them.

    python3 tests/gateway_failures_test.py [SOURCE]"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
E2E = (ROOT if ROOT.is_dir() else ROOT.parent.parent) / "tests" / "e2e"


def main():
    problems = []
    rows = [line.split("\t") for line in (E2E / "gateway_failures.tsv").read_text().splitlines()[1:]]
    if [int(row[0]) for row in rows] != list(range(1, len(rows) + 1)):
        problems.append("the rows are not numbered from 1 on")
    programs = {}  # its tests
    for number, event, tests in rows:
        for test in tests.split():
            program, name = test.split(".")
            if program not in programs:
                file = E2E / f"{program}.py"
                programs[program] = re.findall(r"^def (test_\w+)", file.read_text(), re.M) if file.exists() else []
            if name not in programs[program]:
                problems.append(f"row {number} ({event}): there is no {test}")
    for program, names in programs.items():
        for name in names:
            for number in re.findall(r"f(\d\d)_", re.match(r"test_((?:f\d\d_)*)", name).group(1)):
                if not any(int(row[0]) == int(number) and f"{program}.{name}" in row[2].split() for row in rows):
                    problems.append(f"{program}.{name} is not in row {int(number)}")
    print("\n".join(problems) or f"failures of the gateway: {len(rows)} rows, each with a test")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
