#!/usr/bin/env python3
"""Looks at the batches of a unity build with clang-tidy: at those that are not known to be clean.

    python3 tools/tidy_batches.py BUILD KNOWN [--jobs N]

BUILD has compile_commands.json, KNOWN a file for each batch that was clean, from this checkout or any other. It is named
after all that decides: the command, what the batch includes, the rules and the version of clang-tidy."""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = str(pathlib.Path(__file__).resolve().parent.parent)
TIDY = os.environ.get("STOKER_CLANG_TIDY", "clang-tidy-14")
KEPT_S = 30 * 86400  # a batch that no checkout has had for so long


@functools.cache
def print_of(path):
    # Batches and commands name files with the place of the checkout.
    return hashlib.sha256(pathlib.Path(path).read_bytes().replace(ROOT.encode(), b"")).hexdigest()


@functools.cache
def rules():
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    return version + pathlib.Path(ROOT, ".clang-tidy").read_text()


def name_of(entry):
    """What the batch is known by; None where the compiler cannot read it, which clang-tidy then says better."""
    words = shlex.split(entry["command"])
    out = words.index("-o")
    words = [word for word in words[:out] + words[out + 2:] if word != "-c"]
    done = subprocess.run([*words, "-M"], cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    read = shlex.split(done.stdout.replace("\\\n", " ").split(":", 1)[1])
    known = [rules(), " ".join(words).replace(ROOT, "")]
    known += [f"{path.replace(ROOT, '')} {print_of(path)}" for path in (os.path.join(entry["directory"], each) for each in read)]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


def look(entry, build, known):
    """(looked at, what was found) of one batch."""
    name = name_of(entry)
    if name and (known / name).exists():
        (known / name).touch()
        return False, ""
    done = subprocess.run([TIDY, "--quiet", "-p", build, entry["file"]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode != 0:
        return True, f"{entry['file']}: {done.stdout}"
    if name:
        (known / name).touch()
    return True, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("known", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.known.mkdir(parents=True, exist_ok=True)
    for stamp in options.known.iterdir():
        if stamp.stat().st_mtime < time.time() - KEPT_S:
            stamp.unlink(missing_ok=True)
    commands = json.loads(pathlib.Path(options.build, "compile_commands.json").read_text())
    batches = [each for each in commands if "/Unity/" in each["file"]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(lambda each: look(each, options.build, options.known), batches))
    for _, found in answers:
        print(found, end="")
    looked = sum(each for each, _ in answers)
    print(f"{len(batches)} batches, {looked} looked at, {len(batches) - looked} known to be clean")
    sys.exit(any(found for _, found in answers))


if __name__ == "__main__":
    main()
