"""The gateway beside nginx and HAProxy of Debian, all in front of the same upstream, in one interleaved run.

    python3 bench/gateway/gateway.py --stoker build/release/stoker [--rounds 5] [--seconds 4] [--cpu 1] [post] [half] [sse] [cancel]

post: 1 KiB, 64 connections, with key, limits, budget and durable ledger (stoker), without the ledger (stoker-free), with an access log as well (stoker-log), and plain
relays (nginx, haproxy); wrk is closed-loop, so that only ratios mean something. half: the time that each adds to the upstream's own at
half of what it takes at most, asked by clients that think in between, the upstream asked at the same rate beside it. sse: streams of bench/gateway/stream.py, CPU of
the proxy per event and memory per held stream. cancel: how long after a client has closed its upstream is closed. The last
line is JSON. Needs nginx-light, haproxy and wrk; CPU time is that of the worker, from /proc/PID/stat."""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TICKS = os.sysconf("SC_CLK_TCK")
ANSWER = ('{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
          '{"role":"assistant","content":"one two three"}}],"usage":{"prompt_tokens":180,"completion_tokens":3,"total_tokens":183}}')
TEMPORARY = "".join(f"{kind}_temp_path tmp_{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
NGINX = "worker_processes 1; daemon off; pid nginx-%d.pid; error_log stderr error; events { worker_connections 16384; } http { access_log off; %s keepalive_requests 1000000000; keepalive_timeout 3600s; %s }"


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="stoker-bench-gateway-")
        self.children = []
        self.ports = {}

    def close(self):
        for child in self.children:
            child.terminate()
        for child in self.children:
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def free_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    # On the one processor, and before whatever else wants it.
    def pinned(self, *words):
        return ["taskset", "-c", str(self.options.cpu)] + (["nice", "-n", "-15"] if os.geteuid() == 0 else []) + list(words)

    def run(self, *words):
        pinned = self.pinned(*words)
        log = open(os.path.join(self.folder, f"log-{len(self.children)}"), "w")
        child = subprocess.Popen(pinned, cwd=self.folder, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def wait_port(self, port):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        for i in range(len(self.children)):
            sys.stderr.write(open(os.path.join(self.folder, f"log-{i}")).read())
        sys.exit(f"nothing listens on {port}")

    def start_upstream(self):
        port = self.ports["direct"] = self.free_port()
        self.write("upstream.conf", NGINX % (port, TEMPORARY, "server { listen 127.0.0.1:%d backlog=4096 reuseport; default_type application/json; location / { return 200 '%s'; } }" % (port, ANSWER)))
        self.run("nginx", "-p", self.folder + "/", "-c", "upstream.conf")
        self.wait_port(port)
        return port

    def start_proxies(self, upstream):
        port = self.ports["nginx"] = self.free_port()
        self.write("nginx.conf", NGINX % (port, TEMPORARY, "upstream u { server 127.0.0.1:%d; keepalive 1024; keepalive_requests 1000000000; } server { listen 127.0.0.1:%d reuseport backlog=4096; tcp_nodelay on; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; proxy_read_timeout 3600s; } }" % (upstream, port)))
        self.workers = {"nginx": self.run("nginx", "-p", self.folder + "/", "-c", "nginx.conf")}
        port = self.ports["haproxy"] = self.free_port()
        self.write("haproxy.cfg", f"""global
  nbthread 1
  maxconn 9000
defaults
  mode http
  option http-keep-alive
  option http-no-delay
  option abortonclose
  http-reuse always
  timeout connect 5s
  timeout client 3600s
  timeout server 3600s
frontend f
  bind 127.0.0.1:{port}
  default_backend u
backend u
  server s1 127.0.0.1:{upstream} pool-max-conn 1024
""")
        self.workers["haproxy"] = self.run("haproxy", "-f", "haproxy.cfg", "-db")
        key = hashlib.sha256(b"stk_bench").hexdigest()
        for name, more in (("stoker", []), ("stoker-free", ["--no-ledger"]), ("stoker-log", [])):
            port = self.ports[name] = self.free_port()
            log = "access_log: {file: access.log}\n" if name == "stoker-log" else ""
            self.write(f"{name}.yaml", f"listen: 127.0.0.1:{port}\nledger: {{folder: {name}-ledger}}\n{log}"
                       f"models: [{{name: m, upstreams: ['http://127.0.0.1:{upstream}'], price: {{input: 1, output: 2}}}}]\n"
                       f"keys: [{{name: bench, sha256: {key}, requests_per_minute: 1000000000, tokens_per_minute: 100000000000, concurrent: 100000, budget: 1000000}}]\n")
            self.workers[name] = self.run(os.path.abspath(self.options.stoker), "serve", "-q", "--config", f"{name}.yaml", *more)
        for name in self.workers:
            self.wait_port(self.ports[name])

    # Of the process that does the work: nginx has it in a child of its master.
    def worker(self, name):
        pid = self.workers[name].pid
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        return int(children[0]) if name == "nginx" and children else pid

    # In its own code, and in the kernel for it.
    def cpu_parts_s(self, name):
        fields = open(f"/proc/{self.worker(name)}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) / TICKS, int(fields[12]) / TICKS

    def cpu_s(self, name):
        return sum(self.cpu_parts_s(name))

    def pss_kib(self, name):
        return int(re.search(r"^Pss:\s+(\d+)", open(f"/proc/{self.worker(name)}/smaps_rollup").read(), re.M).group(1))


def busy_elsewhere():
    fields = [int(x) for x in open("/proc/stat").readline().split()[1:]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


POST = json.dumps({"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "word " * 180}]}, separators=(",", ":"))


def wrk(bench, name, seconds):
    out = subprocess.run(bench.pinned("wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", "-s", os.path.join(bench.folder, "post.lua"),
                                      f"http://127.0.0.1:{bench.ports[name]}/v1/chat/completions"), capture_output=True, text=True).stdout
    if "Non-2xx" in out or "requests in" not in out:
        sys.exit(f"{name}: {out}")
    return out, float(re.search(r"Requests/sec:\s+(\S+)", out).group(1))


def write_post(bench):
    bench.write("post.lua", f"wrk.method='POST'\nwrk.path='/v1/chat/completions'\nwrk.body=[[{POST}]]\nwrk.headers['Content-Type']='application/json'\nwrk.headers['Authorization']='Bearer stk_bench'\n")


def post(bench):
    write_post(bench)
    bench.start_proxies(bench.start_upstream())
    names = ["direct", "nginx", "haproxy", "stoker", "stoker-log", "stoker-free"]
    seen = {name: [] for name in names}
    for _ in range(bench.options.rounds):
        for name in names:
            before = bench.cpu_s(name) if name != "direct" else 0
            out, rps = wrk(bench, name, bench.options.seconds)
            after = bench.cpu_s(name) if name != "direct" else 0
            requests = int(re.search(r"(\d+) requests in", out).group(1))
            seen[name].append({"rps": rps, "cpu_us": (after - before) / max(1, requests) * 1e6,
                               "p50": re.search(r"50%\s+(\S+)", out).group(1), "p99": re.search(r"99%\s+(\S+)", out).group(1)})
    result = {}
    for name in names:
        rps = [r["rps"] for r in seen[name]]
        result[name] = {"rps": round(statistics.median(rps)), "rps_spread": [round(min(rps)), round(max(rps))],
                        "cpu_us": round(statistics.median(r["cpu_us"] for r in seen[name]), 1), "p50": [r["p50"] for r in seen[name]], "p99": [r["p99"] for r in seen[name]]}
        print(f"{name:12} {result[name]['rps']:>8} req/s ({min(rps):.0f} to {max(rps):.0f})  {result[name]['cpu_us']:>6} us CPU a request", flush=True)
    print(f"stoker / haproxy {result['stoker']['rps'] / result['haproxy']['rps']:.2f}, without the ledger {result['stoker-free']['rps'] / result['haproxy']['rps']:.2f}")
    return result


def in_us(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


# As many clients as think long enough, each for a time of its own, so that they come one by one and not all at once.
def at_rate(bench, name, rate):
    clients = 256
    bench.write("rate.lua", open(os.path.join(bench.folder, "post.lua")).read() + f"function delay() return math.random(0, {round(2000 * clients / rate)}) end\n")
    out = subprocess.run(bench.pinned("wrk", "-t1", f"-c{clients}", f"-d{bench.options.seconds}s", "--latency", "-s", os.path.join(bench.folder, "rate.lua"),
                                      f"http://127.0.0.1:{bench.ports[name]}/v1/chat/completions"), capture_output=True, text=True).stdout
    if "Non-2xx" in out or "requests in" not in out:
        sys.exit(f"{name}: {out}")
    return {"rps": float(re.search(r"Requests/sec:\s+(\S+)", out).group(1)), "p50": in_us(re.search(r"^ +50%\s+(\S+)", out, re.M).group(1)),
            "p99": in_us(re.search(r"^ +99%\s+(\S+)", out, re.M).group(1))}


def half(bench):
    write_post(bench)
    bench.start_proxies(bench.start_upstream())
    names = ["nginx", "haproxy", "stoker", "stoker-free"]
    for name in names:  # connections and code that the first ones bring in
        wrk(bench, name, 1)
    peaks = {name: [] for name in names}
    for _ in range(3):
        for name in names:
            peaks[name].append(wrk(bench, name, 2)[1])
    seen = {name: [] for name in names}
    for _ in range(bench.options.rounds):
        for name in names:
            rate = statistics.median(peaks[name]) / 2
            through, direct = at_rate(bench, name, rate), at_rate(bench, "direct", rate)
            seen[name].append({key: (through[key], direct[key]) for key in ("p50", "p99", "rps")})
    result = {}
    for name in names:
        # Of several rounds the median: in one something else ran.
        added = {key: [r[key][0] - r[key][1] for r in seen[name]] for key in ("p50", "p99")}
        result[name] = {"rate": round(statistics.median(peaks[name]) / 2), "added_p50_us": statistics.median(added["p50"]), "added_p99_us": statistics.median(added["p99"]), "rounds": seen[name]}
        print(f"half {name:12} at {result[name]['rate']} req/s: adds p50 {result[name]['added_p50_us']:.0f} us ({min(added['p50']):.0f} to {max(added['p50']):.0f}), "
              f"p99 {result[name]['added_p99_us']:.0f} us ({min(added['p99']):.0f} to {max(added['p99']):.0f})", flush=True)
    return result


# A proxy in front of a server that says one event every so often on each stream.
def sse(bench):
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "stream.py"), "server"], stdout=subprocess.PIPE, text=True)
    bench.children.append(server)
    upstream = int(server.stdout.readline())
    bench.ports["direct"] = upstream
    bench.start_proxies(upstream)
    result = {}

    def client(name, streams, interval_ms, seconds):
        return subprocess.Popen([sys.executable, os.path.join(HERE, "stream.py"), "client", str(bench.ports[name]), str(streams), str(interval_ms), str(seconds)],
                                stdout=subprocess.PIPE, text=True)
    # The first streams bring in code and tables that no later one does: they are not what a stream costs.
    for name in ("nginx", "haproxy", "stoker"):
        client(name, 20, 20, 1).communicate()
    for streams, interval_ms in ((100, 20), (1000, 200)):
        for name in ["nginx", "haproxy", "stoker"] * max(1, bench.options.rounds // 2):
            idle = bench.pss_kib(name)
            listener = client(name, streams, interval_ms, bench.options.seconds)
            listener.stdout.readline()  # all streams are there
            before, held = bench.cpu_parts_s(name), bench.pss_kib(name)
            listener.stdout.readline()  # and have been measured
            after = bench.cpu_parts_s(name)
            seen = json.loads(listener.stdout.readline())
            listener.wait()
            own, kernel = ((after[i] - before[i]) / max(1, seen["events"]) * 1e6 for i in (0, 1))
            seen.update(cpu_us_per_event=round(own + kernel, 1), own_us_per_event=round(own, 1), kib_per_stream=round((held - idle) / streams, 1))
            result.setdefault(f"{streams}x{interval_ms}", {}).setdefault(name, []).append(seen)
            print(f"{streams} x {interval_ms} ms {name:8} {seen['events']:>7} events  {seen['cpu_us_per_event']:>6} us CPU an event, {seen['own_us_per_event']} of them in its own code  p50 {seen['p50_us']:.0f} us  p99 {seen['p99_us']:.0f} us  {seen['kib_per_stream']} KiB a stream", flush=True)
    return result


def cancel(bench):
    gone, lock = {}, threading.Lock()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)

    def serve(client):
        data = b""
        while b"\r\n\r\n" not in data or b"}" not in data:
            data += client.recv(65536)
        who = re.search(rb'"user": ?"(\w+)"', data).group(1).decode()
        event = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event))
        try:
            client.recv(1)
        except OSError:
            pass
        with lock:
            gone[who] = time.monotonic()
        client.close()

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    bench.start_proxies(listener.getsockname()[1])
    result = {}
    for name in ("nginx", "haproxy", "stoker"):
        took = []
        for i in range(bench.options.cancels):
            who = f"{name}{i}"
            body = json.dumps({"model": "m", "stream": True, "user": who, "messages": []})
            s = socket.create_connection(("127.0.0.1", bench.ports[name]))
            s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stk_bench\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            got = b""
            while b"content" not in got.split(b"\r\n\r\n", 1)[-1]:
                got += s.recv(65536)
            time.sleep(random.random() * 0.01)
            at = time.monotonic()
            s.close()
            while who not in gone and time.monotonic() < at + 5:
                time.sleep(0.0002)
            took.append((gone.get(who, at + 5) - at) * 1000)
        took.sort()
        result[name] = {"n": len(took), "p50_ms": round(took[len(took) // 2], 2), "p99_ms": round(took[int(len(took) * 0.99)], 2), "max_ms": round(took[-1], 2)}
        print(f"cancel {name:8} n {len(took)}  p50 {result[name]['p50_ms']} ms  p99 {result[name]['p99_ms']} ms  max {result[name]['max_ms']} ms", flush=True)
    listener.close()
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--cancels", type=int, default=200)
    parser.add_argument("--cpu", type=int, default=os.cpu_count() - 1)
    parser.add_argument("what", nargs="*", default=["post", "half", "sse", "cancel"])
    options = parser.parse_args()
    missing = [name for name in ("nginx", "haproxy", "wrk", "taskset") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        sys.exit(f"skipped: {', '.join(missing)} not installed (apt-get install nginx-light haproxy wrk)")
    os.environ["PATH"] += ":/usr/sbin"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    result = {"machine": open("/proc/cpuinfo").read().split("model name\t: ")[1].split("\n")[0], "load_before": os.getloadavg()[0],
              "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE).stdout.strip()}
    for what in options.what:
        bench = Bench(options)
        try:
            busy, total = busy_elsewhere()
            result[what] = {"post": post, "half": half, "sse": sse, "cancel": cancel}[what](bench)
            busy_now, total_now = busy_elsewhere()
            result[what]["cpus_busy"] = round((busy_now - busy) / (total_now - total) * os.cpu_count(), 2)
        finally:
            bench.close()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
