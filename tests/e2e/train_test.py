#!/usr/bin/env python3
"""A training that was killed must end as one that was not: examples/train-tiny, first alone, then under `stoker run`.

usage: tests/e2e/train_test.py [--stoker BINARY] [--python /usr/bin/python3] [--only WORD]
The last line is "N passed, M failed". Without PyTorch nothing can be shown, and it says so.
"""
import argparse
import contextlib
import glob
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import processors

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TRAIN = SOURCE / "examples" / "train-tiny" / "train.py"
SMALL = ["--dim", "64", "--layers", "2", "--heads", "4", "--ctx", "64", "--batch", "8"]
LIMIT = 120  # seconds, for anything that is waited for
# As the engine says it for a rank of half a processor.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, condition):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited {LIMIT} s for {what}")


class Gang:
    """Ranks of train.py with the environment that the engine gives."""

    def __init__(self, folder, ranks=2, words=(), resume="", file_limit=None, **environment):
        self.folder = pathlib.Path(folder)
        self.checkpoints = self.folder / "checkpoints"
        self.folder.mkdir(exist_ok=True)
        common = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **ONE_THREAD, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(free_port()), "STOKER_CHECKPOINT_DIR": str(self.checkpoints),
                  "STOKER_ARTIFACT_DIR": str(self.folder / "artifacts"), "STOKER_METRICS_FILE": str(self.folder / "metrics.jsonl"),
                  **environment}
        if resume:
            common["STOKER_RESUME_FROM"] = str(resume)
        self.logs = [self.folder / f"rank-{rank}.out" for rank in range(ranks)]

        def limits():
            if file_limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        self.ranks = []
        for rank, log in enumerate(self.logs):
            with open(log, "wb") as out:
                self.ranks.append(subprocess.Popen([PYTHON, str(TRAIN), *SMALL, *words], env={**common, "RANK": str(rank)},
                                                   stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=limits))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            with contextlib.suppress(ProcessLookupError):
                rank.kill()
            rank.wait()

    def said(self, rank=0):
        return self.logs[rank].read_text(errors="replace")

    def wait(self):
        return [rank.wait(timeout=LIMIT) for rank in self.ranks]

    def done(self):
        codes = self.wait()
        assert codes == [0] * len(codes), f"exit codes {codes}:\n" + "\n".join(self.said(i)[-2000:] for i in range(len(codes)))
        return re.search(r"weights sha256 ([0-9a-f]{64})", self.said()).group(1)

    def wait_for_step(self, step):
        def reached():
            assert all(rank.poll() is None for rank in self.ranks), self.said()[-2000:]
            return any(int(each) >= step for each in re.findall(r"^step (\d+)/", self.said(), re.M))
        wait_for(f"step {step}", reached)


def complete(checkpoints):
    """Newest first, as Stoker lists them."""
    return sorted((p for p in checkpoints.glob("step-*") if p.suffix == "" and (p / "manifest.json").exists()), reverse=True)


WORDS = ["--steps", "40", "--checkpoint-every", "10", "--report", "5"]
_through = {}


def through(folder, ranks=2):
    """Digest of the weights of a run that nothing happened to."""
    if ranks not in _through:
        with Gang(folder / f"through-{ranks}", ranks, WORDS) as gang:
            _through[ranks] = gang.done()
    return _through[ranks]


def prepared(folder):
    """A training that ended, with checkpoints at 10, 20, 30 and 40, to spoil."""
    through(folder)
    copy = folder / "spoilt"
    shutil.copytree(folder / "through-2", copy)
    (copy / "checkpoints" / "done").unlink()
    shutil.rmtree(copy / "checkpoints" / "step-000040")
    return copy


# --- without Stoker -------------------------------------------------------------------------------------------------------

