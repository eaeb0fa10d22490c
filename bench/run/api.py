#!/usr/bin/env python3
"""The server through its own API, beside what others need for the same: durable submissions, pages, the pass over a long
queue, the first job, an idle server, a start on a long journal, watchers.

    ./dev bench api        or: python3 bench/run/api.py --stoker build/release/stoker [--only submits,pages,...]

A figure is the median of interleaved rounds, with its spread, and once more as a line of JSON. CPU is of the server's
process. Needs wrk for the submissions (apt-get install wrk); with the Slurm packages sbatch is measured too."""

import argparse
import json
import multiprocessing
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import slurm  # noqa: E402
from bench import Folder, Report, Server, cpu_seconds, fail, quantile, rss_mb, status_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HISTORY = 100_000


def occupy(server):
    """A run that holds the whole machine, so that everything after it waits."""
    connection = server.connect()
    nodes = [node for node in json.loads(connection.get("/api/v1/nodes")[1])["items"] if node["state"] == "ready"]
    run = connection.submit(name="occupant", command=["sleep", "100000"], nodes=len(nodes), ranks=len(nodes),
                            per_rank={"cpu_milli": nodes[0]["cpu_milli"]})
    for _ in range(500):
        if json.loads(connection.get(f"/api/v1/runs/{run}")[1])["run"]["state"] == "running":
            connection.close()
            return run
        time.sleep(0.02)
    raise RuntimeError("the occupant does not run")


def release(server, run):
    """Ends the run, so that no process of it is left, and the server."""
    connection = server.connect()
    connection.post(f"/api/v1/runs/{run}/cancel")
    for _ in range(500):
        if json.loads(connection.get(f"/api/v1/runs/{run}")[1])["run"]["state"] == "cancelled":
            break
        time.sleep(0.02)
    connection.close()
    server.stop()


def storm(server, seconds, connections=64):
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", os.path.join(HERE, "submits.lua"),
                           server.url], env=dict(os.environ, TOKEN=server.token), capture_output=True, text=True)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise RuntimeError("wrk: " + done.stdout + done.stderr)
    result = json.loads(line.removeprefix("RESULT "))
    if result["refused"] or result["errors"]:
        raise RuntimeError("not every submission was taken: " + line)
    return result


