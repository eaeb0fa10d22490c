"""Bad input, from outside: every route and every command with what they cannot take, slow clients, damaged files, full
disks. Each is answered by a clear error; nothing hangs, nothing crashes, nothing that was acknowledged is lost.

    python3 tests/e2e/bad_input_test.py --stoker build/release/stoker [NAME...]"""

import contextlib
import hashlib
import http.client
import json
import os
import pwd
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.parse

from harness import Failure, check, main, wait_for

CRASHES = re.compile(r"terminate called|Segmentation|core dumped|Assertion|Traceback|std::|AddressSanitizer|runtime error:|"
                     r"\bbug in stoker\b|0x[0-9a-f]{8}", re.I)
MIB = 1 << 20


def refused(t, *words, exit=(2,), says=(), limit_s=30, user=None, preexec=None, **env):
    """The command ends in time with one of these codes and an error that a person can act upon."""
    exit = (exit,) if isinstance(exit, int) else exit
    try:
        done = subprocess.run([t.binary, *words], cwd=t.work, env=dict(t.environment, **env), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=limit_s, errors="replace", user=user, preexec_fn=preexec)
    except subprocess.TimeoutExpired:
        raise Failure(f"stoker {' '.join(words)} hangs: not within {limit_s} s") from None
    said = f"stoker {' '.join(words)[:300]}: exit {done.returncode}\n--- stdout\n{done.stdout[:2000]}\n--- stderr\n{done.stderr[:4000]}"
    check(done.returncode in exit, f"expected exit {exit}; {said}")
    check(not CRASHES.search(done.stderr), said)
    if done.returncode > 1:
        check(re.search(r"^error: \S", done.stderr, re.M) and len(done.stderr) < 20_000, "no clear error; " + said)
    for word in [says] if isinstance(says, str) else says:
        check(word in done.stderr, f"'{word}' is missing; {said}")
    return done


class Raw:
    """HTTP as nobody should speak it."""

    def __init__(self, t):
        address = json.load(open(os.path.join(t.folder, "server.json")))
        self.port = urllib.parse.urlsplit(address["url"]).port
        self.token = open(os.path.join(t.folder, "token")).read().strip()

    def call(self, method, path, body=None, headers=None, timeout=20):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Authorization": "Bearer " + self.token, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, _, text = self.call(method, path, json.dumps(body) if body is not None else None,
                                    {"Content-Type": "application/json"})
        check(status < 300, f"{method} {path}: {status} {text[:500]}")
        return json.loads(text)

    def problem(self, wanted, method, path, body=None, headers=None, says=None):
        """It is answered with one of these states, as problem+json."""
        wanted = (wanted,) if isinstance(wanted, int) else wanted
        shown = f"{method} {path[:200]} {(body or b'')[:120]!r} {headers or ''}"
        begin = time.monotonic()
        try:
            status, head, text = self.call(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"{shown}: {type(error).__name__} {error}") from None
        check(status in wanted, f"{shown}: {status}, expected {wanted}: {text[:600]!r}")
        check(time.monotonic() - begin < 10, f"{shown}: it took {time.monotonic() - begin:.1f} s")
        if method != "HEAD":
            problem = json.loads(text)
            check(head["Content-Type"] == "application/problem+json" and problem["detail"] and problem["status"] == status,
                  f"{shown}: {text[:600]!r}")
            check(not CRASHES.search(text.decode()), f"{shown}: {text[:600]!r}")
            check(says is None or says in text.decode(), f"{shown}: '{says}' is missing in {text[:600]!r}")

    def seq(self):
        return self.json("GET", "/api/v1/version")["seq"]


JSON = {"Content-Type": "application/json"}
WRONG_BODIES = [
    (b"", 400), (b"{", 400), (b"[]", 400), (b"null", 400), (b"7", 400), (b'"text"', 400), (b"{} {}", 400), (b"{'a': 1}", 400),
    (b'{"a": NaN}', 400), (b'{"nosuchkey": 1}', 400), (b'{"name": "\xff\xfe"}', 400), (b'\xef\xbb\xbf\xff', 400),
    (b'{"name": "\\ud800"}', 400), (b'{"name": "x", "name": "y"}', 400), (b'{"a":' * 20_000, 400), (b"[" * 500_000, 400),
    (b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400), (b'{"nosuchkey": 1' + b"0" * 100_000 + b"}", 400),
    (b"\x00" * 1000, 400), (b'{"a": 1e400}', 400), (b" " * (MIB + 1), 413), (b"{" + b" " * (3 * MIB) + b"}", 413),
]
WRONG_VALUES = ["", "x" * 2000, "%FF%FE", "-1", "99999999999999999999", "1e999", "NaN", "%00", "true%20", "r-", "2026-99-99"]


