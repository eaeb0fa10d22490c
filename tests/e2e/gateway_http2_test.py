"""Clients that speak HTTP/2: curl, and httpx over h2 (PyPI, pinned). Keys, limits, the account and the ends of streams are what they
are over HTTP/1.1, for each stream of a connection."""

import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys

from fake_upstream import Upstream
from pythons import pinned_python
from gateway_harness import Gateway, ask, equal
from harness import check, main, wait_for

HERE = pathlib.Path(__file__).resolve().parent


def h2_of(t):
    """The frames of HTTP/2, by hyper's h2, in this process."""
    python = pinned_python(HERE / "requirements_http2.txt", "http2-venv")
    found = subprocess.run([python, "-c", "import h2, os; print(os.path.dirname(os.path.dirname(h2.__file__)))"], capture_output=True, text=True)
    sys.path.append(found.stdout.strip())
    import h2.config
    import h2.connection
    import h2.events
    return h2


class Http2:
    """One connection; what comes is kept by its stream."""

    def __init__(self, t, gateway):
        self.h2 = h2_of(t)
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
        self.wire = self.h2.connection.H2Connection(self.h2.config.H2Configuration(client_side=True))
        self.wire.initiate_connection()
        self.heads, self.bodies, self.done, self.goodbye = {}, {}, {}, None
        self.acknowledges = True
        self.flush()

    def flush(self):
        self.socket.sendall(self.wire.data_to_send())

    def ask(self, body, path="/v1/chat/completions", key="anna"):
        stream = self.wire.get_next_available_stream_id()
        self.wire.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":authority", "gateway"), (":path", path),
                                        ("authorization", "Bearer stk_" + key)])
        self.wire.send_data(stream, json.dumps(body).encode(), end_stream=True)
        self.flush()
        return stream

    def read(self):
        """Once what comes; False: nothing comes any more."""
        try:
            bytes = self.socket.recv(65536)
        except ConnectionResetError:
            bytes = b""
        if not bytes:
            return False
        for event in self.wire.receive_data(bytes):
            kind = type(event).__name__
            if kind == "ResponseReceived":
                self.heads[event.stream_id] = dict(event.headers)
            elif kind == "DataReceived":
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
                if self.acknowledges:
                    self.wire.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif kind in ("StreamEnded", "StreamReset"):
                self.done[event.stream_id] = kind
            elif kind == "ConnectionTerminated":
                self.goodbye = int(event.error_code)
        if self.goodbye is None:
            self.flush()
        return True

    def until(self, condition):
        while not condition():
            check(self.read(), f"the connection ended: {self.goodbye} {self.heads} {self.done}")

    def status(self, stream):
        self.until(lambda: stream in self.heads)
        return int(self.heads[stream][b":status"])

    def body(self, stream):
        self.until(lambda: stream in self.done)
        return self.bodies.get(stream, b"").decode()


