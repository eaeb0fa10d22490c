"""A server of the OpenAI API for replicas of an endpoint: it loads for a while, then says WORD as often as it is asked to.

    python3 fake_replica.py --port PORT [--load SECONDS] [--gap SECONDS] [--word WORD]
                            [--name-file FILE]    what it serves stands in there, and it answers whatever it is asked for"""

import argparse
import http.server
import json
import os
import signal
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--load", type=float, default=0)
parser.add_argument("--gap", type=float, default=0.001)
parser.add_argument("--word", default="tok ")
parser.add_argument("--name-file")
options = parser.parse_args()
ready_at = time.monotonic() + options.load
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def name():
    return open(options.name_file).read().strip() if options.name_file else "weights.gguf"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            loading = time.monotonic() < ready_at
            return self.answer(503 if loading else 200, '{"status":"loading"}' if loading else '{"status":"ok"}')
        if self.path == "/v1/models":
            return self.answer(200, json.dumps({"object": "list", "data": [{"id": name(), "object": "model"}]}))
        self.answer(404, "{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if options.name_file:
            body["model"] = name()
        if body["model"] != name():
            return self.answer(404, json.dumps({"error": {"message": f"no model {body['model']}", "type": "x", "param": None, "code": None}}))
        count = body.get("max_tokens", 4)
        usage = {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count}
        if not body.get("stream"):
            time.sleep(options.gap * count)
            message = {"role": "assistant", "content": options.word * count}
            return self.answer(200, json.dumps({"id": "x", "object": "chat.completion", "model": body["model"], "usage": usage,
                                                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def send(text):
            data = f"data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        for _ in range(count):
            send(json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": options.word}}]}))
            time.sleep(options.gap)
        if body.get("stream_options", {}).get("include_usage"):
            send(json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage}))
        send("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


http.server.ThreadingHTTPServer.request_queue_size = 512
http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