@test
def kills_leave_the_same_weights(folder):
    resume, starts = "", 0
    for dying in ["1:15", "0:15", "1:3", ""]:
        with Gang(folder / "killed", 2, WORDS, resume, TRAIN_DIE_AFTER=dying) as gang:
            if dying:
                codes, rank = gang.wait(), int(dying[0])
                # The other one notices, and asks to be started again.
                assert codes[rank] == -signal.SIGKILL and codes[1 - rank] == 75, f"{codes}: {gang.said(1 - rank)}"
            else:
                assert gang.done() == through(folder), "the weights differ from those of a run that was not killed"
            starts += "resumed from step" in gang.said()
            resume = complete(gang.checkpoints)[0]
    assert starts == 3 and (folder / "killed" / "checkpoints" / "done").exists()


@test
def kills_at_any_time_leave_the_same_weights(folder):
    resume, words = "", ["--steps", "40", "--checkpoint-every", "3", "--report", "1"]
    for delay in [2.0, 1.7, 1.9, 2.1]:  # some while starting, some while training, some after the end
        with Gang(folder / "any", 2, words, resume) as gang:
            with contextlib.suppress(subprocess.TimeoutExpired):
                gang.ranks[0].wait(delay)
        resume = (complete(gang.checkpoints) or [""])[0]
    with Gang(folder / "any", 2, words, resume) as gang:
        assert gang.done() == through(folder)


@test
def three_ranks_resume_to_the_same_bits(folder):
    with Gang(folder / "three", 3, WORDS, TRAIN_DIE_AFTER="2:25") as gang:
        assert gang.wait()[2] == -signal.SIGKILL
    with Gang(folder / "three", 3, WORDS, complete(gang.checkpoints)[0]) as gang:
        assert gang.done() == through(folder, 3)


@test
def a_signal_to_one_rank_makes_all_write_and_go_on(folder):
    with Gang(folder / "usr1", 2, ["--steps", "100000", "--report", "5"]) as gang:
        gang.wait_for_step(5)
        gang.ranks[1].send_signal(signal.SIGUSR1)
        first = wait_for("a checkpoint", lambda: complete(gang.checkpoints))[0]
        manifest = json.loads((first / "manifest.json").read_text())
        assert manifest["world_size"] == 2 and len(manifest["files"]) == 2
        gang.wait_for_step(manifest["step"] + 20)
        # TERM to one rank: all write, all leave.
        gang.ranks[0].send_signal(signal.SIGTERM)
        assert gang.wait() == [143, 143]
        last = json.loads((complete(gang.checkpoints)[0] / "manifest.json").read_text())["step"]
        assert f"stopped as asked after step {last}; checkpoint of step {last}" in gang.said()


@test
def stopped_and_resumed_is_the_same_too(folder):
    words = ["--steps", "400", "--report", "5"]
    with Gang(folder / "whole", 2, words) as gang:
        whole = gang.done()
    with Gang(folder / "stopped", 2, words) as gang:
        gang.wait_for_step(10)
        for rank in gang.ranks:
            rank.send_signal(signal.SIGTERM)
        assert gang.wait() == [143, 143]
    with Gang(folder / "stopped", 2, words, complete(gang.checkpoints)[0]) as gang:
        assert gang.done() == whole


@test
def asked_to_stop_before_it_began(folder):
    with Gang(folder / "early", 2, WORDS, STOKER_GRACE="5") as gang:
        wait_for("the signals to be blocked", lambda: all(
            int(re.search(r"SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{r.pid}/status").read_text()).group(1), 16) >> (signal.SIGTERM - 1) & 1
            for r in gang.ranks))
        for rank in gang.ranks:
            rank.send_signal(signal.SIGTERM)
        assert gang.wait() == [143, 143]