def test_curl_gets_the_same_over_both(t):
    g = Gateway(t).start()
    def curl(*words):
        done = subprocess.run(["curl", "-sS", "-i", "--max-time", "60", "-H", "Authorization: Bearer stk_anna", *words], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        head, _, body = done.stdout.replace("\r", "").partition("\n\n")
        keep = [line for line in head.split("\n")[1:] if not line.startswith(("x-request-id", "connection", "transfer-encoding", "keep-alive"))]
        return head.split()[:2], sorted(keep), body
    asked = 0
    for words in (["/healthz"], ["/readyz", "-I"], ["/v1/models/demo"], ["/v1/models/none"], ["/v1/models/demo", "-X", "DELETE"],
                  ["/v1/chat/completions", "-d", json.dumps(ask(3))], ["/v1/chat/completions", "-d", json.dumps(ask(3, stream=True))],
                  ["/v1/chat/completions", "-d", "{"], ["/v1/chat/completions", "-H", "Authorization: Bearer no", "-d", "{}"],
                  ["/v1/nothing"], ["/v1/models/a%2Fb"], ["/v1/models/..%2Fb"]):
        url = g.told["url"] + words[0]
        one, two = curl("--http1.1", url, *words[1:]), curl("--http2-prior-knowledge", url, *words[1:])
        equal((one[0][0], two[0][0]), ("HTTP/1.1", "HTTP/2"), "versions")
        equal((two[0][1], two[1:]), (one[0][1], one[1:]), str(words))
        asked += 2 if "tokens" in words[-1] else 0
    row = g.settled(asked)
    equal(row["outcomes"], {"ok": asked}, "each once")


def test_many_streams_of_one_connection(t):
    g = Gateway(t, keys=[{"name": "anna"}, {"name": "bob", "requests_per_minute": 1}]).start()
    c = Http2(t, g)
    streams = [c.ask(dict(ask(5, gap=0.02), stream=True)) for _ in range(20)]
    wholes = [c.ask(ask(4)) for _ in range(20)]
    for stream in streams:
        equal(c.status(stream), 200, "status")
        text = c.body(stream)
        check(text.endswith("data: [DONE]\n\n") and text.count('"content"') == 5, text)
    for stream in wholes:
        equal(json.loads(c.body(stream))["usage"]["completion_tokens"], 4, "whole")
    first, second, nobody = c.ask(ask(1), key="bob"), c.ask(ask(1), key="bob"), c.ask(ask(1), key="nobody")
    equal((c.status(first), c.status(second), c.status(nobody)), (200, 429, 401), "each stream has its key and its limits")
    check(int(c.heads[second][b"retry-after"]) > 0 and c.heads[second][b"x-ratelimit-limit-requests"] == b"1", str(c.heads[second]))
    row = g.settled(40)
    equal((row["tokens_out"], row["outcomes"]), (20 * 5 + 20 * 4, {"ok": 40}), "the account")


def test_a_stream_that_is_given_up_is_cancelled_upstream_and_its_neighbours_go_on(t):
    g = Gateway(t).start()
    c = Http2(t, g)
    left, stays = c.ask(dict(ask(2000, gap=0.01), stream=True)), c.ask(dict(ask(40, gap=0.02), stream=True))
    c.until(lambda: c.bodies.get(left, b"").count(b"data:") > 2)
    c.wire.reset_stream(left, error_code=8)
    c.flush()
    wait_for("the upstream is left", lambda: len(g.upstreams[0].left) == 1)
    check(c.body(stays).endswith("data: [DONE]\n\n"), "the other one")
    row = g.settled(2)
    equal(row["outcomes"], {"ok": 1, "client_cancel": 1}, "each once")


def test_a_client_that_does_not_read_holds_its_stream_back_and_no_other(t):
    up = Upstream("x" * 2000)
    g = Gateway(t, [up], more="timeouts: {slow_consumer: 500ms}\n").start()
    c = Http2(t, g)
    c.acknowledges = False
    slow = c.ask(dict(ask(20_000), stream=True))
    c.until(lambda: len(c.bodies.get(slow, b"")) == 65535)  # all that its window takes
    c.wire.increment_flow_control_window(1 << 20)  # of the connection: other streams have room
    c.flush()
    other = c.ask(ask(3))
    equal(json.loads(c.body(other))["usage"]["completion_tokens"], 3, "another stream of the same connection")
    c.until(lambda: slow in c.done)
    equal(c.done[slow], "StreamReset", "it is given up in the end")
    equal(g.settled(2)["outcomes"], {"ok": 1, "slow_consumer": 1}, "each once")
    check(up.sent["None"] < 15_000, f"the upstream was not read: {up.sent}")


def test_a_drain_says_goodbye_when_what_was_asked_is_answered(t):
    g = Gateway(t).start()
    idle = Http2(t, g)
    idle.until(lambda: idle.wire.remote_settings.max_concurrent_streams == 100)
    out = os.path.join(t.work, "stream")
    under_way = subprocess.Popen(["curl", "-sSN", "--http2-prior-knowledge", "-o", out, "-H", "Authorization: Bearer stk_anna",
                                  "-d", json.dumps(dict(ask(60, gap=0.03), stream=True)), g.told["url"] + "/v1/chat/completions"])
    wait_for("it is under way", lambda: os.path.exists(out) and "data:" in open(out).read())
    g.process.terminate()
    while idle.read():
        pass
    equal((idle.goodbye, under_way.poll()), (0, None), "who asks nothing is told, who waits is not cut off")
    equal((under_way.wait(timeout=60), g.process.wait(timeout=60)), (0, 0), "both end well")
    check(open(out).read().endswith("data: [DONE]\n\n"), open(out).read()[-300:])
    equal(g.row()["outcomes"], {"ok": 1}, "the account")


def test_who_asks_only_to_give_up_is_sent_away(t):
    """CVE-2023-44487: begun and given up at once, hundreds of times."""
    g = Gateway(t).start()
    c = Http2(t, g)
    c.until(lambda: c.wire.remote_settings.max_concurrent_streams == 100)
    for _ in range(300):
        stream = c.wire.get_next_available_stream_id()
        c.wire.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":authority", "gateway"), (":path", "/v1/chat/completions"),
                                     ("authorization", "Bearer stk_anna")])
        c.wire.reset_stream(stream, error_code=8)
    c.flush()
    while c.read():
        pass
    equal((c.goodbye, len(g.upstreams[0].requests)), (11, 0), "ENHANCE_YOUR_CALM, and nothing went upstream")
    equal(g.metric("http2_calmed_total"), 1, "counted")
    equal(g.post(ask(2))[0], 200, "others are served")