def operations(api):
    """(method, path that exists, its query parameters, whether it takes a body) of every operation."""
    document = api.json("GET", "/api/v1/openapi.json")
    for shape, item in document["paths"].items():
        path = shape.replace("{run}", "r-1").replace("{node}", "nosuchnode").replace("{path}", "nosuchfile").replace("{version}", "99").replace("{key}", "k-99").replace("{user}", "u-99").replace("{endpoint}", "none")
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if method in ("get", "post", "put", "patch", "delete"):
                query = [each for each in shared + operation.get("parameters", []) if each.get("in") == "query"]
                yield method.upper(), shape, path, query, operation, document


def resolved(schema, document):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def test_every_route_refuses_what_it_cannot_take(t):
    """A script with a typo, a proxy that mangles, a stranger who tries."""
    t.up()
    api = Raw(t)
    api.json("POST", "/api/v1/runs", {"name": "job", "command": ["true"], "per_rank": {"cpu_milli": 90_000_000}})
    wait_for("quiet", lambda: api.seq() == (time.sleep(0.5), api.seq())[1])
    before, count = api.seq(), 0
    for method, shape, path, query, operation, document in operations(api):
        for wrong in ("POST", "PUT", "DELETE", "PATCH"):
            if wrong.lower() not in document["paths"][shape]:
                api.problem(405, wrong, path)
        api.problem(400, method, path + "?nosuchparameter=1", says="nosuchparameter")
        for parameter in query:
            kind = resolved(parameter["schema"], document)
            for value in WRONG_VALUES:
                text_is_fine = kind.get("type") in ("string", "array") and "enum" not in kind and "format" not in kind
                if text_is_fine and value != "x" * 2000 and value != "%FF%FE":
                    continue
                api.problem((400, 404, 409), method, f"{path}?{parameter['name']}={value}")
                count += 1
        if "requestBody" in operation:
            required = operation["requestBody"].get("required", False)
            for body, status in WRONG_BODIES:
                if body or required:
                    api.problem((status, 400, 413), method, path, body, JSON)
                    count += 1
            for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
                            {"Content-Type": "application/jsonx"}, {"Content-Type": "json"}):
                api.problem(415, method, path, b'{"a": 1}', headers)
            schema = resolved(operation["requestBody"]["content"]["application/json"]["schema"], document)
            for name, each in schema.get("properties", {}).items():
                kind = resolved(each, document).get("type")
                for value in ([], {}, "x", -1, 1.5, True, None, [[[]]], {"a": {"b": 1}}, 10**30):
                    fits = {"array": isinstance(value, list), "object": isinstance(value, dict), "string": isinstance(value, str),
                            "boolean": isinstance(value, bool), "integer": type(value) is int, "number": type(value) in (int, float)}
                    if kind is None or fits.get(kind) and value not in ([[[]]],):
                        continue
                    api.problem((400, 404, 409, 422), method, path, json.dumps({name: value}).encode(), JSON)
                    count += 1
        elif method == "POST":
            api.problem(400, method, path, b'{"a": 1}', JSON)
        for name, value in (("If-Match", "seven"), ("If-Match", '"99"')) if shape.endswith(
                ("/cancel", "/hold", "/release", "/resume")) else ():
            api.problem((400, 412), method, path, None, {name: value})
        if operation.get("security", document.get("security")):
            api.problem((401, 429), method, path, None, {"Authorization": "Bearer " + "0" * 64})
            status, head, _ = api.call(method, path, None, {"Authorization": ""})
            check(status in (401, 429), f"{method} {path} without a token: {status}")
    for path in ("/consol", "/console/", "/console/none.js", "/api", "/api/v2/runs", "/api/v1/run", "/api/v1/runs/", "/api/v1/runs/r-1/x", "//", "/%2e%2e/etc/passwd",
                 "/api/v1/runs/r-999999", "/api/v1/runs/r-0", "/api/v1/runs/r--1", "/api/v1/runs/%FF", "/api/v1/runs/r-1/artifacts/%2e%2e%2f%2e%2e%2fstoker.db"):
        api.problem((400, 404), "GET", path)
    for key in ("", "x" * 300, "a b", '"'):
        api.problem(400, "POST", "/api/v1/runs", b'{"name":"a","command":["true"]}', {**JSON, "Idempotency-Key": key})
    check(api.seq() == before, f"something was done: record {before} became {api.seq()}")
    check(count > 200, f"only {count} wrong values were tried")
    print(f"    {count} wrong values")
    # At the limit it is taken.
    spec = json.dumps({"name": "large", "command": ["true"], "per_rank": {"cpu_milli": 90_000_000}}).encode()
    status, _, text = api.call("POST", "/api/v1/runs", spec + b" " * (MIB - len(spec)), JSON)
    check(status == 201, f"1 MiB: {status} {text[:300]!r}")


