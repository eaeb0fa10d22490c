"""What the measurements through the real server share: a server on a folder of its own, requests over connections that
stay open, CPU and memory of a process, and how a figure is printed."""

import http.client
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HZ = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of all its threads."""
    words = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / HZ


def status_of(pid, key):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def rss_mb(pid):
    return status_of(pid, "VmRSS") * 1024 / 1e6


def steal_and_idle():
    """Seconds that the hypervisor took, and that nobody used, of all processors together."""
    words = open("/proc/stat").readline().split()[1:]
    return int(words[7]) / HZ, int(words[3]) / HZ


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(q * len(values)) - 1 if q > 0 else 0)]


class Server:
    """`stoker up` on `folder`, killed and waited for in the end."""

    def __init__(self, binary, folder, *words, limit_s=300):
        self.folder = folder
        self.environment = dict(os.environ, STOKER_FOLDER=folder, HOME=os.path.dirname(folder), NO_COLOR="1")
        for name in ("STOKER_SERVER", "STOKER_TOKEN"):
            self.environment.pop(name, None)
        self.binary = binary
        os.makedirs(folder, exist_ok=True)
        address = os.path.join(folder, "server.json")
        if os.path.exists(address):
            os.unlink(address)
        self.errors = open(os.path.join(folder, "bench.err"), "a+")
        began = time.monotonic()
        self.process = subprocess.Popen([binary, "up", "--azure-events", "off", *words], env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)
        while not os.path.exists(address):
            if self.process.poll() is not None or time.monotonic() - began > limit_s:
                self.errors.seek(0)
                raise RuntimeError(f"stoker up ended with {self.process.poll()}: {self.errors.read()}")
            time.sleep(0.001)
        self.start_s = time.monotonic() - began
        self.start_cpu_s = cpu_seconds(self.process.pid)
        self.url = json.load(open(address))["url"]
        self.host, port = self.url.removeprefix("http://").split(":")
        self.port = int(port)
        self.token = open(os.path.join(folder, "token")).read().strip()
        self.pid = self.process.pid

    def connect(self):
        return Connection(self.host, self.port, self.token)

    def call(self, *words, limit_s=60):
        return subprocess.run([self.binary, *words], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=limit_s)

    def metric(self, name):
        connection = self.connect()
        text = connection.get("/metrics")[1].decode()
        connection.close()
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Connection:
    def __init__(self, host, port, token):
        self.connection = http.client.HTTPConnection(host, port, timeout=60)
        self.headers = {"Authorization": "Bearer " + token}
        self.json = dict(self.headers, **{"Content-Type": "application/json"})

    def get(self, path):
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def post(self, path, body=None):
        self.connection.request("POST", path, None if body is None else json.dumps(body),
                                self.headers if body is None else self.json)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def submit(self, **spec):
        status, body = self.post("/api/v1/runs", spec)
        if status != 201:
            raise RuntimeError(f"{status} {body.decode()}")
        return json.loads(body)["run"]

    def close(self):
        self.connection.close()


class Folder:
    """A place on the disk that is measured; gone in the end."""

    def __init__(self, where):
        self.path = tempfile.mkdtemp(prefix="stoker-bench-", dir=where)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return {"cpu": model, "cores": os.cpu_count(), "memory_gb": round(memory / 1e6, 1), "kernel": platform.release()}


class Report:
    def __init__(self, binary):
        self.commit = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
        self.machine = machine()
        self.began = (time.time(), *steal_and_idle())
        print(f"{self.commit}; {json.dumps(self.machine)}; load {os.getloadavg()[0]:.1f}", flush=True)

    def add(self, name, values, unit, bar=None, **more):
        """Values of one figure, one a round. bar: ("<", 10) or (">=", 4000) against the median."""
        values = [float(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
        median = statistics.median(values)
        met = None
        if bar is not None:
            met = median < bar[1] if bar[0] == "<" else median <= bar[1] if bar[0] == "<=" else median >= bar[1]
        spread = f" ({min(values):.4g} to {max(values):.4g}, {len(values)} rounds)" if len(values) > 1 else ""
        tail = "" if bar is None else f"   bar {bar[0]} {bar[1]:g}: {'met' if met else 'NOT MET'}"
        extra = "".join(f", {key} {value:.4g}" if isinstance(value, float) else f", {key} {value}"
                        for key, value in more.items())
        print(f"{name}: {median:.4g} {unit}{spread}{extra}{tail}")
        print(json.dumps({"figure": name, "median": median, "unit": unit, "values": values, "bar": bar, "met": met,
                          "commit": self.commit, "machine": self.machine, "load": os.getloadavg()[0], **more}),
              flush=True)

    def missing(self, name, why):
        print(f"{name}: not measured: {why}")
        print(json.dumps({"figure": name, "missing": why}), flush=True)

    def end(self):
        began, steal, idle = self.began
        seconds = time.time() - began
        now_steal, now_idle = steal_and_idle()
        print(f"{seconds:.0f} s; of {seconds * os.cpu_count():.0f} s of {os.cpu_count()} cores {now_idle - idle:.0f} s "
              f"idle, {now_steal - steal:.0f} s taken by the hypervisor; load {os.getloadavg()[0]:.1f}", flush=True)


def fail(text):
    print("error: " + text, file=sys.stderr)
    sys.exit(3)
