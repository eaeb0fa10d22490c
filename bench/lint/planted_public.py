#!/usr/bin/env python3
"""What `stoker check` finds of mistakes that were planted into files of public repositories.

    planted_public.py --files DIR [--fetch | --mirror GIT] [--stoker build/release/stoker] [--case ID] [--plant ID] [--json FILE]

tests/lint/public/planted.tsv holds edits, never the text of others: repository, commit, path, the digest of the file as it was, and for
each edit its line, what stood there and what takes its place. Labels were written from the pages of the rules before any rule had read
the files. DIR holds each repository as <owner>+<name>: --fetch gets what is missing from GitHub at the commit of its labels, --mirror
from git directories that lie in GIT as <owner>+<name>. Every file is checked alone and with its whole repository, before and after the
edit. What was told before the edit is subtracted, so only what the edit brought is an answer to it.

A case is found when its rule is told at its place, within three lines; a twin looks like the mistake and is right: its rule must stay
silent. --plant leaves the edit of one case in DIR, to look at.
"""
import argparse
import collections
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

from labels import wilson

TABLE = pathlib.Path(__file__).resolve().parents[2] / "tests/lint/public/planted.tsv"
AWAY = 3
# What no front end reads only takes room.
UNREAD = set(".png .jpg .jpeg .gif .svg .ico .pdf .mp4 .webm .webp .woff .woff2 .ttf .zip .gz .tgz .whl .so .bin .ipynb .csv .lock .pyc .onnx "
             ".jsonl .parquet .npy .wasm .map .pptx .docx .xlsx .mp3 .wav".split())
LARGEST = 1 << 20


class Edit:
    def __init__(self, row):
        self.what, self.line, self.lines = row["edit"], int(row["line"]), int(row["lines"])
        self.old, self.new = json.loads(row["old"]), json.loads(row["new"])


class Case:
    def __init__(self, row):
        self.id, self.repo, self.commit, self.path = row["id"], row["repo"], row["commit"], row["path"]
        self.sha256, self.rule, self.sort, self.kind = row["sha256"], row["rule"], row["sort"], row["kind"]
        self.also = set(filter(None, row["also"].split(",")))
        self.places = [self.place(at) for at in filter(None, row["at"].split("|"))]
        self.edits = [Edit(row)]

    def place(self, at):
        path, _, line = at.rpartition(":")
        return path or self.path, int(line)

    def is_at(self, finding):
        told = [(place["path"], place["line"]) for place in [finding, *finding["related"]]]
        return any(("/" + there).endswith("/" + path) and abs(at - line) <= AWAY for path, line in self.places for there, at in told)


def read_cases():
    cases = {}
    with open(TABLE, newline="") as text:
        head = text.readline().rstrip("\n").split("\t")
        for line in text:
            row = dict(zip(head, line.rstrip("\n").split("\t")))
            if row["id"] in cases:
                cases[row["id"]].edits.append(Edit(row))
            else:
                cases[row["id"]] = Case(row)
    return list(cases.values())


def planted(case, text):
    """The lines of one edit are those of the file as it was, so later lines come first."""
    if hashlib.sha256(text).hexdigest() != case.sha256:
        sys.exit(f"{case.repo}/{case.path}: not the file that was labelled (its digest differs)")
    lines = text.decode().split("\n")
    for edit in sorted(case.edits, key=lambda edit: -edit.line):
        if edit.what == "add":
            lines[edit.line:edit.line] = edit.new.split("\n")
        elif edit.what == "cut":
            del lines[edit.line - 1:edit.line - 1 + edit.lines]
        else:
            assert lines[edit.line - 1].count(edit.old) == 1, case.id
            lines[edit.line - 1] = lines[edit.line - 1].replace(edit.old, edit.new)
    return "\n".join(lines).encode()


def keep(path, size):
    return size <= LARGEST and pathlib.PurePath(path).suffix.lower() not in UNREAD


