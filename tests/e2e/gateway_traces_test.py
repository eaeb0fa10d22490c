"""Spans of the gateway, read by OpenTelemetry's own messages (opentelemetry-proto of PyPI, pinned): what its protocol has no field
for is refused there, as a collector would."""

import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

from fake_upstream import Upstream
from pythons import pinned_python
from gateway_harness import Gateway, ask
from harness import Skipped, check, main, wait_for

HERE = pathlib.Path(__file__).resolve().parent
READER = """
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
for line in sys.stdin:
    read = json_format.Parse(line, ExportTraceServiceRequest())
    print(json.dumps([[s.span_id.hex(), s.kind, s.end_time_unix_nano - s.start_time_unix_nano] for r in read.resource_spans for c in r.scope_spans for s in c.spans]))
"""
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    def __init__(self, status=200):
        self.status, self.calls, self.heads = status, [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.heads.append((self.path, dict(self.headers)))
                if collector.status == 200:
                    collector.calls.append(json.loads(body))
                self.send_response(collector.status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self):
        return [s for call in self.calls for r in call["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def test_each_request_is_a_span_of_its_caller(t):
    collector, upstream = Collector(), Upstream(word="confided ")
    t.environment["COLLECTOR_HEADER"] = "x-team: red"
    g = Gateway(t, [upstream], more=f"traces: {{to: '{collector.url}', header_env: COLLECTOR_HEADER}}\n").start()
    check(g.post(ask(3, gap=0.01), headers={"traceparent": CALLER})[0] == 200, "an answer")
    check(g.stream(ask(5)).rest()[-1] == "[DONE]", "a stream")
    check(g.post(ask(status=400))[0] == 400, "one that the upstream refuses")
    check(g.post(ask(3), headers={"traceparent": CALLER[:-1] + "0"})[0] == 200, "one whose caller does not record")
    wait_for("three spans", lambda: len(collector.spans()) == 3, 60)
    first, stream, refused = collector.spans()
    check((first["traceId"], first["parentSpanId"]) == (CALLER[3:35], CALLER[36:52]), str(first))
    check("parentSpanId" not in stream and stream["traceId"] != first["traceId"], str(stream))
    seen = attributes(first)
    check((first["name"], seen["gen_ai.operation.name"], seen["gen_ai.request.model"]) == ("chat demo", "chat", "demo"), str(first))
    check((seen["gen_ai.usage.input_tokens"], seen["gen_ai.usage.output_tokens"], seen["http.response.status_code"]) == ("7", "3", "200"), str(seen))
    check(attributes(stream)["gen_ai.response.time_to_first_chunk"] > 0 and attributes(stream)["gen_ai.request.stream"] is True, str(stream))
    check(attributes(refused)["http.response.status_code"] == "400", str(refused))
    check(collector.heads[0][0] == "/v1/traces" and collector.heads[0][1].get("x-team") == "red", str(collector.heads[0]))
    # The upstream is told that it is called by this span, and whoever does not record is passed on as it came.
    told = [line.split(": ")[1] for head in upstream.heads for line in head.split("\r\n") if line.lower().startswith("traceparent:")]
    check(told == [f"00-{s['traceId']}-{s['spanId']}-01" for s in (first, stream, refused)] + [CALLER[:-1] + "0"], str(told))
    text = json.dumps(collector.calls)
    check("confided" not in text and "gap" not in text, "no prompt and no answer leaves with them")

    # In the JSON of OTLP ids are hex digits, in that of protocol buffers bytes: all else has to be the same.
    def in_base64(value):
        if isinstance(value, list):
            return [in_base64(v) for v in value]
        if not isinstance(value, dict):
            return value
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ("traceId", "spanId", "parentSpanId") else in_base64(v) for k, v in value.items()}
    python = pinned_python(HERE / "requirements_otlp.txt", "otlp-venv")
    read = subprocess.run([python, "-c", READER], input="".join(json.dumps(in_base64(c)) + "\n" for c in collector.calls), capture_output=True, text=True, timeout=60)
    check(read.returncode == 0, read.stderr[-2000:])
    spans = [span for line in read.stdout.splitlines() for span in json.loads(line)]
    check([s[0] for s in spans] == [s["spanId"] for s in (first, stream, refused)] and all(s[1] == 2 and s[2] >= 0 for s in spans), str(spans))


def receiver_program():
    """The receiver of OpenTelemetry's own Collector (otlp_receiver/go.sum pins it), built once into build/e2e-go."""
    program = HERE.parents[1] / "build" / "e2e-go" / "bin" / "otlp_receiver"
    if program.exists():
        return str(program)
    go = shutil.which("go")
    if not go or os.environ.get("CI"):
        raise Skipped("the Collector's receiver is built by Go, and not in CI: it takes a minute of a core")
    program.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = subprocess.run([go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."], cwd=HERE / "otlp_receiver", capture_output=True,
                              text=True, timeout=600, env=dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local"))
    except subprocess.TimeoutExpired:
        raise Skipped("go did not build the Collector's receiver within 600 s") from None
    if made.returncode != 0:
        raise Skipped(f"go could not build the Collector's receiver: {made.stderr.strip()[-300:]}")
    return str(program)


def test_the_receiver_of_the_collector_reads_them(t):
    with open(os.path.join(t.work, "spans"), "w+") as told:
        collector = subprocess.Popen([receiver_program()], stdout=told, stderr=subprocess.STDOUT)
        try:
            def lines():
                return open(told.name).read().splitlines()
            url = wait_for("the receiver listens", lambda: next((line.split()[1] for line in lines() if line.startswith("listening")), None))
            g = Gateway(t, more=f"traces: {{to: '{url}'}}\n").start()
            check(g.post(ask(3), headers={"traceparent": CALLER})[0] == 200, "an answer")
            g.stream(ask(5)).rest()
            g.stream(ask(5, die_after=2, gap=0.01)).rest()
            wait_for("three spans are sent", lambda: g.metric("spans_sent_total") == 3, 60)
            check(g.metric("span_calls_failed_total") == 0 and g.metric("spans_dropped_total") == 0, "all of them are taken")
            first, stream, broken = [json.loads(line) for line in wait_for("they are read", lambda: lines()[1:] if len(lines()) == 4 else None)]
        finally:
            collector.kill()
            collector.wait()
    check((first["trace"], first["parent"], first["kind"]) == (CALLER[3:35], CALLER[36:52], "Server"), str(first))
    check((stream["parent"], stream["name"], stream["attributes"]["gen_ai.usage.output_tokens"]) == ("", "chat demo", 5), str(stream))
    check(stream["nanoseconds"] > 0 and stream["resource"]["service.name"], str(stream))
    check((first["status"], broken["status"]) == ("Unset", "Error"), f"{first} {broken}")


def test_a_collector_that_is_away_or_refuses_costs_no_request(t):
    collector = Collector(status=503)
    g = Gateway(t, more=f"traces: {{to: '{collector.url}'}}\n").start()
    check(all(g.post(ask(1))[0] == 200 for _ in range(20)), "answers")
    wait_for("it was asked and refused", lambda: g.metric("span_calls_failed_total") >= 2, 60)
    check(g.metric("spans_sent_total") == 0, "none was taken")
    collector.status = 200
    wait_for("what waited is taken then", lambda: g.metric("spans_sent_total") == 20, 60)
    collector.status = 400
    check(g.post(ask(1))[0] == 200, "an answer")
    wait_for("what is refused is not sent again", lambda: g.metric("spans_dropped_total") == 1, 60)
    check(g.terminate() == 0, "its end")


if __name__ == "__main__":
    main(dict(globals()))
