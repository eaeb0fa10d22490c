#!/usr/bin/env python3
"""What `stoker check` finds in public files that people have read, against what they found.

    labels.py --stoker build/release/stoker --files DIR [--fetch] [--mismatches] [--kind KIND] [--rule ID] [--json FILE]

DIR holds each file as <owner>+<name>/<path>; --fetch gets what is missing from GitHub, at the commit of its label (none of
these texts is part of the project). Each file is checked alone. A label is a pair of file and rule; precision and recall
are over these pairs, by the severity of the finding, or for what was missed the label's. Labels whose note begins with "X:"
need other files and are left out, as are rules that are off by default.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

LABELS = pathlib.Path(__file__).resolve().parents[2] / "tests/lint/labels"
NEVER_ALONE = {"SKU019", "SKU020", "K8S002", "K8S012", "NPL011", "SYN003", "SYN004"}
LETTER = {"error": "E", "warning": "W", "info": "I"}


class LabelledFile:
    def __init__(self, row):
        self.repo, self.path, self.commit, self.kind = row["repo"], row["path"], row["commit"], row["kind"]
        self.labels, self.skipped, self.trap = {}, set(), ""

    def place(self, folder):
        return pathlib.Path(folder) / self.repo.replace("/", "+") / self.path

    def add(self, row):
        if row["note"].startswith("trap"):
            self.trap = row["note"]
        if row["rule"] == "clean":
            return
        if row["note"].startswith("X:"):
            self.skipped.add(row["rule"])
        else:
            self.labels[row["rule"]] = (int(row["line"]), row["severity"])


def read_labels():
    files = {}
    for name in ("dev_lines.csv", "lint_labels.csv"):
        with open(LABELS / name, newline="") as text:
            for row in csv.DictReader(text):
                files.setdefault((row["repo"], row["path"]), LabelledFile(row)).add(row)
    return list(files.values())


def fetch(file, folder):
    place = file.place(folder)
    if place.exists():
        return
    url = f"https://raw.githubusercontent.com/{file.repo}/{file.commit}/{urllib.parse.quote(file.path)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(answer.read())


def check(stoker, place, folder):
    done = subprocess.run([stoker, "check", str(place.relative_to(folder)), "--format", "json", "--fail-on", "error"], cwd=folder,
                          capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        sys.exit(f"{place}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["findings"]


def wilson(right, all_of_them):
    if all_of_them == 0:
        return "-"
    p, n, z = right / all_of_them, all_of_them, 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return f"{100 * p:5.1f} % ({right}/{n}; {100 * (middle - half):.0f}-{100 * (middle + half):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--files", required=True)
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--mismatches", action="store_true", help="every finding without a label and every label without a finding")
    parser.add_argument("--kind")
    parser.add_argument("--rule")
    parser.add_argument("--json")
    options = parser.parse_args()
    stoker = os.path.abspath(options.stoker)
    files = [file for file in read_labels() if not options.kind or file.kind == options.kind]
    if options.fetch:
        for file in files:
            fetch(file, options.files)
    missing = [file for file in files if not file.place(options.files).exists()]
    files = [file for file in files if file.place(options.files).exists()]
    pages = json.loads(subprocess.run([stoker, "check", "--list", "-o", "json"], capture_output=True, text=True, check=True).stdout)
    pages = pages["rules"] if isinstance(pages, dict) else pages
    off = {page["id"] for page in pages if not page["on"]} | NEVER_ALONE
    known = {page["id"] for page in pages}

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda file: check(stoker, file.place(options.files), options.files), files))
    right, wrong, missed = collections.Counter(), collections.Counter(), collections.Counter()
    errors_on_clean, away, unbuilt, lines = 0, [], collections.Counter(), []
    for file, findings in zip(files, found):
        seen = {}
        for finding in findings:
            if finding["rule"] in off | file.skipped or (options.rule and finding["rule"] != options.rule):
                continue
            seen.setdefault(finding["rule"], []).append(finding)
        for rule, each in seen.items():
            letter = max((LETTER[finding["severity"]] for finding in each), key="IWE".index)
            if rule in file.labels:
                right[letter] += 1
                line = file.labels[rule][0]
                if all(abs(finding["line"] - line) > 3 for finding in each):
                    away.append(f"{file.repo}/{file.path}:{line} {rule}: found at {[finding['line'] for finding in each]}")
            else:
                wrong[letter] += 1
                errors_on_clean += letter == "E" and not file.labels
                lines.append(f"{letter} extra  {rule} {file.repo.replace('/', '+')}/{file.path}:{each[0]['line']} {each[0]['message'][:90]}"
                             + (f"   [{file.trap}]" if file.trap else ""))
        for rule, (line, letter) in file.labels.items():
            if rule in off or (options.rule and rule != options.rule) or rule in seen:
                continue
            missed[letter] += 1
            unbuilt[rule] += rule not in known
            lines.append(f"{letter} missed {rule} {file.repo.replace('/', '+')}/{file.path}:{line}")
    if options.mismatches:
        print("\n".join(sorted(lines)))
    figures = {}
    print(f"{len(files)} files, {sum(not file.labels for file in files)} of them clean; {len(missing)} not at hand")
    for name, letters in (("errors", "E"), ("errors and warnings", "EW"), ("infos", "I"), ("all", "EWI")):
        tp, fp, fn = (sum(counter[letter] for letter in letters) for counter in (right, wrong, missed))
        print(f"{name:<20} precision {wilson(tp, tp + fp):<28} recall {wilson(tp, tp + fn)}")
        figures[name] = {"right": tp, "extra": fp, "missed": fn}
    print(f"error findings on clean files: {errors_on_clean}; right rule, more than 3 lines away: {len(away)}")
    if unbuilt:
        print("labels of rules that do not exist:", dict(+unbuilt))
    if options.mismatches:
        print("\n".join(away))
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"figures": figures, "errors_on_clean": errors_on_clean, "away": away, "lines": sorted(lines)}, out, indent=1)


if __name__ == "__main__":
    main()