@test
def damaged_checkpoints_are_passed_over(folder):
    copy, digest = prepared(folder), through(folder)
    thirty, twenty = (copy / "checkpoints" / f"step-0000{n}0" for n in (3, 2))
    content = bytearray((thirty / "rank-1.f32").read_bytes())
    content[1000] ^= 1
    (thirty / "rank-1.f32").write_bytes(content)
    (twenty / "rank-0.f32").write_bytes(b"short")
    torn = copy / "checkpoints" / "step-000040.tmp"
    torn.mkdir()
    (torn / "rank-0.f32").write_bytes(b"half")
    with Gang(copy, 2, WORDS, thirty) as gang:
        assert gang.done() == digest
        said = gang.said()
        assert "step-000030: rank-1.f32 is not what was written" in said, said
        assert "step-000020: rank-0.f32 has 5 bytes" in said and "resumed from step 10" in said, said
        assert not torn.exists() and (copy / "checkpoints" / "step-000040").exists()


@test
def nothing_whole_means_from_the_beginning(folder):
    copy, digest = prepared(folder), through(folder)
    for manifest, text in zip(sorted(copy.glob("checkpoints/step-*/manifest.json")), ["{", "[]", '{"step": 30, "files": [{"name": "../x"}]}']):
        manifest.write_text(text)
    with Gang(copy, 2, WORDS, copy / "checkpoints" / "step-000030") as gang:
        assert gang.done() == digest
        said = gang.said()
        for reason in ("names a file outside", "has no step or no files", "is no JSON", "starting from the beginning"):
            assert reason in said, said


@test
def one_rank_goes_on_from_what_two_wrote(folder):
    copy = prepared(folder)
    with Gang(copy, 1, WORDS, copy / "checkpoints" / "step-000030") as gang:
        gang.done()
        assert "written by 2 ranks, now there are 1" in gang.said()
    here, there = ([json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()][-1]
                   for name in ("spoilt", "through-2"))
    assert here["step"] == there["step"] == 40 and abs(here["loss"] - there["loss"]) < 0.01, (here, there)


@test
def a_checkpoint_of_another_training_is_refused(folder):
    copy = prepared(folder)
    with Gang(copy, 2, [*WORDS, "--seed", "7"], copy / "checkpoints" / "step-000030") as gang:
        assert gang.wait() == [2, 2] and "seed 1 there, 7 here" in gang.said(), gang.said()


@test
def a_full_disk_costs_checkpoints_only(folder):
    through(folder)
    # Files cannot grow beyond this: writing fails as on a full disk.
    with Gang(folder / "full", 2, WORDS, file_limit=100_000, STOKER_ARTIFACT_DIR="") as gang:
        assert gang.done() == through(folder)
        assert "checkpoint of step 10 failed, the previous one counts" in gang.said() and not complete(gang.checkpoints)


@test
def times_and_weights_are_told(folder):
    digest = through(folder)
    lines = [json.loads(line) for line in (folder / "through-2" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 41)) and lines[-1]["loss"] < lines[0]["loss"]
    for line in lines:
        parts = line["wait_s"] + line["compute_s"] + line["allreduce_s"]
        assert 0 < parts <= line["step_s"] + 1e-5 and line["tokens_per_s"] > 0 and line["peak_rss_bytes"] > 1 << 20
    assert lines[9]["checkpoint_s"] > 0 and lines[8]["checkpoint_s"] == 0
    artifacts = folder / "through-2" / "artifacts"
    assert json.loads((artifacts / "config.json").read_text())["weights_sha256"] == digest and (artifacts / "model.pt").stat().st_size > 4 * 139_968


@test
def the_interval_is_kept(folder):
    with Gang(folder / "interval", 2, ["--steps", "100000"], STOKER_CHECKPOINT_INTERVAL="0.2") as gang:
        wait_for("two checkpoints", lambda: len(complete(gang.checkpoints)) >= 2)


@test
def wrong_input_is_refused(folder):
    for words, reason in ((["--heads", "7"], "even multiple"), (["--steps", "0"], "at least 1"), (["--batch", "1"], "number of ranks"),
                          (["--data", "/nonexistent"], "No such file"), (["--data", "/dev/null"], "has 0 bytes")):
        with Gang(folder / "wrong", 2, words) as gang:
            assert gang.wait() == [2, 2] and reason in gang.said(), gang.said()


