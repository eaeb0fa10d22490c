"""Pythons with pinned packages from PyPI, that test programs share."""

import fcntl
import pathlib
import subprocess
import sys

from harness import Skipped

HERE = pathlib.Path(__file__).resolve().parent


def pinned_python(requirements, name, *options):
    """A Python with pinned packages, in build/NAME; made once, again when their file changes. Test programs run beside each other and
    some want the same one: one makes it, the others wait (made by two at once, it stayed broken and its stamp said that it was not)."""
    wanted, venv = requirements.read_text(), HERE.parents[1] / "build" / name
    python, stamp = venv / "bin" / "python", venv / "pinned.txt"
    venv.parent.mkdir(exist_ok=True)
    with open(venv.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            make_venv(requirements, wanted, venv, options)
    return str(python)


def make_venv(requirements, wanted, venv, options):
    python, stamp = venv / "bin" / "python", venv / "pinned.txt"
    try:
        for words in ([sys.executable, "-m", "venv", "--clear", str(venv)],
                      [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "20", "--retries", "2",
                       *options, "-r", str(requirements)]):
            done = subprocess.run(words, capture_output=True, text=True, timeout=240)
            if done.returncode != 0:
                raise Skipped(f"no {wanted.split()} from PyPI (apt install python3-venv?): {(done.stderr or done.stdout).strip()[-300:]}")
    except subprocess.TimeoutExpired:
        raise Skipped(f"no {wanted.split()} from PyPI within 240 s") from None
    stamp.write_text(wanted)