def queue_up(server, count, connections=8):
    """So many queued runs, of one to four ranks."""
    def some(number):
        connection = server.connect()
        for i in range(count // connections):
            connection.submit(name=f"queued-{number}-{i}", command=["true"], ranks=1 + i % 4,
                              per_rank={"cpu_milli": 100 * (1 + i % 7)})
        connection.close()
    threads = [threading.Thread(target=some, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def submits(o, report):
    if not shutil.which("wrk"):
        return report.missing("submits through the API", "wrk is not installed (apt-get install wrk)")
    rows = {name: [] for name in ("api", "p50", "p99", "cpu_us", "batch", "one", "same", "cli", "cli8", "s1", "s8")}
    why = slurm.missing()
    cluster = None
    with Folder(o.folder) as slurm_folder:
        if not why:
            try:
                cluster = slurm.Slurm(slurm_folder)
            except (RuntimeError, OSError) as error:
                why = str(error)
        try:
            for _ in range(o.rounds):
                with Folder(o.folder) as folder:
                    server = Server(o.stoker, os.path.join(folder, "state"))
                    occupant = occupy(server)
                    turns, cpu = server.metric("stoker_commit_seconds_count"), cpu_seconds(server.pid)
                    result = storm(server, o.seconds)
                    cpu = cpu_seconds(server.pid) - cpu
                    turns = server.metric("stoker_commit_seconds_count") - turns
                    batch = max(1, round(result["requests"] / turns))
                    listed = int(server.metric("stoker_journal_records_total"))
                    if listed < result["requests"]:
                        raise RuntimeError(f"{result['requests']} acknowledged, {listed} records")
                    rows["api"].append(result["requests"] / result["us"] * 1e6)
                    rows["p50"].append(result["p50_ms"])
                    rows["p99"].append(result["p99_ms"])
                    rows["cpu_us"].append(cpu / result["requests"] * 1e6)
                    rows["batch"].append(batch)
                    words = [o.stoker, "submit", "--cpus", "1", "--", "true"]
                    rows["cli"].append(slurm.submit_many(words, server.environment, o.processes // 2, 1))
                    rows["cli8"].append(slurm.submit_many(words, server.environment, o.processes, 8))
                    release(server, occupant)
                    for name, group in (("one", 1), ("same", batch)):
                        bare = subprocess.run([o.bare, "bare", folder + "/bare.db", str(2000 * group if group < 10 else 40000),
                                               str(group), "700"], capture_output=True, text=True, check=True)
                        rows[name].append(float(bare.stdout))
                if cluster:
                    words = ["sbatch", "--hold", "-o", "/dev/null", cluster.script]
                    rows["s1"].append(slurm.submit_many(words, cluster.environment, o.processes // 2, 1))
                    rows["s8"].append(slurm.submit_many(words, cluster.environment, o.processes, 8))
        finally:
            if cluster:
                version = cluster.version()
                cluster.stop()
    middle = len(rows["p50"]) // 2
    report.add("durable submits through POST /api/v1/runs, 64 connections", rows["api"], "/s", (">=", 4000),
               p50_ms=sorted(rows["p50"])[middle], p99_ms=sorted(rows["p99"])[middle],
               server_cpu_us=sorted(rows["cpu_us"])[middle], a_commit=sorted(rows["batch"])[middle])
    report.add("bare SQLite, synchronous=FULL, one row a commit", rows["one"], "/s")
    report.add("bare SQLite, synchronous=FULL, as many rows a commit as we had", rows["same"], "/s")
    report.add("stoker submit, one process each, one after another", rows["cli"], "/s")
    report.add("stoker submit, one process each, 8 at once", rows["cli8"], "/s")
    if cluster:
        report.add("sbatch --hold, one process each, one after another", rows["s1"], "/s", slurm=version)
        report.add("sbatch --hold, one process each, 8 at once", rows["s8"], "/s", slurm=version)
    else:
        report.missing("sbatch on a real slurmctld", why)


def history(o, folder):
    """A journal as 100,000 runs leave it that started and ended, without its last snapshot's help."""
    where = os.path.join(folder, "state")
    done = subprocess.run([o.history, "history", where, str(o.runs)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return where, done.stdout.strip()


def page_times(server, cursors, count):
    connection = server.connect()
    times = []
    for i in range(count):
        cursor = random.choice(cursors)
        began = time.monotonic()
        status, body = connection.get("/api/v1/runs?limit=50" + (f"&cursor={cursor}" if cursor else ""))
        times.append((time.monotonic() - began) * 1e3)
        if status != 200 or len(json.loads(body)["items"]) != 50:
            raise RuntimeError(f"{status} {body[:300]}")
    connection.close()
    return times


def health_times(server, count):
    connection = server.connect()
    times = []
    for _ in range(count):
        began = time.monotonic()
        if connection.get("/healthz")[0] != 200:
            raise RuntimeError("/healthz")
        times.append((time.monotonic() - began) * 1e3)
    connection.close()
    return times


def some_cursors(server, runs):
    """Places all over the list: every page of it is walked once, 500 runs at a time."""
    connection = server.connect()
    cursors, cursor = [""], ""
    while len(cursors) < runs // 500:
        answer = json.loads(connection.get("/api/v1/runs?limit=500" + (f"&cursor={cursor}" if cursor else ""))[1])
        cursor = answer.get("next_cursor")
        if not cursor:
            break
        cursors.append(cursor)
    connection.close()
    return cursors[:-1]


def long_journal(o, report):
    """Pages, memory and the start with 100,000 runs."""
    with Folder(o.folder) as folder:
        where, said = history(o, folder)
        print(said, flush=True)
        first, cpu, later = [], [], []
        for i in range(o.rounds):
            server = Server(o.stoker, where)
            first.append(server.start_s)
            cpu.append(server.start_cpu_s)
            if i + 1 < o.rounds:
                server.stop()
        records = int(server.metric("stoker_journal_records_total"))
        report.add(f"stoker up on {o.runs} ended runs", first, "s", cpu_s=sorted(cpu)[len(cpu) // 2], records=records)
        report.add(f"resident with {o.runs} ended runs", rss_mb(server.pid), "MB",
                   kb_a_run=(rss_mb(server.pid) - 20) * 1e3 / o.runs)
        cursors = some_cursors(server, o.runs)
        random.seed(1)
        quiet = [page_times(server, cursors, 1000) for _ in range(o.rounds)]
        report.add("page of 50 of 100,000 runs, p99", [quantile(each, 0.99) for each in quiet], "ms", ("<=", 10),
                   p50_ms=quantile(sum(quiet, []), 0.5), worst_ms=max(sum(quiet, [])))
        listing = []
        for _ in range(max(10, 5 * o.rounds)):
            began = time.monotonic()
            done = server.call("ps", "--all", "--limit", "50")
            listing.append((time.monotonic() - began) * 1e3)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        report.add("stoker ps on it, the whole command, p50", [quantile(listing, 0.5)], "ms", p99_ms=quantile(listing, 0.99))
        if shutil.which("wrk"):
            occupant = occupy(server)
            # Beside each page an answer that looks at no state: what is left is the two processors, which the storm fills.
            stormy, floor, rate = [], [], []
            for _ in range(o.rounds):
                result = []
                thread = threading.Thread(target=lambda: result.append(storm(server, o.seconds)))
                thread.start()
                time.sleep(0.3)
                times, empty = [], []
                while thread.is_alive():
                    times += page_times(server, cursors, 20)
                    empty += health_times(server, 20)
                thread.join()
                stormy.append(times)
                floor.append(empty)
                rate.append(result[0]["requests"] / result[0]["us"] * 1e6)
            report.add("the same in a storm of submits, p99", [quantile(each, 0.99) for each in stormy], "ms", ("<=", 10),
                       p50_ms=quantile(sum(stormy, []), 0.5), worst_ms=max(sum(stormy, [])),
                       healthz_p99_ms=quantile(sum(floor, []), 0.99), submits_per_s=sorted(rate)[len(rate) // 2])
            release(server, occupant)
        server.stop()


def admission(o, report):
    """A server with 10,000 queued runs; each submission makes it look at the whole queue in its turn."""
    p50, p99, base, described = [], [], [], []
    for _ in range(o.rounds):
        with Folder(o.folder) as folder:
            where = os.path.join(folder, "state")
            for count in (0, 10_000):
                server = Server(o.stoker, where, "--virtual-nodes", "2")
                if count == 0:
                    occupant = occupy(server)
                else:
                    queue_up(server, count)
                    server.stop()
                    server = Server(o.stoker, where, "--virtual-nodes", "2")
                    time.sleep(1)
                connection = server.connect()
                for i in range(60):
                    connection.submit(name=f"after-{i}", command=["true"], per_rank={"cpu_milli": 500})
                    time.sleep(0.12)  # longer than a server with such a queue waits between two looks
                text = connection.get("/metrics")[1].decode()
                values = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.splitlines() if line[0] != "#"}
                median = values['stoker_commit_seconds{quantile="0.5"}'] * 1e3
                if count == 0:
                    base.append(median)
                else:
                    p50.append(median)
                    p99.append(values['stoker_commit_seconds{quantile="0.99"}'] * 1e3)
                    for i in range(30):
                        run = f"r-{random.randrange(3, count)}"
                        began = time.monotonic()
                        status, body = connection.get("/api/v1/runs/" + run)
                        described.append((time.monotonic() - began) * 1e3)
                        if status != 200 or json.loads(body)["run"]["state"] != "queued" or "why" not in json.loads(body):
                            raise RuntimeError(f"{status} {body[:500]}")
                connection.close()
                if count == 0:
                    server.stop()
            release(server, occupant)
    report.add("turn with a pass over 10,000 queued runs and its commit", p50, "ms", ("<", 50),
               p99_ms=max(p99), without_queue_ms=sorted(base)[len(base) // 2])
    report.add("describe of a queued run among them (why, blockers, ETA)", quantile(described, 0.5), "ms",
               p99_ms=quantile(described, 0.99))


def first_job(o, report):
    running, whole = [], []
    for _ in range(20):
        with Folder(o.folder) as folder:
            environment = dict(os.environ, STOKER_FOLDER=folder + "/state", HOME=folder)
            stamp = folder + "/stamp"
            began = time.time()
            done = subprocess.run([o.stoker, "run", "--", "sh", "-c", f"date +%s.%N > {stamp}"], env=environment, cwd=folder,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            whole.append((time.time() - began) * 1e3)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            running.append((float(open(stamp).read()) - began) * 1e3)
    report.add("stoker run in an empty folder: its program runs after", quantile(running, 0.5), "ms", ("<", 1000),
               p99_ms=max(running), repeats=20)
    report.add("stoker run in an empty folder: the whole command", quantile(whole, 0.5), "ms", worst_ms=max(whole), repeats=20)


def idle(o, report):
    rss, cpu, threads, start = [], [], [], []
    for _ in range(o.rounds):
        with Folder(o.folder) as folder:
            server = Server(o.stoker, os.path.join(folder, "state"))
            start.append(server.start_s * 1e3)
            time.sleep(2)
            before = cpu_seconds(server.pid)
            time.sleep(10)
            cpu.append((cpu_seconds(server.pid) - before) * 1e3 / 10)
            rss.append(rss_mb(server.pid))
            threads.append(status_of(server.pid, "Threads"))
            server.stop()
    report.add("idle server, resident", rss, "MB", ("<", 40), threads=int(max(threads)))
    report.add("idle server, CPU", cpu, "ms a second")
    report.add("stoker up in an empty folder, until it listens", start, "ms")


def watchers(o, report):
    with Folder(o.folder) as folder:
        server = Server(o.stoker, os.path.join(folder, "state"))
        occupant = occupy(server)

        def run(count, seconds, rate):
            sockets, poll = [], select.epoll()
            for _ in range(count):
                one = socket.create_connection((server.host, server.port))
                one.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {server.host}\r\nAccept: text/event-stream\r\n"
                            f"Authorization: Bearer {server.token}\r\n\r\n".encode())
                one.setblocking(False)
                sockets.append(one)
                poll.register(one, select.EPOLLIN)
            time.sleep(1)
            by_number = {one.fileno(): one for one in sockets}
            count_of = multiprocessing.get_context("fork")
            events, closed, stop = count_of.Value("q", 0), count_of.Value("q", 0), count_of.Event()

            def read():
                tails = dict.fromkeys(by_number, b"")
                while not stop.is_set():
                    for number, _ in poll.poll(0.1):
                        try:
                            data = by_number[number].recv(1 << 20)
                        except BlockingIOError:
                            continue
                        if not data:
                            closed.value += 1
                            poll.unregister(number)
                            continue
                        text = tails[number] + data
                        events.value += text.count(b"\nid: ") + text.startswith(b"id: ")
                        tails[number] = text[-4:]
            reader = count_of.Process(target=read)  # of its own, so that the senders do not hold it up
            reader.start()
            time.sleep(0.5)
            began_events, cpu, sent = events.value, cpu_seconds(server.pid), [0]
            end = time.monotonic() + seconds

            def send(share):
                connection = server.connect()
                at = time.monotonic()
                while time.monotonic() < end:
                    connection.submit(name="seen", command=["true"])
                    sent[0] += 1
                    at += 1 / share
                    time.sleep(max(0, at - time.monotonic()))
                connection.close()
            senders = [threading.Thread(target=send, args=(rate / 8,)) for _ in range(8)]
            for each in senders:
                each.start()
            for each in senders:
                each.join()
            for _ in range(100):
                if events.value - began_events >= sent[0] * count:
                    break
                time.sleep(0.1)
            cpu = cpu_seconds(server.pid) - cpu
            stop.set()
            reader.join()
            for one in sockets:
                one.close()
            return cpu, sent[0], events.value - began_events, closed.value, sent[0] / seconds
        cost, rates, cuts, lost = [], [], 0, 0
        for _ in range(o.rounds):
            alone = run(0, o.seconds, 1000)
            cpu, sent, seen, cut, rate = run(100, o.seconds, 1000)
            cuts += cut
            lost += max(0, sent * 100 - seen)
            cost.append((cpu - alone[0] / max(1, alone[1]) * sent) / max(1, seen) * 1e6)
            rates.append(rate)
        report.add("100 watchers (SSE) of submits, server CPU an event", cost, "us",
                   submits_per_s=sorted(rates)[len(rates) // 2], cut_off=cuts, events_missed=lost)
        release(server, occupant)


PARTS = {"submits": submits, "pages": long_journal, "admission": admission, "first": first_job, "idle": idle,
         "watchers": watchers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--folder", default=None, help="on the disk that is measured (the usual temporary folder)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of a storm")
    parser.add_argument("--processes", type=int, default=400, help="submissions of a row with one process each")
    parser.add_argument("--runs", type=int, default=HISTORY)
    parser.add_argument("--only", default=",".join(PARTS))
    o = parser.parse_args()
    o.stoker = os.path.abspath(o.stoker)
    o.bare = os.path.join(os.path.dirname(o.stoker), "bench_submits")
    o.history = os.path.join(os.path.dirname(o.stoker), "bench_engine_submits")
    for path in (o.stoker, o.bare, o.history):
        if not os.path.exists(path):
            fail(f"there is no {path}; ./dev bench api builds it")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(o.stoker)
    for name in o.only.split(","):
        if name not in PARTS:
            fail(f"there is no part {name}: {', '.join(PARTS)}")
        PARTS[name](o, report)
    report.end()


if __name__ == "__main__":
    main()
