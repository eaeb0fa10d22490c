#!/usr/bin/env python3
"""Counts test cases: prints "PASSED FAILED NAMES" for a folder that ctest and GoogleTest wrote their XML into, or for one
report of GoogleTest; NAMES are the first that failed.

ctest.xml (ctest --output-junit) has one entry per program; NAME.xml, where there is one, has its cases.
A program that failed without a failed case has crashed or timed out: that is one failure.
"""

import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def cases(file):
    """(passed, names of the failed) of a GoogleTest report; skipped and disabled cases are neither."""
    passed, failed = 0, []
    for case in xml.parse(file).iter("testcase"):
        if case.find("failure") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.get("status") == "run" and case.get("result", "completed") == "completed":
            passed += 1
    return passed, failed


def main():
    folder = Path(sys.argv[1])
    if folder.is_file():
        passed, failed = cases(folder)
        return print(passed, len(failed), ", ".join(failed[:10]))
    passed, failed = 0, []
    for program in xml.parse(folder / "ctest.xml").iter("testcase"):
        ok = program.get("status") == "run"
        report = folder / (program.get("name") + ".xml")
        try:
            p, f = cases(report)
        except (OSError, xml.ParseError):
            p, f = int(ok), []
        passed += p
        failed += f if ok or f else [program.get("name")]
    print(passed, len(failed), ", ".join(failed[:10]))


if __name__ == "__main__":
    main()
