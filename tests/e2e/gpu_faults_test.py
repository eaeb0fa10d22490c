"""Faults of the machine under the agent: no process to be had, a kernel log that was overwritten, a clock that is set back, few
rights and few descriptors. The rest of the 32 are in gpu_test.py and gpu_runs_test.py; docs/measurements/gpu-faults.md has each
with its test, and the first test here looks whether that is so."""

import os
import re
import resource
import shutil
import socket
import subprocess
import time

from gpu_test import DOUBLE, Board, build_folder, healthy, kernel
from harness import Skipped, check, main, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
NOBODY = 65534


def build_faults():
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise Skipped("no C compiler for the faults")
    path = os.path.join(build_folder(), "faults.so")
    if not os.path.exists(path):
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", path,
                        os.path.join(DOUBLE, "faults.c"), "-ldl"], check=True)
    return path


class Faulty(Board):
    """An agent whose machine can be given faults."""

    def __init__(self, t, **options):
        self.faults = os.path.join(t.base, f"faults-{time.monotonic_ns()}")
        os.mkdir(self.faults)
        before = dict(t.environment)
        t.environment.update(LD_PRELOAD=build_faults(), STOKER_FAULTS=self.faults)
        try:
            super().__init__(t, **options)
        finally:
            for name in ("LD_PRELOAD", "STOKER_FAULTS"):
                t.environment.pop(name)
                if name in before:
                    t.environment[name] = before[name]

    def fault(self, name, text=""):
        with open(os.path.join(self.faults, name + ".new"), "w") as file:
            file.write(text)
        os.replace(file.name, os.path.join(self.faults, name))

    def mend(self, name):
        os.unlink(os.path.join(self.faults, name))


def test_each_of_the_32_faults_has_its_test(t):
    page = open(os.path.join(ROOT, "docs", "measurements", "gpu-faults.md")).read()
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", page, re.M)
    check([int(row[0]) for row in rows] == list(range(1, 33)), f"rows {[row[0] for row in rows]}")
    for number, what, where in rows:
        named = re.findall(r"`(\S+?):(\S+?)`", where)
        check(named, f"fault {number} ({what}) names no test")
        for file, test in named:
            text = open(os.path.join(ROOT, file)).read()
            found = re.search(rf"^def {test}\(", text, re.M) if file.endswith(".py") else re.search(rf"\b{test}\)", text)
            check(found, f"fault {number}: there is no {test} in {file}")


def test_f23_the_kernel_log_was_overwritten(t):
    board = Faulty(t, gpus=2)
    board.wait_up(2)
    kernel(board, "NVRM: Xid (PCI:0000:1b:00): 31, pid=1")
    wait_for("the log is read", lambda: board.value("stoker_gpu_xid_total", 'gpu="0"', 'xid="31"') == 1)
    board.fault("overrun")
    wait_for("the gap is counted", lambda: board.value("stoker_kmsg_lost_total") == 1)
    kernel(board, "NVRM: Xid (PCI:0000:1b:00): 48, pid=1")
    wait_for("it reads on behind the gap", lambda: board.value("stoker_gpu_xid_total", 'gpu="0"', 'xid="48"') == 1)
    check(board.value("stoker_agent_witness_up", "kernel_log") == 1, "a log with a gap is a log")
    healthy(board, (0, 1), "the kernel log was overwritten")


def test_f29_no_process_can_be_made_and_then_one_can(t):
    board = Faulty(t, gpus=2)
    board.wait_up(2)
    board.fault("no-fork")
    os.kill(board.sampler()[0], 9)
    wait_for("the reason", lambda: board.value("stoker_nvml_down_reason", "fork_failed") == 1)
    check(board.value("stoker_nvml_up") == 0 and not board.sampler(), "there is a sampler without a process")
    check(sum(board.up().values()) == 0, "old readings are told as new")
    board.mend("no-fork")
    board.wait_up(2)


def test_f31_without_rights_it_tells_what_it_may(t):
    """As nobody, who may write nowhere: the boards are told all the same, and what may not be read is said."""
    if os.geteuid() != 0:
        raise Skipped("only root can become somebody else")
    before = t.start

    def as_nobody(*words, **options):
        def become():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return before(*words, preexec_fn=become, **options)
    for folder in (t.base, build_folder()):
        os.chmod(folder, 0o755)
    open_folder = os.path.join(t.base, "open")
    os.mkdir(open_folder)
    log = os.path.join(open_folder, "root", "dev", "kmsg")
    os.makedirs(os.path.dirname(log))
    open(log, "w").close()
    os.chmod(log, 0o600)
    # Its port file is the one thing that it writes.
    t.start, mask = as_nobody, os.umask(0)
    try:
        board = Board(t, gpus=2, root=os.path.join(open_folder, "root"))
    finally:
        t.start = before
        os.umask(mask)
    board.wait_up(2)
    check(os.stat(f"/proc/{board.agent.pid}").st_uid == NOBODY or "Uid:\t65534" in open(f"/proc/{board.agent.pid}/status").read(), "it is not nobody")
    check(board.value("stoker_agent_witness_up", "kernel_log") == 0, "a log that it may not read is up")
    check(board.value("stoker_agent_witness_up", 'witness="pci"') == 0, "a bus that it cannot see is up")
    healthy(board, (0, 1), "few rights")