def test_heads_that_two_readers_could_understand_differently_are_refused(t):
    t.up()
    api = Raw(t)
    line, host = b"GET /healthz HTTP/1.1\r\n", b"Host: localhost\r\n"
    for head in (b"GET /healthz\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET  /healthz HTTP/1.1\r\n" + host + b"\r\n", line + b"\r\n",
                 line + host + host + b"\r\n", line + host + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                 line + host + b"Content-Length: -1\r\n\r\n", line + host + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                 line + host + b"A" * 20_000 + b": x\r\n\r\n", line + host + b"X: y\r\n" * 200 + b"\r\n", line + host + b" folded\r\n\r\n",
                 b"GET " + b"/" * 20_000 + b" HTTP/1.1\r\n" + host + b"\r\n", b"GET http://[/ HTTP/1.1\r\n" + host + b"\r\n",
                 line + host + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", b"GET /healthz HTTP/9.9\r\n" + host + b"\r\n",
                 line + b"Host: evil.example\r\n\r\n", b"\r\n" * 10_000, b"\xff" * 1000, b"GET /%zz HTTP/1.1\r\n" + host + b"\r\n"):
        with socket.create_connection(("127.0.0.1", api.port), timeout=20) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(head)
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(65536):
                    answer += piece
            status = answer[9:12]
            check(not answer or answer.startswith(b"HTTP/1.1 4") or status in (b"501", b"505"), f"{head[:80]!r}: {answer[:200]!r}")
    check(api.call("GET", "/healthz")[0] == 200, "and goes on")


