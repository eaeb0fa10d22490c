"""stoker serve on a port of its own, beside upstreams that do as they are told."""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import time

from fake_upstream import Upstream
from harness import check, wait_for


def equal(found, wanted, what):
    check(found == wanted, f"{what}: {found!r}, expected {wanted!r}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    def __init__(self, t, upstreams=None, models=None, keys=None, more="", price="{input: 1, output: 2}", folder="",
                 ledger="{folder: ledger, segment: 1MiB}"):
        self.t = t
        self.folder = os.path.join(t.work, folder)  # of its file and its account
        os.makedirs(self.folder, exist_ok=True)
        self.upstreams = upstreams or [Upstream()]
        self.port = None
        self.models = models
        self.keys = keys or [{"name": "anna"}]
        self.more, self.price, self.ledger = more, price, ledger
        self.write()

    def write(self, keys=None):
        self.keys = keys or self.keys
        text = f"listen: 127.0.0.1:0\nledger: {self.ledger}\n{self.more}models:\n"
        for model in self.models or [{"name": "demo"}]:
            model = dict({"upstreams": [u.url for u in self.upstreams]}, **model)
            price = "" if "price" in model else f", price: {self.price}"
            text += f"  - {{{', '.join(f'{k}: {json.dumps(v)}' for k, v in model.items())}{price}}}\n"
        text += "keys:\n"
        for key in self.keys:
            key = dict({"sha256": hashlib.sha256(self.secret(key["name"]).encode()).hexdigest()}, **key)
            text += f"  - {{{', '.join(f'{k}: {json.dumps(v)}' for k, v in key.items())}}}\n"
        path = os.path.join(self.folder, "gateway.yaml")
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)
        return path

    @staticmethod
    def secret(name):
        return "stk_" + name

    def start(self, *words):
        if self.folder != os.path.join(self.t.work, ""):
            words += ("--config", os.path.join(self.folder, "gateway.yaml"))
        self.process = self.t.start("serve", "-o", "json", *words)

        def ready():
            if self.process.poll() is not None:
                check(False, f"stoker serve ended with {self.process.returncode}: {open(self.process.err_path).read()}")
            text = open(self.process.out_path).read()
            return json.loads(text) if text.strip().endswith("}") else None
        self.told = wait_for("stoker serve listens", ready)
        self.port = int(self.told["url"].rsplit(":", 1)[1])
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def raw(self, text, timeout=20):
        """Sends bytes as they are; all that comes until the end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(text if isinstance(text, bytes) else text.encode())
            got = b""
            while True:
                try:
                    piece = s.recv(65536)
                except ConnectionResetError:
                    return got
                if not piece:
                    return got
                got += piece

    def post(self, body, path="/v1/chat/completions", key="anna", headers=None, timeout=30):
        """status, headers in lower case, body (parsed where it is JSON)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            text = body if isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request("POST", path, text, dict({"Authorization": "Bearer " + self.secret(key), "Content-Type": "application/json"}, **(headers or {})))
            answer = connection.getresponse()
            data = answer.read()
            try:
                data = json.loads(data)
            except ValueError:
                data = data.decode(errors="replace")
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data
        finally:
            connection.close()

    def get(self, path, key="anna"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": "Bearer " + self.secret(key)})
            answer = connection.getresponse()
            data = answer.read().decode()
            try:
                return answer.status, json.loads(data) if data.startswith("{") else data
            except ValueError:  # several lines of JSON
                return answer.status, data
        finally:
            connection.close()

    def metric(self, name):
        return float(re.search(rf"^stoker_gateway_{name} (\S+)", self.get("/metrics")[1], re.M).group(1))

    def account(self):
        return self.t.json("serve", "account", *self.whose())

    def row(self, key="anna"):
        return next((row for row in self.account()["rows"] if row["key"] == key), None)

    def settled(self, requests, key="anna"):
        """The row of the account, when that many requests are in it."""
        return wait_for(f"{requests} requests settled", lambda: (lambda row: row if row and row["requests"] == requests else None)(self.row(key)))

    def verify(self):
        return self.t.json("serve", "verify", *self.whose())

    def whose(self):
        """Words that name the account: its folder, where it is in one."""
        if "database" in self.ledger:
            return "--config", os.path.join(self.folder, "gateway.yaml")
        return "--ledger", os.path.join(self.folder, "ledger")

    def stream(self, body, key="anna", path="/v1/chat/completions"):
        return Stream(self, body, key, path)


class Stream:
    """A request whose events are read one by one."""

    def __init__(self, gateway, body, key="anna", path="/v1/chat/completions"):
        self.connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
        self.connection.request("POST", path, json.dumps(dict(body, stream=True)),
                                {"Authorization": "Bearer " + gateway.secret(key), "Content-Type": "application/json"})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.id = self.answer.getheader("x-request-id")

    def event(self):
        """The data of the next event; None at the end."""
        data = None
        while True:
            line = self.answer.readline().decode()
            if not line:
                return data
            if not line.strip() and data is not None:
                return data
            if line.startswith("data:"):
                data = line[5:].strip()

    def rest(self):
        events = []
        while (event := self.event()) is not None:
            events.append(event)
        return events

    def close(self):
        self.answer.close()
        self.connection.close()


def ask(tokens=3, model="demo", **more):
    order = {k: more.pop(k) for k in list(more) if k in ("gap", "die_after", "stall_after", "usage", "lie", "status", "retry_after", "says", "broken", "delay", "prompt", "undone", "unfinished")}
    return dict({"model": model, "messages": [{"role": "user", "content": json.dumps(dict(order, tokens=tokens))}]}, **more)


def tokens_of(events):
    return sum(1 for e in events if e != "[DONE]" and json.loads(e).get("choices") and (json.loads(e)["choices"][0].get("delta") or {}).get("content"))
