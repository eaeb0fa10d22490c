"""The golden cases of the API: requests in, answers out, and what stands in the journal afterwards. run.py runs them, its
head says how a .case file is written; these are the sections of a case in api/, in the order in which they are done:

    --- server.yaml                       the configuration of the server; TWO_NODES when absent. Other files as elsewhere
    --- options: --rate 5                 of `stoker up`, before the first request
    --- request: POST /api/v1/runs        headers, a blank line and the body, or the body alone; `< FILE` sends a file.
                                          The token and the type of a body are sent unless a header says otherwise; one
                                          without a value is not sent. $TOKEN stands for the token
    --- show: run.state, why.code         only these parts of the answer (`items.*.id`: of each, `advice.spot-risk`: the one
                                          with this id, `paths.keys()`: the names);
                                          `show: lines REGEX`: of a text, what fits of its lines
    --- response: 201                     the status expected, those of SHOWN_HEADERS that came, and the body as JSON in
                                          lines of 100 columns
    --- until: r-1 is running             waits until the run is in one of these states, as a client that follows it does
    --- restart: TERM                     ends the server with this signal and starts it again on the same folder
    --- journal: run/r-1                  the records about it, or all; `whole` behind it prints what else is cut short

Every case has a server, a folder and a port of its own, and nodes that are none of this machine's. What differs from one
time to the next is replaced by class Stable, and records of which the machine decides whether or when they come are left
out by BY_CHANCE."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.parse

LIMIT_S = 30
COLUMNS = 100
TWO_NODES = """nodes:
  - {name: a, vcpus: 2, memory: 8GiB}
  - {name: b, vcpus: 2, memory: 8GiB}
"""
SHOWN_HEADERS = ("ETag", "Location", "Allow", "WWW-Authenticate", "Content-Type")
USUAL_TYPES = ("application/json", "application/problem+json")
# Whether a process is seen to run before it is seen to have ended, and whether the engine's answer comes before either.
BY_CHANCE = (("fact.seen", None), ("operation.answered", None), ("attempt.moved", "all_ready"),
             ("run.moved", "all_ready"))
HEADER = re.compile(r"[A-Za-z][A-Za-z-]*:( |$)")


class Trouble(Exception):
    """The server did not do what the case needs to go on."""


# --- what differs from one time to the next ---------------------------------------------------------------------------

BY_NAME = {"pid": "<pid>", "boot_id": "<boot>", "commit": "<commit>", "compiler": "<compiler>", "engine": "<engine>",
           "site": "<site>", "trace_id": "<trace>", "trace": "<trace>"}
ENDS = ("stop_at", "hard_max_at")
MEASURED = ("used_s", "seconds", "peak_memory_bytes", "cost_microusd", "node_hours", "cpu_hours", "gpu_hours")
TEXTS = ((re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
         (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<boot>"),
         (re.compile(r"\b00-[0-9a-f]{32}-[0-9a-f]{16}-\d\d\b"), "<trace>"),
         (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"))


class Stable:
    """Of one case: equal values get equal words, so that it shows when a digest is that of before."""

    def __init__(self):
        self.seen = {}
        self.replaced = []  # (text, word)
        self.site = None    # the name that the journal gave itself; the ids of its operations begin with it
        self.ran = False    # then the versions of runs count records that come by chance

    def numbered(self, word, value):
        known = self.seen.setdefault(word, [])
        if value not in known:
            known.append(value)
        return f"<{word} {known.index(value) + 1}>"

    def text(self, text):
        for value, word in self.replaced:
            text = text.replace(value, word)
        for pattern, word in TEXTS:
            text = pattern.sub(word, text)
        text = re.sub(r"\b[0-9a-f]{64}\b", lambda found: self.numbered("digest", found[0]), text)
        if self.site is None:
            return text
        return re.sub(rf"\b{self.site}-[2-9a-z]+\b", lambda found: self.numbered("operation", found[0]), text)

    def value(self, value, name=""):
        if isinstance(value, dict):
            return {key: self.value(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if name in BY_NAME and value:
            return BY_NAME[name]
        if name == "version" and self.ran:
            return "<version>"
        if name in ENDS and value:
            return self.numbered("end", value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            # A zero says something: not set, never ended.
            return value if not value else "<time>" if name.endswith("_us") else "<measured>" if name in MEASURED else value
        return self.text(value) if isinstance(value, str) else value


# --- JSON as lines ----------------------------------------------------------------------------------------------------

def json_lines(value, indent=0, room=COLUMNS):
    """As few lines as fit: what has room in one stands in one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or indent + len(flat) <= room:
        return [flat]
    is_map = isinstance(value, dict)
    lines = ["{" if is_map else "["]
    for i, each in enumerate(value):
        name = json.dumps(each) + ": " if is_map else ""
        part = json_lines(value[each] if is_map else each, indent + 2, room - len(name) - 1)
        part[0] = name + part[0]
        part[-1] += "," if i + 1 < len(value) else ""
        lines += ["  " + line for line in part]
    return lines + ["}" if is_map else "]"]


