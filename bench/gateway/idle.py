"""Memory of the gateway: what a held stream costs in which nothing happens, and whether it stays the same over many requests.

    python3 bench/gateway/idle.py --stoker build/release/stoker [--streams 10000] [--rounds 3] [--seconds 120] [--requests 0]

Streams: as many at once, each with its first event and then silence, behind a key, limits, a budget and a durable ledger; then all
leave, and come again. Told is what the process holds of its own (Anonymous in /proc/PID/smaps_rollup): sockets of the kernel are not
in it. Requests: POSTs of 1 KiB by wrk for --seconds, or until there were --requests,
looked at after each tenth of --seconds. It is memory that is measured: neither a processor nor a priority is claimed. The last line is JSON; exit 1 where a stream takes more
than 8 KiB, or the last half of the requests left more than 2 % behind."""

import argparse
import hashlib
import json
import os
import re
import resource
import select
import socket
import subprocess
import sys
import time

from gateway import Bench

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"first"}}]}\n\n'
BODY = json.dumps({"model": "m", "max_tokens": 16, "stream": True, "messages": [{"role": "user", "content": "word " * 180}]}).encode()
MOST_KIB, MOST_GROWTH = 8.0, 0.02


def many_files(streams):
    """How many streams the files allow that may be open at once: the gateway has two for each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = streams if hard == resource.RLIM_INFINITY else min(streams, (hard - 500) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * most + 500, hard))
    if most < streams:
        print(f"{most} streams, since no more than {hard} files may be open at once (ulimit -Hn)", file=sys.stderr)
    return most



def server():
    """Answers each request with one event, and is silent then."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    poll, clients, inputs = select.epoll(), {}, {}
    poll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                try:
                    while True:
                        client, _ = listener.accept()
                        clients[client.fileno()], inputs[client.fileno()] = client, b""
                        client.setblocking(False)
                        poll.register(client, select.EPOLLIN)
                except BlockingIOError:
                    continue
            try:
                piece = clients[fd].recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                poll.unregister(fd)
                clients.pop(fd).close()
                inputs.pop(fd)
                continue
            inputs[fd] += piece
            if inputs[fd].endswith(b"}]}"):
                inputs[fd] = b""
                try:
                    clients[fd].sendall(HEAD + b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
                except OSError:
                    pass


def hold(port, streams):
    """Opens them, waits for the first event of each; they are open until it is closed."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stk_bench\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    held = []
    for begin in range(0, streams, 200):  # some at a time: it is not the storm that is measured
        some = []
        for _ in range(begin, min(begin + 200, streams)):
            s = socket.create_connection(("127.0.0.1", port), timeout=60)
            s.sendall(head + BODY)
            some.append(s)
        for s in some:
            got = b""
            while b"first" not in got:
                piece = s.recv(65536)
                if not piece:
                    sys.exit(f"a stream ended with {got!r}")
                got += piece
        held += some
    return held


class Idle(Bench):
    def run(self, *words):
        log = open(os.path.join(self.folder, f"log-{len(self.children)}"), "w")
        self.children.append(subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log))
        return self.children[-1]

    def start(self, upstream):
        port = self.free_port()
        self.write("gateway.yaml", f"listen: 127.0.0.1:{port}\nledger: {{folder: ledger}}\ntimeouts: {{silence: 1h}}\n"
                   f"models: [{{name: m, upstreams: ['http://127.0.0.1:{upstream}'], price: {{input: 1, output: 2}}}}]\n"
                   f"keys: [{{name: bench, sha256: {hashlib.sha256(b'stk_bench').hexdigest()}, requests_per_minute: 1000000000, "
                   f"tokens_per_minute: 100000000000, concurrent: 100000, budget: 1000000}}]\n")
        self.gateway = self.run(os.path.abspath(self.options.stoker), "serve", "-q", "--config", "gateway.yaml")
        self.wait_port(port)
        return port

    def own_kib(self):
        text = open(f"/proc/{self.gateway.pid}/smaps_rollup").read()
        return int(re.search(r"^Anonymous:\s+(\d+)", text, re.M).group(1))

    def wait_streams(self, port, wanted):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                text = b""
                while piece := s.recv(65536):
                    text += piece
            if int(float(re.search(rb"^stoker_gateway_held_streams (\S+)", text, re.M).group(1))) == wanted:
                return
            time.sleep(0.2)
        sys.exit(f"not {wanted} streams after a minute")


def streams(bench):
    upstream = subprocess.Popen([sys.executable, os.path.abspath(__file__), "server", str(bench.options.streams)], stdout=subprocess.PIPE, text=True)
    bench.children.append(upstream)
    port = bench.start(int(upstream.stdout.readline()))
    for s in hold(port, 20):  # the first ones bring in code and tables that no later one does
        s.close()
    bench.wait_streams(port, 0)
    idle, result = bench.own_kib(), []
    for _ in range(bench.options.rounds):
        held = hold(port, bench.options.streams)
        bench.wait_streams(port, bench.options.streams)
        time.sleep(1.5)  # what is on its way to the disk is there
        full = bench.own_kib()
        for s in held:
            s.close()
        bench.wait_streams(port, 0)
        time.sleep(0.5)
        result.append({"kib_per_stream": round((full - idle) / bench.options.streams, 2), "held_kib": full, "left_kib": bench.own_kib()})
        print(f"{bench.options.streams} streams: {result[-1]['kib_per_stream']} KiB each; {full} KiB with them, {result[-1]['left_kib']} KiB when they have left, {idle} KiB before", flush=True)
    return result


def requests(bench):
    port = bench.start(bench.start_upstream())
    body = json.dumps({"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "word " * 180}]}, separators=(",", ":"))
    bench.write("post.lua", f"wrk.method='POST'\nwrk.body=[[{body}]]\nwrk.headers['Content-Type']='application/json'\nwrk.headers['Authorization']='Bearer stk_bench'\n")
    seen, done = [], 0
    while len(seen) < 10 or done < bench.options.requests:
        out = subprocess.run(["wrk", "-t1", "-c64", f"-d{max(1, bench.options.seconds // 10)}s", "-s", os.path.join(bench.folder, "post.lua"),
                              f"http://127.0.0.1:{port}/v1/chat/completions"], capture_output=True, text=True).stdout
        if "Non-2xx" in out or "requests in" not in out:
            sys.exit(out)
        done += int(re.search(r"(\d+) requests in", out).group(1))
        seen.append({"requests": done, "kib": bench.own_kib()})
        print(f"{done:>9} requests: {seen[-1]['kib']} KiB", flush=True)
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("what", nargs="*", default=["streams", "requests"])
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    if "streams" in options.what:
        options.streams = many_files(options.streams)
    result = {"load_before": os.getloadavg()[0]}
    for what in options.what:
        bench = Idle(options)
        try:
            result[what] = {"streams": streams, "requests": requests}[what](bench)
        finally:
            bench.close()
    print(json.dumps(result))
    heavy = [each["kib_per_stream"] for each in result.get("streams", []) if each["kib_per_stream"] > MOST_KIB]
    grown = "requests" in result and result["requests"][-1]["kib"] / result["requests"][len(result["requests"]) // 2 - 1]["kib"] - 1 > MOST_GROWTH
    sys.exit(1 if heavy or grown else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["server"]:
        many_files(int(sys.argv[2]))
        server()
    main()