def test_slow_clients_hold_nobody_up(t):
    """One byte a second, in heads, in bodies, and in reading: the others are answered at once, and the slow ones are
    ended in time."""
    t.up()
    api = Raw(t)
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n".encode()
    body = head + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    get = f"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {api.token}\r\n\r\n".encode()
    stop, ended, lock = threading.Event(), {}, threading.Lock()

    def slow(kind, number):
        begin, answer = time.monotonic(), b""
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect(("127.0.0.1", api.port))
            connection.settimeout(0.01)
            try:
                connection.sendall({"head": head, "body": body, "read": get * 40}[kind])
                while not stop.wait(1):
                    if kind == "read":
                        with contextlib.suppress(TimeoutError):
                            if not connection.recv(1):
                                break
                        continue
                    connection.sendall(b"x")
                    with contextlib.suppress(TimeoutError):
                        piece = connection.recv(4096)
                        answer += piece
                        if not piece:
                            break
            except OSError:
                pass
        if not stop.is_set():
            with lock:
                ended.setdefault(kind, []).append((time.monotonic() - begin, answer[:12]))
    threads = [threading.Thread(target=slow, args=(kind, n)) for kind in ("head", "body", "read") for n in range(15)]
    for thread in threads:
        thread.start()
    times = []
    try:
        def over():
            begin = time.monotonic()
            api.json("GET", "/api/v1/runs")
            api.json("POST", "/api/v1/runs", {"name": "job", "command": ["true"], "per_rank": {"cpu_milli": 90_000_000}})
            times.append(time.monotonic() - begin)
            time.sleep(0.05)
            return len(ended.get("head", [])) == 15 and len(ended.get("body", [])) == 15
        wait_for("slow heads and bodies are ended", over, 60)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    times.sort()
    check(times[len(times) // 2] < 0.5 and times[-1] < 5, f"two requests took {times[len(times) // 2]:.3f} s, at most {times[-1]:.3f} s")
    check(all(answer in (b"", b"HTTP/1.1 408") for kind in ("head", "body") for _, answer in ended[kind]), str(ended))
    print(f"    {len(times)} pairs of requests meanwhile: half within {times[len(times) // 2] * 1e3:.0f} ms, all within {times[-1] * 1e3:.0f} ms")


RUNS = ("describe", "logs", "cancel")


def test_every_command_refuses_options_that_cannot_be_meant(t):
    for words in (["run"], ["submit"], ["whatif"], ["describe"], ["logs"], ["cancel"], ["journal"], ["run", "a.yaml", "b.yaml"],
                  ["run", "a.yaml", "--", "true"], ["ps", "surplus"], ["usage", "surplus"], ["up", "surplus"],
                  ["run", "--"], ["run", "--resume", "r-1", "--", "true"], ["run", "--resume", "seven"],
                  ["journal", "nosuchverb"], ["journal", "backup"], ["journal", "verify", "x"], ["journal", "cut"],
                  ["journal", "cut", "--at", "x", "--i-know"], ["journal", "show", "--limit", "0"]):
        refused(t, *words)
    for command in RUNS:
        for run in ("", "x", "r-", "r-x", "r-0", "-", "r-99999999999999999999", "../r-1", "r-1;ls", "\xff", "1e3"):
            refused(t, command, run)
    for option, values in {"--ranks": ("0", "-1", "x", "1.5", "99999999999", "", "NaN"), "--cpus": ("-1", "x", "1e99", "nan", "inf"),
                           "--gpus": ("-1", "x", "17"), "--memory": ("x", "-1GiB", "1", "99999999TiB", ""), "--lease": ("x", "-1h", "", "0"),
                           "--timeout": ("x", "-5", ""), "--class": ("vip",), "--priority": ("101", "x"), "--nodes": ("-1", "x"),
                           "--sweep": ("x", "=1", "a=", "a=1,,2", "1a=2"), "--env": ("x", "=x", "A\n=1"), "--label": ("x", "=x"),
                           "--name": ("", "x" * 1000, "a\nb")}.items():
        for value in values:
            for command in ("run", "submit", "whatif"):
                refused(t, command, option, value, "--", "true", exit=(2, 1) if option in ("--gpus", "--cpus") and command == "whatif" else 2)
    for words in (["up", "--listen", "x"], ["up", "--listen", "1.2.3.4:99999"], ["up", "--listen", "host.example:80"], ["up", "--tls", "on"],
                  ["up", "--tls-cert", "/no/such/file"], ["up", "--tls-cert", "/etc/passwd", "--tls-key", "/etc/passwd"],
                  ["up", "--tls-cert", "/no/such/file", "--tls-key", "/no/such/file"], ["up", "--nodes", "/no/such/file"], ["up", "--nodes", "."],
                  ["up", "--virtual-nodes", "-1"], ["up", "--virtual-nodes", "9999"], ["up", "--prices", "/no/such/file"], ["up", "--rate", "x"],
                  ["up", "--rate", "-1"], ["up", "--azure-events", "nonsense"], ["up", "--host-name", "http://x"], ["up", "--tls", "auto", "--host-name", "a b"],
                  ["ps", "--state", "asleep"], ["ps", "--limit", "-1"], ["usage", "--by", "cat"], ["usage", "--from", "yesterday"],
                  ["usage", "--from", "2026-02-30"], ["usage", "--from", "2026-11-02", "--to", "2026-11-01"],
                  ["logs", "r-1", "--rank", "-1"], ["logs", "r-1", "--rank", "x"], ["logs", "r-1", "--tail", "x"]):
        refused(t, *words, exit=(2, 3))
    check(not os.path.exists(os.path.join(t.folder, "server.json")), "no server was started")
    # With a server: what is not there.
    t.up()
    for command in RUNS:
        refused(t, command, "r-7", exit=2, says="r-7")
    refused(t, "run", "--resume", "r-7", exit=2, says="r-7")
    check(t.json("ps", "--all") == [], "nothing was submitted")
    # What only the machine knows is found when the run starts: it fails, and says so.
    for words in (["--chdir", "/no/such/folder"], ["--chdir", "/etc/passwd"], ["--image", "/no/such/image"], ["--image", "/etc/passwd"]):
        refused(t, "run", *words, "--", "true", exit=(1, 2), says=words[1])


def test_files_that_cannot_be_read_as_what_they_are_for(t):
    t.write("empty.yaml", "")
    t.write("list.yaml", "- a\n- b\n")
    t.write("tab.yaml", "version: 1\nrun:\n\tcommand: x\n")
    t.write("open.yaml", "version: 1\nname: 'x\n")
    t.write("deep.yaml", "a: " + "[" * 5000 + "]" * 5000 + "\n")
    t.write("bomb.yaml", "a: &a [x, x, x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi")))
    t.write("unknown.yaml", "version: 1\nname: x\nrun:\n  comand: echo x\n")
    t.write("types.yaml", "version: 1\nname: x\nrun:\n  command: {a: b}\n  ranks: many\n  timeout: [1]\n")
    t.write("binary.yaml", "")
    with open(os.path.join(t.work, "binary.yaml"), "wb") as file:
        file.write(bytes(range(256)) * 100)
    with open(os.path.join(t.work, "huge.yaml"), "wb") as file:
        file.truncate(5 << 30)
    t.write("job.sbatch", "#!/bin/bash\n#SBATCH --nodes=x --gres=\n#SBATCH --time=tomorrow\nsrun x\n")
    os.mkdir(os.path.join(t.work, "folder.yaml"))
    os.mkfifo(os.path.join(t.work, "fifo.yaml"))
    os.symlink("loop.yaml", os.path.join(t.work, "loop.yaml"))
    for command in ("run", "submit", "whatif"):
        for file in ("nosuchfile.yaml", "empty.yaml", "list.yaml", "tab.yaml", "open.yaml", "deep.yaml", "bomb.yaml", "unknown.yaml",
                     "types.yaml", "binary.yaml", "huge.yaml", "folder.yaml", "loop.yaml", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem",
                     "x" * 5000, "job.sbatch"):
            refused(t, command, file, exit=(2, 3))
    refused(t, "run", "fifo.yaml", exit=(2, 3), says="nobody writes", limit_s=60)
    for words in (["up", "--nodes"], ["up", "--prices"], ["up", "--tls-key", "job.sbatch", "--tls-cert"]):
        for file in ("nosuchfile.yaml", "empty.yaml", "binary.yaml", "huge.yaml", "folder.yaml", "/dev/zero"):
            refused(t, *words, file, exit=(2, 3))
    for words in (["ps", "--server", "https://127.0.0.1:1", "--ca-file"], ["ps", "--server", "http://127.0.0.1:1", "--token-file"]):
        for file in ("nosuchfile.yaml", "binary.yaml", "huge.yaml", "folder.yaml"):
            refused(t, *words, file, exit=(2, 3))
    for verb in ("backup", "restore"):
        for file in ("folder.yaml", "/no/such/folder/file", "/proc/x", "fifo.yaml", "binary.yaml"):
            refused(t, "journal", verb, file, exit=(2, 3))
    if nobody := somebody_else(t):
        t.write("secret.yaml", "version: 1\n")
        os.chmod(os.path.join(t.work, "secret.yaml"), 0)
        refused(t, "run", "secret.yaml", exit=(2, 3), says="secret.yaml", user=nobody, STOKER_FOLDER="/tmp")
    check(t.json("ps", "--all") == [], "nothing was submitted")


