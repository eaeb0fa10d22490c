#!/usr/bin/env python3
"""tools/tidy_batches.py passes over what is known to be clean, and over nothing else.

    python3 tests/tidy_batches_test.py

A batch that is wrongly taken for a known one is never looked at again."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Finds something wherever a header says "bad".
TIDY = """#!/bin/sh
case $1 in
--version) cat {folder}/version ;;
*) ! grep -rq bad {folder}/a.h || {{ echo "found it"; exit 1; }} ;;
esac
"""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "Unity").mkdir()
        batch = folder / "Unity" / "unity_0.cpp"
        batch.write_text('#include "../a.h"\n')
        (folder / "tidy").write_text(TIDY.format(folder=folder))
        (folder / "tidy").chmod(0o755)
        (folder / "version").write_text("1\n")

        def look(words=""):
            entry = {"directory": name, "file": str(batch), "command": f"c++ {words} -o a.o -c {batch}"}
            (folder / "compile_commands.json").write_text(json.dumps([entry]))
            done = subprocess.run([sys.executable, ROOT / "tools" / "tidy_batches.py", name, folder / "known"], capture_output=True, text=True,
                                  env=dict(os.environ, STOKER_CLANG_TIDY=str(folder / "tidy")))
            return done.returncode, "1 looked at" in done.stdout, done.stdout + done.stderr

        problems = []

        def expect(what, code, looked, words=""):
            answer = look(words)
            if answer[:2] != (code, looked):
                problems.append(f"{what}: {answer}")

        (folder / "a.h").write_text("int good;\n")
        expect("a new one", 0, True)
        expect("the same again", 0, False)
        expect("another command", 0, True, "-DX")
        (folder / "version").write_text("2\n")
        expect("another clang-tidy", 0, True)
        (folder / "a.h").write_text("int bad;\n")
        expect("a header that changed", 1, True)
        expect("what was found is found again", 1, True)
        (folder / "a.h").write_text("int good;\n")
        expect("as it was", 0, False)
        (folder / "a.h").unlink()
        expect("what does not compile is nothing to pass over", 0, True)
        expect("and stays that", 0, True)
    print("\n".join(problems) or "clang-tidy looks at what changed")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
