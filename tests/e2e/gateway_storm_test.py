"""What comes seldom and all at once: a clock that jumps, and clients that all come back in the same second."""

import json
import os
import resource
import socket
import subprocess
import threading
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, equal
from harness import Skipped, check, main

# The time of day is as many seconds off as a file says; all other clocks are as they are.
SHIM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    long got = syscall(SYS_clock_gettime, clock, now), off = 0;
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("CLOCK_OFF"), "r") : 0;
    if (file) {
        if (fscanf(file, "%ld", &off) == 1) now->tv_sec += off;
        fclose(file);
    }
    return (int)got;
}
"""


def test_f17_a_wall_clock_that_jumps_changes_nothing(t):
    source, shim, off = (os.path.join(t.work, name) for name in ("shim.c", "shim.so", "off"))
    t.write("shim.c", SHIM)
    t.write("off", "0")
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"no C compiler: {done.stderr[-200:]}")
    g = Gateway(t, keys=[{"name": "anna", "requests_per_minute": 600, "request_burst": 8}])
    t.environment.update(LD_PRELOAD=shim, CLOCK_OFF=off)
    g.start()
    for name in ("LD_PRELOAD", "CLOCK_OFF"):
        del t.environment[name]
    begun = time.time()
    stream = g.stream(ask(40, gap=0.1))
    stream.event()
    asked = 1
    for jump in ("3600", "-3600", "0"):
        t.write("off", jump)
        for _ in range(2):
            status, headers, _ = g.post(ask(2))
            equal(status, 200, f"{jump} s off")
            asked += 1
        check(int(headers["x-ratelimit-remaining-requests"]) <= 7, f"{jump} s off, no limit was forgotten: {headers}")
    events = stream.rest()
    equal(events[-1], "[DONE]", "the stream went on")
    check(time.time() - begun < 30, "nothing waited for an hour")
    row = g.settled(asked)
    equal((row["outcomes"], row["tokens_out"]), ({"ok": asked}, 40 + 2 * (asked - 1)), "settled once each")
    g.kill()
    g.start()
    equal(g.verify()["settled"], asked, "and the next process reads it in the order in which it was written")


def test_f32_all_come_back_in_the_same_second(t):
    clients = 1200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    up = Upstream()
    g = Gateway(t, [up], models=[{"name": "demo", "max_outstanding": 16, "queue": "3s"}])
    g.start()
    most, going = [0], [True]

    def watch():
        while going[0]:
            most[0] = max(most[0], up.open)
            time.sleep(0.005)
    threading.Thread(target=watch, daemon=True).start()

    def resident():
        text = open(f"/proc/{g.process.pid}/status").read()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024
    before = resident()
    body = json.dumps(ask(2, delay=0.1))
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {g.secret('anna')}\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n")
    sockets = []
    for _ in range(clients):
        s = socket.create_connection(("127.0.0.1", g.port))
        s.settimeout(60)
        s.sendall((head + body).encode())
        sockets.append(s)
    statuses, waits = {}, []
    for s in sockets:
        got = b""
        while piece := s.recv(65536):
            got += piece
        s.close()
        status = int(got.split(b" ")[1])
        statuses[status] = statuses.get(status, 0) + 1
        if status != 200:
            lines = got.split(b"\r\n\r\n")[0].decode().lower().split("\r\n")
            waits.append(int(next(line for line in lines if line.startswith("retry-after:")).split(":")[1]))
    held = resident() - before
    going[0] = False
    check(set(statuses) <= {200, 429, 503} and statuses.get(200, 0) >= 16, f"{statuses}")
    equal(sum(statuses.values()), clients, "every one was answered")
    check(statuses[200] < clients and min(waits) >= 1, f"{statuses} {waits[:5]}")
    check(len(set(waits)) > 1, f"not all are sent back to the same second: {sorted(set(waits))}")
    check(most[0] <= 16 + 2, f"{most[0]} at once at an upstream that takes 16")
    check(held < 64, f"{held:.0f} MiB more for {clients} clients")
    row = g.row()
    equal(row["outcomes"].get("ok"), statuses[200], f"each is in the account once: {row}")
    check(row["tokens_out"] == 2 * statuses[200], f"{row}")


if __name__ == "__main__":
    main(dict(globals()))