def test_f31_few_descriptors(t):
    """Whoever opens connections until none is left keeps nobody out for ever, and takes no board away."""
    before = t.start

    def with_few(*words, **options):
        return before(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)), **options)
    t.start = with_few
    try:
        board = Board(t, gpus=2)
    finally:
        t.start = before
    board.wait_up(2)
    sampler = board.sampler()
    many = []
    for _ in range(80):
        one = socket.socket()
        one.settimeout(1)
        try:
            one.connect(("127.0.0.1", board.port))
        except OSError:
            pass
        many.append(one)
    time.sleep(5 * 0.2)
    for one in many:
        one.close()
    wait_for("it answers again", lambda: board_answers(board))
    healthy(board, (0, 1), "no descriptor was left")
    check(board.sampler() == sampler, "the sampler was lost with the descriptors")


def board_answers(board):
    try:
        return len(board.up()) == 2
    except OSError:
        return False


def test_f32_the_clock_is_set_back_an_hour(t):
    """Rates, ages and what is stale are of the monotonic clock; the time of an error is as the wall clock says then."""
    board = Faulty(t, gpus=2, script="set 0 energy_mj 5000000")
    board.wait_up(2)
    board.fault("clock", "-3600")
    board.say("set 0 energy_mj 6000000\nxid 1 31 1")
    wait_for("the counter goes on", lambda: board.value("stoker_gpu_energy_joules_total", 'gpu="0"') == 6000)
    wait_for("the error counts", lambda: board.value("stoker_gpu_xid_total", 'gpu="1"', 'xid="31"') == 1)
    healthy(board, (0, 1), "the clock was set back")
    values = board.values()
    for gpu in (0, 1):
        age = board.value("stoker_gpu_sample_age_seconds", f'gpu="{gpu}"', values=values)
        check(0 <= age < 30, f"a reading is {age} s old")
    check(not [name for name, value in values.items() if "_total" in name and value < 0], "a counter below nothing")
    page = board.page(accept="application/openmetrics-text; version=1.0.0")
    check(page.endswith("# EOF\n") and t.call("metrics", "check", t.write("page", page)).returncode == 0, "the page is strict still")
    board.fault("clock", "3600")
    time.sleep(3 * 0.2)
    healthy(board, (0, 1), "the clock was set forward")
    check(board.value("stoker_agent_sampler_restarts_total") == 0, "a clock cost a sampler")


def test_of_the_configuration_space_only_the_first_word_is_read(t):
    """Each word of it is a transaction on the bus, and in a virtual machine a trap: all 4,096 bytes of each board, every second, would
    cost the node more than everything else that the agent does."""
    root, boards = os.path.join(t.base, "bus"), 12
    for number in range(boards):
        device = os.path.join(root, "sys/bus/pci/devices", f"0000:{number + 16:02x}:00.0")
        os.makedirs(device)
        for name, data in (("vendor", b"0x10de\n"), ("class", b"0x030200\n"), ("config", b"\xde\x10\x30\x23" + bytes(4092))):
            with open(os.path.join(device, name), "wb") as file:
                file.write(data)
    board = Board(t, gpus=1, root=root)
    board.wait_up(1)
    check(board.value("stoker_gpus", "expected") == boards, "the boards on the bus")
    read = lambda: int(re.search(r"^rchar: (\d+)", open(f"/proc/{board.agent.pid}/io").read(), re.M).group(1))
    before = read()
    time.sleep(10 * 0.2)
    check(read() - before < boards * 4096, f"{read() - before} bytes read in ten looks")


# An agent is on every node, and what it holds is taken from the work there: 16 MiB are allowed to it and its sampler, eight boards and scrapes included.
def test_agent_and_sampler_are_small(t):
    board = Board(t)
    board.wait_up(8)

    def resident_kib():
        for _ in range(20):
            board.page()
        return sum(int(re.search(r"^VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read(), re.M).group(1)) for pid in [board.agent.pid, *board.sampler()])
    wait_for("what the start needed is given back", lambda: resident_kib() <= 16 * 1024)


if __name__ == "__main__":
    main(dict(globals()))