@test
def the_steps_of_the_pipeline_fit_together(folder):
    env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **ONE_THREAD}
    here = SOURCE / "examples" / "train-tiny"

    def step(*words):
        return subprocess.run([PYTHON, *map(str, words)], cwd=here, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert step("prepare.py", "corpus.txt", folder / "g").returncode == 0
    done = step("train.py", *SMALL, "--data", folder / "g" / "train.txt", "--out", folder / "g", "--steps", "100", "--lr", "0.003")
    assert done.returncode == 0, done.stderr
    assert step("evaluate.py", folder / "g", folder / "g" / "held-out.txt", "--at-most", "5").returncode == 0
    assert step("evaluate.py", folder / "g", folder / "g" / "held-out.txt", "--at-most", "1").returncode == 1
    assert step("evaluate.py", folder / "nothing", folder / "g" / "held-out.txt").returncode == 2


# --- under Stoker ---------------------------------------------------------------------------------------------------------

def run_file(folder, environment=""):
    path = folder / "small.yaml"
    path.write_text(f"""version: 1
name: small
run:
  folder: {TRAIN.parent}
  command: [{PYTHON}, train.py, {', '.join(SMALL)}, --steps, 40, --checkpoint-every, 10, --report, 5]
  ranks: 2
  cpus: 0.5
  restarts: 10
  checkpoint: {{keep: 10}}
  environment: {{PYTHONDONTWRITEBYTECODE: 1, OMP_NUM_THREADS: 1{environment}}}
""")
    return path


def stoker(folder, *words):
    env = {**os.environ, "STOKER_FOLDER": str(folder / "server"), "NO_COLOR": "1"}
    return subprocess.run([STOKER, *map(str, words)], env=env, cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)


@test
def stoker_run_kills_leave_the_same_weights(folder):
    digest = through(folder)
    done = stoker(folder, "run", run_file(folder, ", TRAIN_DIE_AFTER: '1:15'"))
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    assert digest in done.stdout + done.stderr, f"the digest {digest} is not in the output: {done.stdout[-3000:]}"


def end_all(folder):
    """What carries the folder in its environment or arguments, should anything still run after a test that failed."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and any(folder.encode() in (process / name).read_bytes() for name in ("environ", "cmdline")):
                os.kill(int(process.name), signal.SIGKILL)


def main():
    global PYTHON, STOKER
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--only", default="", help="tests whose names contain this")
    options = parser.parse_args()
    PYTHON, STOKER = options.python, os.path.abspath(options.stoker) if options.stoker else ""
    probe = subprocess.run([PYTHON, "-c", "import torch, torch.distributed as d; assert d.is_gloo_available()"], capture_output=True, text=True)
    if probe.returncode != 0:
        print(f"skipped: {PYTHON} has no torch with gloo (apt-get install python3-torch libopenblas0-pthread)\n0 passed, 0 failed")
        return 0
    has_run = bool(STOKER) and subprocess.run([STOKER, "run", "--help"], capture_output=True).returncode == 0
    good = bad = 0
    used = processors()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="stoker-train-") as root:
        shared = pathlib.Path(root)
        for function in TESTS:
            name = function.__name__
            if options.only not in name:
                continue
            if name.startswith("stoker_") and not has_run:
                print(f"skipped: {name}: " + ("this stoker has no command run" if STOKER else "no --stoker given"))
                continue
            shutil.rmtree(shared / "spoilt", ignore_errors=True)
            started, used_before = time.monotonic(), used()
            try:
                function(shared)
                good += 1
                print(f"ok: {name} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception as problem:  # pylint: disable=broad-except
                bad += 1
                print(f"FAILED: {name}: {type(problem).__name__}: {problem}", flush=True)
            finally:
                end_all(root)
                print(f"processors: {used() - used_before:.1f} s, {name}", flush=True)
    print(f"processors: {used():.1f} s in all")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


sys.exit(main())
