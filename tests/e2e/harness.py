"""What the end-to-end tests share: the shipped binary on a folder of its own, and a count of what passed.

    python3 tests/e2e/commands_test.py --stoker build/release/stoker [NAME...]

A test is a function test_*(t) in the order of its file; it raises to fail. Waiting is for conditions, with a limit far
above what is usual, so that a busy machine fails nothing."""

import argparse
import ctypes
import json
import mmap
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

LIMIT_S = 60


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_for(what, condition, limit_s=None):
    """The first true value of condition(); it is asked every 20 ms."""
    limit_s = limit_s or LIMIT_S
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"not within {limit_s} s: {what}")
        time.sleep(0.02)


class Stoker:
    """The binary, with a folder for its journal that is removed in the end."""

    def __init__(self, binary):
        self.binary = binary
        self.base = tempfile.mkdtemp(prefix="stoker-e2e-")
        self.folder = os.path.join(self.base, "state")
        self.work = os.path.join(self.base, "work")
        os.mkdir(self.work)
        self.environment = dict(os.environ, STOKER_FOLDER=self.folder, HOME=self.base, NO_COLOR="1", LC_ALL="C.UTF-8",
                                XDG_CACHE_HOME=os.path.join(self.base, "cache"),
                                XDG_DATA_HOME=os.path.join(self.base, "data"))
        for name in ("STOKER_SERVER", "STOKER_TOKEN"):
            self.environment.pop(name, None)
        self.servers = []

    def call(self, *words, exit=0, limit_s=LIMIT_S, env=None):
        """Runs a command to its end; its result has .stdout and .stderr. exit None: any."""
        done = subprocess.run([self.binary, *words], cwd=self.work, env=dict(self.environment, **(env or {})),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, errors="replace")
        if exit is not None and done.returncode != exit:
            raise Failure(f"stoker {' '.join(words)}: exit {done.returncode}, expected {exit}\n"
                          f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")
        return done

    def json(self, *words, **options):
        return json.loads(self.call(words[0], "-o", "json", *words[1:], **options).stdout)

    def start(self, *words, **options):
        """A command that goes on; its output is collected in files."""
        out = open(os.path.join(self.base, f"out-{len(self.servers)}-{time.monotonic_ns()}"), "w+")
        err = open(out.name + ".err", "w+")
        process = subprocess.Popen([self.binary, *words], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, text=True, **options)
        process.out_path, process.err_path = out.name, err.name
        self.servers.append(process)
        return process

    def own_address(self):
        """For a server that is started again at the same place: neither the default, which another test's server takes
        meanwhile, nor a port that the kernel gives to whoever connects somewhere."""
        while True:
            port = random.randrange(21_000, 32_000)
            with socket.socket() as free:
                if free.connect_ex(("127.0.0.1", port)) != 0:
                    return f"127.0.0.1:{port}"

    def up(self, *words):
        process = self.start("up", *words)
        address = os.path.join(self.folder, "server.json")

        def ready():
            if process.poll() is not None:
                raise Failure(f"stoker up ended with {process.returncode}: {open(process.err_path).read()}")
            return os.path.exists(address) and json.load(open(address))["pid"] == process.pid
        wait_for("stoker up", ready)
        return process

    def describe(self, run):
        return self.json("describe", run)

    def wait_state(self, run, *states, limit_s=None):
        return wait_for(f"{run} is {' or '.join(states)}",
                        lambda: (lambda view: view if view["run"]["state"] in states else None)(self.describe(run)), limit_s)

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def processes(self):
        """Pids whose environment or arguments name our folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid():
                continue
            try:
                text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
                state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if self.base.encode() in text and state != "Z":
                found.append(int(pid))
        return found

    def close(self):
        for process in self.servers:
            if process.poll() is None:
                process.kill()
                process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for _ in range(50):
            if not self.processes():
                break
            time.sleep(0.1)
        shutil.rmtree(self.base, ignore_errors=True)


class Skipped(Exception):
    """What a test needs is not here; says why."""


def processors():
    """Goes on in a child of this process, which takes in what outlives its parent (servers, keepers, ranks): a function that
    tells the seconds of processors that this program and all that it started have used so far, up to what still runs."""
    shared = mmap.mmap(-1, 8)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    child = os.fork()
    if child == 0:
        def used():
            own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            return struct.unpack("d", shared[:8])[0] + sum(each.ru_utime + each.ru_stime for each in own)
        return used
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    adopted = 0.0
    while True:
        pid, status, usage = os.wait3(0)
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)
        adopted += usage.ru_utime + usage.ru_stime
        shared[:8] = struct.pack("d", adopted)


def main(tests):
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    binary = os.path.abspath(options.stoker)
    used = processors()
    passed = failed = 0
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (options.names and not any(word in name for word in options.names)):
            continue
        begin, used_before = time.monotonic(), used()
        stoker = Stoker(binary)
        try:
            test(stoker)
            passed += 1
            print(f"ok: {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Skipped as why:  # neither passed nor failed
            print(f"skipped: {name}: {why}", flush=True)
        except Exception as error:  # whatever it was, the others still run
            failed += 1
            if not isinstance(error, Failure):
                traceback.print_exc()
            print(f"FAILED: {name}: {error}", flush=True)
            for process in stoker.servers:
                text = open(process.err_path).read()
                if text:
                    print(f"--- stderr of {' '.join(process.args[1:])}\n{text}")
        finally:
            stoker.close()
            print(f"processors: {used() - used_before:.1f} s, {name}", flush=True)
    print(f"processors: {used():.1f} s in all")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
