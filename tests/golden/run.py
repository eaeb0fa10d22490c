#!/usr/bin/env python3
"""Runs the golden cases: text files that hold what a user could have written and what Stoker answers.

    python3 tests/golden/run.py --stoker BIN [--update] [--jobs N] [--share N] [FILTER...]

A FILTER is a part of a case's path. A .case file is a description and then sections, each begun by a line of its own:

    --- workload.yaml                     a file with this content, in the folder where the case runs
    --- generate: big.json EXPRESSION     the same from a Python expression that gives str or bytes
    --- env: KEY=VALUE                    for the runs that follow
    --- show: advice.smell-fp32           of the run that follows, whose output is JSON, only these parts (api.py)
    --- run: stoker plan workload.yaml    the command, and below it the expected stdout; `< FILE` feeds stdin
    --- stderr                            the expected stderr of that run; not compared when absent
    --- exit: 2                           its expected exit code; 0 when absent

In expected output a line `...` stands for any number of lines and <<any>> for anything within a line. $FROZEN is the frozen
catalogue, $EXAMPLES the examples and $DIR the folder of the run, in commands and in output. Output must fit to the letter
but for blanks at the end of a line and blank lines at the end. A content line that begins with "--- " is written "\\--- ".
--update writes what was answered into the cases that no longer fit; the diff is the review. The cases in api/ hold requests
to a server instead of runs: api.py tells how they are written.
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import api

GOLDEN = pathlib.Path(__file__).resolve().parent
ROOT = GOLDEN.parent.parent
TIMEOUT_S = 60  # a hang, not a bar: sanitizers on a busy machine are slow
BASE_ENV = {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "STOKER_NOW": "2026-11-21", "LANG": "C.UTF-8", "COLUMNS": "100",
            "TERM": "dumb", "TZ": "UTC"}
# What the sanitizers and the coverage of an instrumented binary need to know.
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "GCOV_PREFIX", "GCOV_PREFIX_STRIP")


class BadCase(Exception):
    """The .case file itself is wrong."""


@dataclasses.dataclass(eq=False)  # two that read the same are still two
class Section:
    head: str            # the text behind "--- "
    body: list           # lines, unescaped


@dataclasses.dataclass
class Run:
    out: Section
    env: dict
    show: str = ""
    err: Section = None
    exit: Section = None

    @property
    def exit_code(self):
        return int(self.exit.head.split(":", 1)[1]) if self.exit else 0


def parse(text):
    """The description lines, and the sections in order."""
    description, sections = [], []
    for line in text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"):
        if line.startswith("--- "):
            sections.append(Section(line[4:].strip(), []))
        else:
            (sections[-1].body if sections else description).append(line[1:] if line.startswith("\\--- ") else line)
    if not any(line.strip() for line in description):
        raise BadCase("the case begins without a description of what it shows")
    return description, sections


def write(description, sections):
    escape = lambda line: "\\" + line if line.startswith("--- ") else line
    lines = list(description)
    for section in sections:
        lines.append("--- " + section.head)
        lines += [escape(line) for line in section.body]
    return "\n".join(lines) + "\n"


def place(folder, name):
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise BadCase(f"the file {name} lies outside the folder of the case")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def prepare(folder, sections):
    """Writes the files and returns the runs."""
    runs, env, show = [], {}, ""
    for section in sections:
        if section.head.startswith("show:"):
            show = section.head[5:].strip()
        elif section.head.startswith(api.STEPS):
            continue
        elif section.head.startswith("run:"):
            runs.append(Run(section, dict(env), show))
            show = ""
        elif section.head == "stderr" or section.head.startswith("exit:"):
            if not runs:
                raise BadCase(f"'--- {section.head}' stands before any run")
            setattr(runs[-1], "err" if section.head == "stderr" else "exit", section)
        elif section.head.startswith("env:"):
            key, separator, value = section.head[4:].strip().partition("=")
            if not separator:
                raise BadCase(f"'--- {section.head}' is not KEY=VALUE")
            env[key] = value
        elif section.head.startswith("generate:"):
            name, _, expression = section.head[9:].strip().partition(" ")
            content = eval(expression + "\n".join(section.body), {})
            place(folder, name).write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            place(folder, section.head).write_text("".join(line + "\n" for line in section.body))
    return runs


def lines_of(text):
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def line_fits(expected, actual):
    if "<<any>>" not in expected:
        return expected == actual
    return re.fullmatch(".*".join(re.escape(part) for part in expected.split("<<any>>")), actual) is not None


def fits(expected, actual):
    """Whether the lines match, `...` standing for any number of them. States are positions in `actual`."""
    reached = {0}
    for line in expected:
        if line == "...":
            reached = set(range(min(reached), len(actual) + 1)) if reached else reached
        else:
            reached = {i + 1 for i in reached if i < len(actual) and line_fits(line, actual[i])}
    return len(actual) in reached


def environment(folder):
    return BASE_ENV | {"HOME": str(folder)} | {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def execute(stoker, run, folder):
    """Exit code, stdout lines, stderr lines."""
    names = {"$FROZEN": str(GOLDEN / "catalog"), "$EXAMPLES": str(ROOT / "examples"), "$DIR": str(folder)}
    substitute = lambda text: functools.reduce(lambda t, n: t.replace(n, names[n]), names, text)
    words = [substitute(word) for word in shlex.split(run.out.head[4:])]
    if not words or words[0] != "stoker":
        raise BadCase(f"'--- {run.out.head}' does not run stoker")
    stdin = b""
    if "<" in words:
        at = words.index("<")
        stdin = (folder / words[at + 1]).read_bytes()
        del words[at:at + 2]
    env = environment(folder) | {key: substitute(value) for key, value in run.env.items()}
    done = subprocess.run([stoker] + words[1:], cwd=folder, env=env, input=stdin, capture_output=True, timeout=TIMEOUT_S)

    def readable(data):
        text = data.decode("utf-8", "backslashreplace")
        for name, value in sorted(names.items(), key=lambda pair: -len(pair[1])):
            text = text.replace(value, name)
        return lines_of(text)
    out = readable(done.stdout)
    if run.show and done.stdout.startswith(b"{"):
        out = lines_of(readable_parts(run.show, "\n".join(out)))
    return done.returncode, out, readable(done.stderr)


def readable_parts(show, text):
    return "\n".join(api.json_lines(api.parts_of(json.loads(text), show)))


def difference(title, expected, actual):
    return "\n".join(difflib.unified_diff(expected, actual, f"expected {title}", f"answered {title}", lineterm="", n=3))


def update_run(run, sections, code, out, err):
    """Changes the sections of this run to what was answered, where they do not fit."""
    if not fits(lines_of("\n".join(run.out.body)), out):
        run.out.body = out
    last = run.out
    if run.err is None and err and code != 0:
        run.err = Section("stderr", [])
        sections.insert(sections.index(last) + 1, run.err)
    if run.err is not None:
        last = run.err
        if not fits(lines_of("\n".join(run.err.body)), err):
            run.err.body = err
    if run.exit is not None and code == 0:
        sections.remove(run.exit)
    elif run.exit is not None:
        run.exit.head = f"exit: {code}"
    elif code != 0:
        sections.insert(sections.index(last) + 1, Section(f"exit: {code}", []))


def run_case(path, stoker, update):
    """The failures of one case, as text; with update, also whether the file was rewritten."""
    failures = []
    text = path.read_text()
    try:
        description, sections = parse(text)
        with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
            folder = pathlib.Path(temporary).resolve()
            runs = prepare(folder, sections)
            if path.parent.name == "api":
                failures += api.run_api_case(stoker, folder, sections, environment(folder), update, fits, difference)
            elif not runs:
                raise BadCase("the case runs nothing")
            for run in runs:
                try:
                    code, out, err = execute(stoker, run, folder)
                except subprocess.TimeoutExpired:
                    failures.append(f"{run.out.head}: no end after {TIMEOUT_S} s")
                    continue
                # A crash is never what was meant, so it is not written down as expected either.
                if update and code >= 0 and code != 4:
                    update_run(run, sections, code, out, err)
                    continue
                expected_out = lines_of("\n".join(run.out.body))
                if not fits(expected_out, out):
                    failures.append(f"{run.out.head}\n" + difference("stdout", expected_out, out))
                if run.err is not None:
                    expected_err = lines_of("\n".join(run.err.body))
                    if not fits(expected_err, err):
                        failures.append(f"{run.out.head}\n" + difference("stderr", expected_err, err))
                if code != run.exit_code:
                    said = "" if run.err is not None or not err else "\n  stderr: " + "\n  ".join(err)
                    failures.append(f"{run.out.head}: exit {code} and not {run.exit_code}{said}")
        if update and not failures:
            new = write(description, sections)
            if new != text:
                path.write_text(new)
                return failures, True
    except BadCase as problem:
        failures.append(str(problem))
    except Exception as problem:  # a wrong expression, a file of the case that cannot be written
        failures.append(f"{type(problem).__name__}: {problem}")
    return failures, False


def main():
    parser = argparse.ArgumentParser(description="Runs the golden cases.")
    parser.add_argument("--stoker", required=True, help="the binary to test")
    parser.add_argument("--update", action="store_true", help="write what was answered into the cases that do not fit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--share", type=int, default=1, metavar="N",
                        help="one of N first answers only, for a binary under sanitizers: they are most of the time, and plans alike")
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="a part of the path of the cases to run")
    options = parser.parse_args()
    stoker = str(pathlib.Path(options.stoker).resolve())
    if not os.access(stoker, os.X_OK):
        parser.error(f"{options.stoker} is not a program")

    # tests/first_answers holds what a plain question gets; its README says how a case is read and signed.
    name_of = lambda path: str(path.relative_to(GOLDEN if path.is_relative_to(GOLDEN) else ROOT / "tests"))
    answers = sorted((ROOT / "tests/first_answers").rglob("*.case"))
    cases = [path for path in sorted(GOLDEN.rglob("*.case")) + answers[::max(1, options.share)]
             if not options.filters or any(text in name_of(path) for text in options.filters)]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for path, (failures, rewritten) in zip(cases, pool.map(lambda p: run_case(p, stoker, options.update), cases)):
            if rewritten:
                print(f"updated {name_of(path)}")
            if failures:
                failed += 1
                print(f"FAILED {name_of(path)}")
                print("\n".join("    " + line for failure in failures for line in failure.split("\n")))
            else:
                passed += 1
    print(f"golden: {passed} passed, {failed} failed")
    # No case at all is a mistake in the filter, not a success.
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