def somebody_else(t):
    """A user without rights, where we may become one and it can read the binary."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chmod(t.base, 0o755)
    able = subprocess.run(["test", "-x", t.binary], user=nobody, cwd="/").returncode == 0
    if not able:
        print("    (as root, and nobody else can execute the binary: unreadable files are left out)")
    return nobody if able else None


class FakeServer:
    """Accepts and answers with these bytes; then closes, goes on for ever, or says nothing."""

    def __init__(self, answer, endless=b"", silent=False):
        self.answer, self.endless, self.silent = answer, endless, silent
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.stopping = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.speak, args=(connection,), daemon=True).start()

    def speak(self, connection):
        with connection, contextlib.suppress(OSError):
            if self.silent:
                self.stopping.wait(120)
                return
            connection.recv(65536)
            connection.sendall(self.answer)
            while self.endless and not self.stopping.is_set():
                connection.sendall(self.endless)

    def close(self):
        self.stopping.set()
        self.socket.close()


def http_answer(body, status="200 OK", kind="application/json", more=""):
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n{body}".encode()


def test_a_server_that_answers_nonsense(t):
    """A wrong port, a proxy's login page, a server of another kind: told as such, soon."""
    answers = {
        "nothing": (b"", b""), "no http": (b"\x00\xff" * 5000, b""), "ssh": (b"SSH-2.0-OpenSSH_9.2\r\n", b""),
        "html": (http_answer("<html>login</html>", kind="text/html"), b""), "empty": (http_answer(""), b""),
        "truncated json": (http_answer('{"items": ['), b""), "wrong shape": (http_answer('{"items": 7, "run": [], "by": {}}'), b""),
        "wrong types": (http_answer('{"items": [{"id": {}, "state": "asleep"}], "run": {"id": 5}, "attempts": "x"}'), b""),
        "list": (http_answer("[1, 2]"), b""), "number": (http_answer("7"), b""), "deep": (http_answer("[" * 100_000), b""),
        "bad utf-8": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\":\"\xff\"}", b""),
        "redirect": (http_answer("", "302 Found", more="Location: http://127.0.0.1:1/\r\n"), b""),
        "500": (http_answer("oops", "500 Internal Server Error", "text/plain"), b""), "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        "999": (http_answer("{}", "999 What"), b""), "no status": (b"HTTP/1.1 \r\n\r\n", b""),
        "wrong length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{}", b""), "cut": (b"HTTP/1.1 200 OK\r\nContent-Le", b""),
        "endless body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536), "endless head": (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 65536),
        "endless chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"ffff\r\n" + b"z" * 65535 + b"\r\n"),
        "problem": (http_answer('{"detail": 7, "problems": "x"}', "400 Bad Request", "application/problem+json"), b""),
    }
    commands = (["ps"], ["describe", "r-1"], ["logs", "r-1"], ["cancel", "r-1"], ["usage"], ["whatif", "--", "true"], ["submit", "--", "true"])
    for name, (answer, endless) in answers.items():
        server = FakeServer(answer, endless)
        try:
            for number, words in enumerate(commands):
                if endless and number > 1:
                    continue
                # An answer of nothing at all to `logs` and a cancel of what is gone can be read as fine.
                allowed = (2, 3, 4) if words[0] not in ("logs",) else (0, 2, 3, 4)
                done = refused(t, *words, "--server", f"http://127.0.0.1:{server.port}", exit=allowed, limit_s=60) if "--" not in words else \
                    refused(t, words[0], "--server", f"http://127.0.0.1:{server.port}", *words[1:], exit=allowed, limit_s=60)
                check(done.returncode != 4 or name in ("500", "wrong shape", "wrong types", "list", "number", "999", "empty", "204", "truncated json",
                                                       "deep", "bad utf-8", "html", "problem"), f"{name}: a bug? {done.stderr}")
        finally:
            server.close()
    for url, code in (("http://127.0.0.1:1", 3), ("nonsense", 2), ("ftp://x", 2), ("http://", 2), ("http://127.0.0.1:99999", 2),
                      ("http://nosuchhost.invalid:80", 3), ("https://127.0.0.1:1", 3), ("http://user@127.0.0.1:1", (2, 3))):
        refused(t, "ps", "--server", url, exit=code, limit_s=60)
        refused(t, "submit", "--server", url, "--", "true", exit=code, limit_s=60)
    silent = FakeServer(b"", silent=True)
    begin = time.monotonic()
    refused(t, "ps", "--server", f"http://127.0.0.1:{silent.port}", exit=3, limit_s=70)
    silent.close()
    print(f"    a server that says nothing: given up after {time.monotonic() - begin:.0f} s")


