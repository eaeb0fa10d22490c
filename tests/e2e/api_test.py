"""The API keeps what its OpenAPI promises, whatever is sent: schemathesis against the shipped server with real runs; and
live events as a real client reads them.

    python3 tests/e2e/api_test.py --stoker build/release/stoker [NAME...]

schemathesis comes from PyPI, pinned in requirements.txt, into build/e2e-venv; where it cannot be had, its test fails and
says what was missing. STOKER_E2E_EXAMPLES=N tries N bodies per operation (6)."""

import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import urllib.parse

from harness import Failure, Skipped, check, main, wait_for
from pythons import pinned_python

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent.parent / "build" / "e2e-venv"
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection")


METRIC_LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
ENDINGS = {"summary": ("", "_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}


def strict_metrics(text):
    """{family: type} of an answer of /metrics; a Failure for what a strict reader of the text format refuses."""
    check(text.endswith("\n"), "the last line ends")
    families, seen, helped, now = {}, set(), set(), None
    for line in text.splitlines():
        check(line == line.strip() and line, f"a plain line: {line!r}")
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            check(name not in helped, f"one HELP of {name}")
            check(len(line.split(" ", 3)) == 4, f"HELP says something: {line}")
            helped.add(name)
            now = name
        elif line.startswith("# TYPE "):
            words = line.split(" ")
            check(len(words) == 4 and words[3] in ("counter", "gauge", "summary", "histogram"), f"a type: {line}")
            check(words[2] == now and words[2] not in families, f"TYPE once, after its HELP: {line}")
            families[words[2]] = words[3]
        else:
            match = METRIC_LINE.match(line)
            check(match, f"a sample: {line}")
            name, labels, value = match.groups()
            check(now in families, f"declared before its samples: {line}")
            check(name in [now + end for end in ENDINGS.get(families[now], ("",))], f"of {now}: {line}")
            check(families[now] != "counter" or name.endswith("_total"), f"a counter ends in _total: {name}")
            rest = labels or ""
            while rest:
                label = LABEL.match(rest)
                check(label, f"labels: {line}")
                rest = rest[label.end():]
            check((name, labels) not in seen, f"once: {line}")
            seen.add((name, labels))
            check(float(value) >= 0 or families[now] == "gauge", f"a number that only grows: {line}")
    check(helped == set(families), "each family has HELP and TYPE")
    return families


class Api:
    """One connection at a time to the server of t, with its token."""

    def __init__(self, t):
        address = json.load(open(os.path.join(t.folder, "server.json")))
        self.url = address["url"]
        self.port = urllib.parse.urlsplit(self.url).port
        self.token = open(os.path.join(t.folder, "token")).read().strip()

    def call(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body, {"Authorization": "Bearer " + self.token,
                                                    "Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def json(self, method, path, body=None, **options):
        status, _, text = self.call(method, path, body, **options)
        check(status < 300, f"{method} {path}: {status} {text}")
        return json.loads(text)

    def submit(self, *command, **fields):
        return self.json("POST", "/api/v1/runs", {"name": "job", "command": list(command), **fields})["run"]


class Events:
    """A stream of server-sent events, parsed as its standard says."""

    def __init__(self, api, path="/api/v1/events", last=None, timeout=60):
        self.connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=timeout)
        headers = {"Authorization": "Bearer " + api.token, "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        self.comments = 0
        self.retry = None

    def next(self):
        """The next event as (id, event, data); None at the end of the stream."""
        fields = {}
        while True:
            line = self.answer.readline()
            if not line:
                return None
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return int(fields["id"]), fields["event"], json.loads(fields["data"])
            else:
                self.retry = fields.get("retry", self.retry)
                fields = {}

    def until(self, wanted):
        seen = []
        while True:
            event = self.next()
            check(event is not None, f"the stream ended after {seen}")
            seen.append(event)
            if wanted(event):
                return seen

    def close(self):
        self.connection.close()


def ended_well(run):
    return lambda event: event[2]["object"] == f"run/{run}" and event[1] == "run_ended"


def last_event_of(api, run):
    return api.json("GET", f"/api/v1/runs/{run}/events?limit=1000")["items"][-1]


def test_a_watcher_sees_everything_once_and_in_order(t):
    """A dashboard that is reconnected now and then draws what happened, without holes and doubles."""
    t.up()
    api = Api(t)
    events = Events(api)
    check(events.answer.getheader("Content-Type") == "text/event-stream", str(events.answer.headers))
    run = api.submit("true")
    wait_for("its end", lambda: api.json("GET", f"/api/v1/runs/{run}")["run"]["state"] == "succeeded")
    end = last_event_of(api, run)["seq"]
    seen = events.until(lambda event: event[0] >= end)
    check([each[0] for each in seen] == list(range(1, end + 1)), f"numbers {[each[0] for each in seen]}")
    check(events.retry == "2000", f"retry {events.retry}")
    page = api.json("GET", f"/api/v1/events?limit=1000")["items"][:end]
    check(page == [each[2] for each in seen], "a page and the stream tell the same")
    events.close()
    half = end // 2
    again = Events(api, last=half)
    check(again.next()[0] == half + 1, "goes on after Last-Event-ID")
    again.close()
    of_run = Events(api, f"/api/v1/runs/{run}/events")
    first = of_run.next()
    check(first[2]["object"] == f"run/{run}" and first[1] == page[first[0] - 1]["kind"], str(first))
    of_run.close()
    for headers in ({"Last-Event-ID": "x"}, {"Last-Event-ID": "-1"}):
        status, _, text = api.call("GET", "/api/v1/events", headers={"Accept": "text/event-stream", **headers})
        check(status == 400 and "Last-Event-ID" in text, f"{headers}: {status} {text}")
    status, _, text = api.call("GET", "/api/v1/runs/r-999/events", headers={"Accept": "text/event-stream"})
    check(status == 404, f"a stream about a run that is not there: {status} {text}")


def test_a_quiet_stream_says_that_it_lives(t):
    """A proxy between them closes what is silent for a minute."""
    t.up()
    api = Api(t)
    events = Events(api, "/api/v1/events?after=1000000")
    begin = time.monotonic()
    while events.answer.readline() not in (b": alive\n",):
        check(time.monotonic() - begin < 40, "no comment within 40 s")
    events.close()


def test_a_reader_that_does_not_read_is_cut_off_and_harms_nobody(t):
    """A laptop that was shut while it watched: the server may not keep what it will never take."""
    server = t.up()
    api = Api(t)
    # Events of 100 kB each: 8 MB are more than the kernel's buffers and the bound of a stream together.
    padding = {"A": "x" * 30_000, "B": "x" * 30_000}
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", api.port))
    slow.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n"
                 "Accept: text/event-stream\r\n\r\n".encode())
    check(slow.recv(12).startswith(b"HTTP/1.1 200"), "the stream begins")
    streams = lambda: int(next(line.split()[1] for line in api.call("GET", "/metrics")[2].splitlines()
                               if line.startswith("stoker_api_streams ")))
    wait_for("it is counted", lambda: streams() == 1)
    slowest = 0

    def fill():
        nonlocal slowest
        for _ in range(20):
            begin = time.monotonic()
            api.submit("true", environment=padding, per_rank={"cpu_milli": 90_000_000})
            slowest = max(slowest, time.monotonic() - begin)
        return streams() == 0
    wait_for("it is cut off", fill, 90)
    check(slowest < 5, f"a submission took {slowest:.1f} s meanwhile")
    status = open(f"/proc/{server.pid}/status").read()
    resident = int(status.split("VmRSS:")[1].split()[0]) // 1024
    check(resident < 400, f"{resident} MB are resident")
    slow.close()


def test_a_stopped_server_ends_its_streams(t):
    """A client sees the end and reconnects, rather than waiting for ever; and nothing keeps the server from stopping."""
    server = t.up()
    api = Api(t)
    events = Events(api, "/api/v1/events?after=1000000")
    poll = {}

    def long_poll():
        try:
            poll["answer"] = api.call("GET", f"/api/v1/runs/{run}?version={version}&wait_s=30", timeout=60)
        except (OSError, http.client.HTTPException) as error:
            poll["answer"] = (0, {}, str(error))
    run = api.submit("true", per_rank={"cpu_milli": 90_000_000})
    version = api.json("GET", f"/api/v1/runs/{run}")["run"]["version"]
    thread = threading.Thread(target=long_poll)
    thread.start()
    time.sleep(0.3)
    begin = time.monotonic()
    server.terminate()
    check(server.wait(30) == 0, open(server.err_path).read())
    check(time.monotonic() - begin < 10, "it took too long")
    try:
        check(events.next() is None, "the stream has ended")
    except (http.client.HTTPException, ConnectionError):
        pass
    thread.join(20)
    check(poll.get("answer", (None,))[0] in (503, 0, 200), str(poll))


def schemathesis_python():
    """What cannot be had fails: these tests are what holds the description and the server together."""
    try:
        return pinned_python(HERE / "requirements.txt", VENV.name)
    except Skipped as why:
        raise Failure(str(why)) from None


def test_whatever_is_sent_the_answer_is_what_the_openapi_says(t):
    """schemathesis makes up requests from our own description, right and wrong ones, with a fixed seed."""
    python = schemathesis_python()
    t.up("--virtual-nodes", "2")
    api = Api(t)
    # Something of each kind to look at: one that ended with files, one that waits, a graph.
    script = 'echo hello; echo \'{"step": 1, "loss": 0.5}\' >> $STOKER_METRICS_FILE; echo x > $STOKER_ARTIFACT_DIR/a'
    run = api.submit("sh", "-c", script)
    api.submit("true", per_rank={"cpu_milli": 9_000_000})
    api.json("POST", "/api/v1/runs", {"name": "graph", "kind": "graph", "steps": [
        {"name": "a", "run": {"name": "a", "command": ["true"]}},
        {"name": "b", "depends_on": ["a"], "run": {"name": "b", "command": ["true"]}}]})
    wait_for("the first has ended", lambda: api.json("GET", f"/api/v1/runs/{run}")["run"]["state"] == "succeeded")
    examples = os.environ.get("STOKER_E2E_EXAMPLES", "6")
    done = subprocess.run(
        [python, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run",
         api.url + "/api/v1/openapi.json", "-H", "Authorization: Bearer " + api.token, "--checks", CHECKS,
         "--phases", "examples,coverage,fuzzing", "-n", examples, "--seed", "1", "--request-timeout", "60",
         "--suppress-health-check", "all", "--no-color"],
        cwd=t.work, timeout=600, capture_output=True, text=True, errors="replace")
    lines = done.stdout.splitlines()
    check(done.returncode == 0, "\n".join(lines[-150:]) + done.stderr[-2000:])
    print("   ", " ".join(line.strip() for line in lines[-12:] if "generated" in line or "passed" in line))
    check(t.call("journal", "verify").returncode == 0, "and the journal is whole")


def test_metrics_are_what_a_strict_reader_takes(t):
    """Prometheus drops a whole scrape for one line that it does not understand; and what is not declared is not known."""
    t.up()
    api = Api(t)
    api.call("POST", "/api/v1/runs", json.dumps({"name": 'a"b', "command": ["true"]}), {"Content-Type": "application/json"})
    families = strict_metrics(api.call("GET", "/metrics")[2])
    page = (HERE.parent.parent / "docs" / "reference" / "metrics.md").read_text()
    declared = dict(re.findall(r"^\| `([a-z_]+)` \| (\w+) \|", page, re.M))
    for name, kind in families.items():
        check(declared.get(name) == kind, f"{name} stands in docs/reference/metrics.md as {kind}")
    check("stoker_commit_seconds" in families and "stoker_http_requests_total" in families, "both hands are there")


if __name__ == "__main__":
    main(dict(globals()))