def from_mirror(repo, commit, mirror, folder):
    git = mirror / repo.replace("/", "+")
    for inside in ("repo/.git", "repo", ".git", "."):
        if (git / inside / "HEAD").exists():
            git = git / inside
            break
    else:
        return False
    tree = subprocess.run(["git", "-C", git, "ls-tree", "-r", "-l", "-z", commit], capture_output=True, text=True, check=True).stdout
    with subprocess.Popen(["git", "-C", git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as blobs:
        for entry in filter(None, tree.split("\0")):
            about, path = entry.split("\t", 1)
            mode, sort, name, size = about.split()
            if sort != "blob" or not mode.startswith("100") or not size.isdigit() or not keep(path, int(size)):
                continue  # a snapshot may lack its largest files
            blobs.stdin.write(name.encode() + b"\n")
            blobs.stdin.flush()
            answer = blobs.stdout.readline().split()
            if len(answer) != 3:
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(blobs.stdout.read(int(answer[2]) + 1)[:-1])
    return True


def from_github(repo, commit, folder):
    with urllib.request.urlopen(f"https://codeload.github.com/{repo}/tar.gz/{commit}", timeout=600) as answer:
        with tarfile.open(fileobj=io.BytesIO(answer.read())) as tar:
            for member in tar:
                path = member.name.partition("/")[2]
                if member.isfile() and ".." not in path.split("/") and keep(path, member.size):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(tar.extractfile(member).read())


def check(stoker, folder, what="."):
    done = subprocess.run([stoker, "check", what, "--format", "json", "--fail-on", "error"], cwd=folder, capture_output=True, text=True,
                          timeout=300)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["findings"]


def new_of(before, after):
    """Findings of `after` beyond those of `before`. Edits move lines, so a finding is known by its rule, its file and its words."""
    known = collections.Counter((finding["rule"], finding["path"], finding["message"]) for finding in before)
    told = []
    for finding in after:
        key = finding["rule"], finding["path"], finding["message"]
        if known[key] > 0:
            known[key] -= 1
        else:
            told.append(finding)
    return told


def judge(case, before, after):
    """(what became of the case, its other new findings)."""
    told = new_of(before, after)
    own = [finding for finding in told if finding["rule"] == case.rule]
    # The same finding in other words (the price of another size) is nothing new.
    retold = {(finding["rule"], finding["path"], finding["address"]) for finding in new_of(after, before)}
    others = [finding for finding in told if finding["rule"] not in {case.rule} | case.also
              and (finding["rule"], finding["path"], finding["address"]) not in retold]
    if case.sort == "twin":
        return ("told" if own else "silent"), others
    if any(case.is_at(finding) for finding in own):
        return "found", others
    if own:
        return "away", others
    if any(finding["rule"] == case.rule and case.is_at(finding) for finding in before):
        return "there before", others
    return "missed", others


def report(name, cases, outcomes):
    firm = [case for case in cases if case.sort == "firm" and outcomes[case.id][0] != "there before"]
    found = sum(outcomes[case.id][0] == "found" for case in firm)
    others = [(case, finding) for case in cases for finding in outcomes[case.id][1]]
    print(f"{name}: found {wilson(found, len(firm)).strip()}; twins told {sum(outcomes[case.id][0] == 'told' for case in cases)} of "
          f"{sum(case.sort == 'twin' for case in cases)}; other new findings {len(others)}")
    for key, title in ((lambda case: case.kind, "front end"), (lambda case: case.rule.rstrip("0123456789"), "rules")):
        counts = collections.defaultdict(lambda: [0, 0])
        for case in firm:
            counts[key(case)][1] += 1
            counts[key(case)][0] += outcomes[case.id][0] == "found"
        print(f"  by {title}: " + ", ".join(f"{k} {r}/{n}" for k, (r, n) in sorted(counts.items())))
    for case in cases:
        if outcomes[case.id][0] not in ("found", "silent"):
            print(f"  {outcomes[case.id][0]:<12} {case.rule} {case.id}: {case.repo}/{case.path} at {case.places[:3]}")
    for case, finding in others:
        print(f"  other        {finding['rule']} {case.id}: {finding['path']}:{finding['line']} {finding['message'][:110]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--files", required=True, type=pathlib.Path)
    parser.add_argument("--fetch", action="store_true", help="get what is missing from GitHub")
    parser.add_argument("--mirror", type=pathlib.Path, help="get what is missing from git directories")
    parser.add_argument("--case", action="append", help="only these cases")
    parser.add_argument("--only", choices=("alone", "repository"))
    parser.add_argument("--plant", help="plant this case, and stop")
    parser.add_argument("--json")
    options = parser.parse_args()
    stoker = os.path.abspath(options.stoker)
    cases = [case for case in read_cases() if not options.case or case.id in options.case]
    for repo, commit in sorted({(case.repo, case.commit) for case in cases}):
        folder = options.files / repo.replace("/", "+")
        if folder.exists():
            continue
        if not (options.mirror and from_mirror(repo, commit, options.mirror, folder)) and options.fetch:
            from_github(repo, commit, folder)
    missing = sorted({case.repo for case in cases if not (options.files / case.repo.replace("/", "+") / case.path).exists()})
    if missing:
        print(f"not at hand: {', '.join(missing)} (--fetch gets them)")
        cases = [case for case in cases if case.repo not in missing]

    told = {"alone": {}, "repository": {}}
    before = {}
    for case in cases:
        folder = options.files / case.repo.replace("/", "+")
        file = folder / case.path
        text = file.read_bytes()
        edited = planted(case, text)
        if case.id == options.plant:
            file.write_bytes(edited)
            print(f"{case.id} is planted in {file}")
            return
        with tempfile.TemporaryDirectory() as place:
            lonely = pathlib.Path(place) / case.path
            lonely.parent.mkdir(parents=True, exist_ok=True)
            for name, content in (("before", text), ("after", edited)):
                lonely.write_bytes(content)
                told["alone"].setdefault(case.id, []).append(check(stoker, place, case.path))
        if options.only != "alone":
            if case.repo not in before:
                before[case.repo] = check(stoker, folder)
            try:
                file.write_bytes(edited)
                told["repository"][case.id] = [before[case.repo], check(stoker, folder)]
            finally:
                file.write_bytes(text)
    figures = {}
    for name, each in told.items():
        if not each or options.only not in (None, name):
            continue
        outcomes = {case.id: judge(case, *each[case.id]) for case in cases}
        report(name, cases, outcomes)
        figures[name] = {case.id: [outcomes[case.id][0], [[f["rule"], f["path"], f["line"], f["message"]] for f in outcomes[case.id][1]]]
                         for case in cases}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