def test_a_wrong_token(t):
    t.up()
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    t.write("token", "0" * 64 + "\n")
    t.write("short", "x\n")
    t.write("lines", "a\r\nX-Evil: 1\r\n")
    for file in ("token", "short", "lines"):
        refused(t, "ps", "--server", url, "--token-file", file, exit=(2, 3))
        refused(t, "submit", "--server", url, "--token-file", file, "--", "true", exit=(2, 3))
    refused(t, "ps", "--server", url, exit=3, says="token", STOKER_TOKEN="0" * 64)
    refused(t, "ps", "--server", url, exit=3, says="token")
    check(t.json("ps", "--all") == [], "nothing was submitted")


def test_a_folder_that_cannot_be_used(t):
    t.write("file", "x")
    for words in (["up"], ["run"], ["submit"], ["ps"], ["describe", "r-1"], ["journal", "verify"]):
        program = ["--", "true"] if words[0] in ("run", "submit") else []
        for folder in ("file", "file/below", "/proc/nothing", "/dev/null"):
            refused(t, *words, "--folder", folder, *program, exit=(0, 2, 3) if words[0] in ("ps",) else (2, 3))
    check(open(os.path.join(t.work, "file")).read() == "x", "the file is as it was")
    if nobody := somebody_else(t):
        locked = os.path.join(t.base, "locked")
        os.mkdir(locked, 0o755)
        refused(t, "up", "--folder", locked, exit=(2, 3), user=nobody)
        refused(t, "up", "--folder", os.path.join(locked, "below"), exit=(2, 3), user=nobody)
        refused(t, "run", "--folder", locked, "--", "true", exit=(2, 3), user=nobody)
        check(os.listdir(locked) == [], "nothing was written")