def part_of(value, path):
    for name in path.split("."):
        if name == "keys()":
            return sorted(value)
        if isinstance(value, list) and name == "*":
            rest = path.split("*.", 1)[1]
            return [part_of(each, rest) for each in value]
        if isinstance(value, list) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        elif isinstance(value, list):
            value = next((each for each in value if each.get("id") == name), None)
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def parts_of(value, show):
    return {path.strip(): part_of(value, path.strip()) for path in show.split(",")}


# --- a server ---------------------------------------------------------------------------------------------------------

class Server:
    def __init__(self, stoker, folder, env):
        self.stoker, self.folder, self.env = stoker, folder, env
        self.state = folder / "state"
        self.process = None

    def start(self, options):
        config = self.folder / "server.yaml"
        if not config.exists():
            config.write_text(TWO_NODES)
        log = open(self.folder / "up.err", "ab")
        words = [self.stoker, "up", "--folder", str(self.state), "--config", str(config), *options]
        self.process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=log)
        alarm = threading.Timer(LIMIT_S, self.process.kill)
        alarm.start()
        first = self.process.stdout.readline().decode()
        alarm.cancel()
        found = re.search(r"127\.0\.0\.1:(\d+)", first)
        if not found:
            self.process.wait()
            raise Trouble(f"stoker up: {first}{(self.folder / 'up.err').read_text()}")
        self.port = int(found[1])
        self.token = (self.state / "token").read_text().strip()
        end = time.monotonic() + LIMIT_S
        while self.ask("GET", "/readyz")[0] != 200:
            if time.monotonic() > end:
                raise Trouble(f"not ready within {LIMIT_S} s")
            time.sleep(0.02)

    def ask(self, method, path, body=None, headers=None):
        """status, headers, text"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            sent = {"Authorization": "Bearer " + self.token} | ({"Content-Type": "application/json"} if body else {})
            sent |= headers or {}
            connection.request(method, path, body, {name: text for name, text in sent.items() if text})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8", "backslashreplace")
        finally:
            connection.close()

    def json(self, path):
        status, _, text = self.ask("GET", path)
        if status != 200:
            raise Trouble(f"GET {path}: {status} {text}")
        return json.loads(text)

    def until(self, run, states):
        """Follows the run with the long poll of the API."""
        end = time.monotonic() + LIMIT_S
        version, state = 0, "not there"
        while time.monotonic() < end:
            view = self.json(f"/api/v1/runs/{run}?version={version}&wait_s=5")
            version, state = view["run"]["version"], view["run"]["state"]
            if state in states:
                return
        raise Trouble(f"{run} is {state} and not {' or '.join(states)} within {LIMIT_S} s")

    def records(self):
        items, after = [], 0
        while True:
            page = self.json(f"/api/v1/events?limit=1000&after={after}")
            items += page["items"]
            if "next_after" not in page:
                return items
            after = page["next_after"]

    def stop(self, sign=signal.SIGTERM):
        if self.process is None or self.process.poll() is not None:
            return None if self.process is None else self.process.returncode
        self.process.send_signal(sign)
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Trouble(f"stoker up did not end within {LIMIT_S} s of its signal") from None
        finally:
            self.process.stdout.close()

    def sweep(self):
        """Ends what the runs left: their keepers outlive the server, as they should."""
        for _ in range(100):
            found = 0
            for entry in os.scandir("/proc"):
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                try:
                    text = pathlib.Path(entry.path, "cmdline").read_bytes() + pathlib.Path(entry.path, "environ").read_bytes()
                    if str(self.state).encode() in text:
                        os.kill(int(entry.name), signal.SIGKILL)
                        found += 1
                except OSError:
                    continue
            if not found:
                return
            time.sleep(0.02)


# --- a case -----------------------------------------------------------------------------------------------------------

class Case:
    def __init__(self, server, stable, options):
        self.server, self.stable, self.options = server, stable, options
        self.asked, self.shown = None, None

    def learn(self):
        """What this server is called, where it is and what opens it."""
        self.stable.site = self.server.json("/api/v1/version")["site"]
        self.stable.replaced = [(str(self.server.folder), "$DIR"), (self.server.token, "$TOKEN")]

    def request(self, section, folder):
        method, path = section.head.split(":", 1)[1].split()
        headers, lines = {}, list(section.body)
        if lines and HEADER.match(lines[0]):
            blank = lines.index("") if "" in lines else len(lines)
            for line in lines[:blank]:
                name, _, value = line.partition(":")
                headers[name] = value.strip().replace("$TOKEN", self.server.token)
            lines = lines[blank + 1:]
        body = "\n".join(lines).strip()
        if body.startswith("< "):
            body = (folder / body[2:]).read_bytes()
        elif body:
            body = body.encode()
        self.asked = self.server.ask(method, path, body or None, headers)
        self.shown = None

    def answer(self):
        """The status, and the lines below it."""
        status, headers, text = self.asked
        type_ = headers.get("Content-Type", "")
        lines = []
        for name in SHOWN_HEADERS:
            value = headers.get(name)
            if value is not None and not (name == "Content-Type" and type_ in USUAL_TYPES):
                ran = name == "ETag" and self.stable.ran
                lines.append(f"{name}: " + ("<version>" if ran else self.stable.text(value)))
        if lines and text:
            lines.append("")
        wanted = self.shown.split(":", 1)[1].strip() if self.shown else ""
        if wanted.startswith("lines "):
            found = (re.search(wanted[6:], line) for line in text.splitlines())
            lines += [self.stable.text(each[0]) for each in found if each]
        elif "json" in type_ and text:
            body = json.loads(text)
            if wanted:
                body = parts_of(body, wanted)
            lines += json_lines(self.stable.value(body))
        else:
            lines += self.stable.text(text).splitlines()
        return status, lines

    def journal(self, head):
        words = head.split(":", 1)[1].split()
        whole, lines = "whole" in words[1:], []
        for record in self.server.records():
            body = record.get("body", {})
            if words[0] not in ("all", record["object"]):
                continue
            if any(record["kind"] == kind and event in (None, body.get("event")) for kind, event in BY_CHANCE):
                continue
            body = self.stable.value(body)
            if not whole:
                body = {name: "..." if name in ("spec", "text") else value for name, value in body.items()}
            about = "" if words[0] != "all" else record["object"] + "  "
            cause = f" ({record['cause']})" if record.get("cause") else ""
            lines.append(f"{about}{record['kind']} by {record['actor']}{cause}")
            lines += ["  " + line for line in json_lines(body)] if body else []
        return lines

    def do(self, section, folder):
        """What a section is expected to be, as (head, lines), where it is an expectation; nothing else."""
        word = section.head.split(":", 1)[0].split()[0]
        if word == "request":
            self.request(section, folder)
        elif word == "show":
            self.shown = section.head
        elif word == "response":
            if self.asked is None:
                raise Trouble(f"'--- {section.head}' stands before any request")
            status, lines = self.answer()
            return f"response: {status}", lines
        elif word == "until":
            self.stable.ran = True
            run, states = section.head.split(":", 1)[1].split(" is ")
            self.server.until(run.strip(), [state.strip() for state in states.split(" or ")])
        elif word == "restart":
            code = self.server.stop(getattr(signal, "SIG" + section.head.split(":", 1)[1].strip()))
            if code not in (0, -signal.SIGKILL):
                raise Trouble(f"stoker up ended with {code}")
            self.server.start(self.options)
        elif word == "journal":
            return section.head, self.journal(section.head)
        return None


STEPS = ("request:", "show:", "response:", "until:", "restart:", "journal:", "options:")


def run_api_case(stoker, folder, sections, env, update, fits, difference):
    """Does the sections in their order; failures as text. With update, expectations that no longer fit are rewritten."""
    failures, steps = [], [each for each in sections if each.head.startswith(STEPS)]
    if not any(each.head.startswith(("response:", "journal:")) for each in steps):
        return ["the case expects nothing"]
    options = [word for each in steps if each.head.startswith("options:") for word in each.head[8:].split()]
    server = Server(stoker, folder, env)
    case = Case(server, Stable(), options)
    asked = ""
    try:
        server.start(options)
        case.learn()
        for section in steps:
            asked = section.head if section.head.startswith("request:") else asked
            answered = case.do(section, folder)
            if answered is None:
                continue
            head, lines = answered
            expected = [line.rstrip() for line in section.body]
            while expected and not expected[-1]:
                expected.pop()
            if head == section.head and fits(expected, lines):
                continue
            if update:
                section.head, section.body = head, section.body if fits(expected, lines) else lines
                continue
            failures.append(f"{asked}\n" + difference(head.split(":")[0], [section.head] + expected, [head] + lines))
        code = server.stop()
        if code != 0:
            failures.append(f"stoker up ended with {code}: {(folder / 'up.err').read_text()}")
    except (Trouble, OSError, http.client.HTTPException) as problem:
        failures.append(f"{asked}: {problem}")
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.sweep()
    return failures