def test_half_a_preface_is_not_waited_for(t):
    g = Gateway(t, more="timeouts: {head: 300ms}\n").start()
    check(b" 408 " in g.raw("PRI * HTTP/2.0\r\n\r\nS"), "half a preface")
    check(b" 505 " in g.raw("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), "none at all")
    rest, kinds = g.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n"), []
    while rest:
        kinds.append(rest[3])
        rest = rest[9 + int.from_bytes(rest[:3], "big"):]
    equal((kinds[0], kinds[-1]), (4, 7), "SETTINGS, and GOAWAY since no frames came")


def test_a_head_that_never_ends_is_not_waited_for(t):
    g = Gateway(t, more="timeouts: {idle: 300ms}\n").start()
    c = Http2(t, g)
    c.until(lambda: c.wire.remote_settings.max_concurrent_streams == 100)  # else our answer to it comes in between
    # HEADERS of stream 1, which CONTINUATION should follow: ":method GET", and no END_HEADERS.
    c.socket.sendall(b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82")
    while c.read():
        pass
    equal(c.goodbye, 0, "the connection is ended")
    wait_for("and gone", lambda: g.metric("open_connections") == 1)  # the one that asks


def test_httpx_over_tls_agrees_on_http2(t):
    python = pinned_python(HERE / "requirements_http2.txt", "http2-venv")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem",
                           "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                          cwd=t.work, capture_output=True, text=True)
    check(made.returncode == 0, made.stderr)
    g = Gateway(t, more="tls_cert: cert.pem\ntls_key: key.pem\n").start()
    program = """import httpx, json, ssl, sys
url, ca = sys.argv[1:]
with httpx.Client(http2=True, verify=ssl.create_default_context(cafile=ca), headers={"authorization": "Bearer stk_anna"}, timeout=60) as client:
    body = {"model": "demo", "messages": [{"role": "user", "content": json.dumps({"tokens": 6})}]}
    whole = client.post(url + "/v1/chat/completions", json=body)
    with client.stream("POST", url + "/v1/chat/completions", json=dict(body, stream=True)) as stream:
        lines = [line for line in stream.iter_lines() if line]
    big = client.post(url + "/v1/chat/completions", json=dict(body, pad="x" * 3_000_000))
    print(json.dumps([whole.http_version, whole.json()["usage"]["completion_tokens"], stream.http_version, lines[-1], big.status_code]))
"""
    done = subprocess.run([python, "-c", program, g.told["url"], os.path.join(t.work, "cert.pem")], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, done.stderr)
    equal(json.loads(done.stdout), ["HTTP/2", 6, "HTTP/2", "data: [DONE]", 200], "by ALPN")
    context = ssl.create_default_context(cafile=os.path.join(t.work, "cert.pem"))
    context.set_alpn_protocols(["http/1.1"])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", g.port)), server_hostname="127.0.0.1") as s:
        equal(s.selected_alpn_protocol(), "http/1.1", "who asks for the old one gets it")
    equal(g.settled(3)["outcomes"], {"ok": 3}, "the account")


if __name__ == "__main__":
    main(dict(globals()))