def test_a_folder_that_is_deleted_under_a_run(t):
    command = t.start("run", "--", "sh", "-c", "echo begun; sleep 5")
    wait_for("the rank runs", lambda: "begun" in open(command.out_path).read())
    shutil.rmtree(t.folder)
    code = wait_for("the command ends, instead of waiting for news from a folder that is gone",
                    lambda: command.poll() is not None and (command.returncode,))
    said = open(command.err_path).read()
    check(code[0] != 0 and "was deleted" in said, f"exit {code[0]}: {said}")
    check(not os.path.exists(t.folder), "nothing is written there again")


def mounted(t, size):
    """A small file system of its own, or nothing where we may not mount."""
    at = os.path.join(t.base, f"disk-{size}")
    os.mkdir(at)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True, text=True)
    return at if done.returncode == 0 else None


def test_a_full_disk_at_the_start(t):
    for size in ("4k", "64k", "256k"):
        disk = mounted(t, size)
        if disk is None:
            print("    (no mount here: RLIMIT_FSIZE only)")
            break
        try:
            with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb") as file:
                while True:
                    file.write(b"x" * 1024)
                    file.flush()
            for words in (["up"], ["run", "--", "true"]):
                refused(t, words[0], "--folder", os.path.join(disk, "s"), *words[1:], exit=(2, 3))
        finally:
            subprocess.run(["umount", "-l", disk])
    for limit in (0, 4096, 20_000):
        refused(t, "up", exit=(2, 3), preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        refused(t, "run", "--", "true", exit=(1, 2, 3), preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    # With room again the same folder works.
    check(t.call("run", "--", "echo", "there").stdout == "there\n", "after the disk was full")
    t.call("journal", "verify")


def test_a_disk_that_fills_up_loses_nothing(t):
    disk = mounted(t, "3m")
    if disk is None:
        print("    (no mount here: left out)")
        return
    t.folder = t.environment["STOKER_FOLDER"] = os.path.join(disk, "s")
    server = t.up()
    try:
        taken, refusal = [], None
        for number in range(3000):
            done = subprocess.run([t.binary, "submit", "--cpus", "90000", "--env", "PAD=" + "x" * 20_000, "--", "true"], cwd=t.work,
                                  env=t.environment, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                refusal = done
                break
            taken.append(done.stdout.strip())
        check(refusal is not None and refusal.returncode == 3, f"{len(taken)} taken; {refusal and refusal.stderr}")
        # It refuses in time, or, where the last commit did not fit, ends and says why: the state may not be ahead of the disk.
        time.sleep(0.5)
        said = refusal.stderr if server.poll() is None else open(server.err_path).read()
        check("disk" in said and server.poll() in (None, 3), f"exit {server.poll()}: {said}")
        if server.poll() is None:
            check(len(t.json("ps", "--all", "--limit", "500")) == min(len(taken), 500), "what was taken is there")
            server.kill()
            server.wait()
        t.call("journal", "verify")
        listed = {each["id"] for each in t.json("ps", "--all", "--limit", "500")}
        check(listed >= set(taken[-400:]), f"{len(set(taken) - listed)} of {len(taken)} are lost")
        print(f"    {len(taken)} taken, the next refused")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
        subprocess.run(["umount", "-l", disk])


def with_history(t):
    """A folder in which things have happened, with no server."""
    server = t.up()
    runs = [t.call("submit", "--name", f"n{number}", "--", "echo", str(number)).stdout.strip() for number in range(3)]
    for run in runs:
        t.wait_state(run, "succeeded")
    server.terminate()
    server.wait(30)
    t.call("journal", "verify")
    with sqlite3.connect(os.path.join(t.folder, "stoker.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return runs


def bytes_of(t):
    with open(os.path.join(t.folder, "stoker.db"), "rb") as file:
        return file.read()


def test_a_damaged_journal(t):
    """A bad disk, a careless editor: it is told, and the file stays as it is for whoever repairs it."""
    runs = with_history(t)
    good = bytes_of(t)
    path = os.path.join(t.folder, "stoker.db")
    page = int.from_bytes(good[16:18], "big")

    def sql(text):
        def change():
            db = sqlite3.connect(path)
            db.execute(text)
            db.commit()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.close()
        return change

    def put(content):
        def change():
            with open(path, "wb") as file:
                file.write(content)
        return change
    noise = hashlib.shake_256(b"noise").digest(page)
    with sqlite3.connect(path) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'journal'").fetchone()[0]
    db.close()
    damages = {
        "cut in half": put(good[:len(good) // 2]), "cut to 100 bytes": put(good[:100]), "no database": put(b"not a database at all\n" * 100),
        "noise at the start": put(noise + good[page:]), "the journal's first page": put(good[:(root - 1) * page] + noise + good[root * page:]),
        "every page but the first": put(good[:page] + noise * (len(good) // page - 1)),
        "a newer schema": sql("PRAGMA user_version = 99"), "a record edited by hand": sql("UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), 'n1', 'n9') AS BLOB)"),
        "a record taken out": sql("DELETE FROM journal WHERE seq = 5"), "a hash edited": sql("UPDATE journal SET hash = zeroblob(32) WHERE seq = 4"),
        "no table": sql("DROP TABLE journal"),
    }
    for name, damage in damages.items():
        for rest in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path + rest)
        put(good)()
        damage()
        before = hashlib.sha256(bytes_of(t)).hexdigest()
        try:
            refused(t, "journal", "verify", exit=(1, 2, 3))
            refused(t, "up", exit=(2, 3))
            refused(t, "run", "--", "true", exit=(2, 3))
            refused(t, "ps", "--all", exit=(0, 2, 3))
            refused(t, "journal", "show", exit=(0, 2, 3))
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from None
        check(hashlib.sha256(bytes_of(t)).hexdigest() == before, f"{name}: the file was changed")
    for rest in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path + rest)
    put(good)()
    t.up()
    check({each["id"] for each in t.json("ps", "--all")} == set(runs), "the good one works")


def test_the_last_record_torn_is_cut_and_nothing_else(t):
    """What `journal cut` is for."""
    with_history(t)
    path = os.path.join(t.folder, "stoker.db")
    db = sqlite3.connect(path)
    last = db.execute("SELECT max(seq) FROM journal").fetchone()[0]
    db.execute("UPDATE journal SET body = x'7b7d' WHERE seq = ?", (last,))
    db.commit()
    db.close()
    refused(t, "up", exit=(2, 3), says="journal cut")
    t.call("journal", "cut", "--at", str(last), "--i-know")
    t.call("journal", "verify")
    t.up()
    check(len(t.json("ps", "--all")) == 3, "the rest is there")


def test_files_beside_the_journal_that_are_damaged(t):
    runs = with_history(t)
    token, address = os.path.join(t.folder, "token"), os.path.join(t.folder, "server.json")
    for content in (b"", b"short", b"\xff" * 64, b"a b\n" * 20, b"x" * (2 << 20)):
        with open(token, "wb") as file:
            file.write(content)
        refused(t, "up", exit=(2, 3), says="token")
    with open(token, "w") as file:
        file.write("0123456789abcdef" * 4 + "\n")
    os.chmod(token, 0o644)
    refused(t, "up", exit=(2, 3), says=("token", "chmod"))
    os.remove(token)
    os.mkdir(token)
    refused(t, "up", exit=(2, 3), says="token")
    os.rmdir(token)
    # What a killed server leaves, and worse.
    t.up().terminate()
    wait_for("it has ended", lambda: all(each.poll() is not None for each in t.servers))
    stale = {"url": "http://127.0.0.1:1", "pid": 999999999}
    for text in (json.dumps(stale), json.dumps({**stale, "pid": os.getpid()})):
        with open(address, "w") as file:
            file.write(text)
        check({each["id"] for each in t.json("ps", "--all")} == set(runs), "stale: the journal tells")
        refused(t, "submit", "--", "true", exit=3, says="stoker up")
    for text in ("", "\xff", "{", "[]", '{"url": 7, "pid": "x"}', '{"url": null}', '{"url": "nonsense", "pid": 1}'):
        with open(address, "w", encoding="latin-1") as file:
            file.write(text)
        refused(t, "ps", exit=(0, 2, 3))
        refused(t, "submit", "--", "true", exit=(2, 3))
    server = t.up()  # writes it anew
    check(json.load(open(address))["pid"] == server.pid, "its address")
    refused(t, "up", exit=(2, 3), says=str(server.pid))
    refused(t, "journal", "cut", "--at", "1", "--i-know", exit=(2, 3))
    refused(t, "journal", "restore", "nosuchfile", exit=(2, 3))
    t.call("submit", "--", "true")


if __name__ == "__main__":
    main(dict(globals()))
