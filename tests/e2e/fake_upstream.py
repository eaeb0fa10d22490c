"""A server of the OpenAI API that does what the model's name tells it to, and logs what it sent. Threads, no libraries.

The prompt's last message is JSON with any of: tokens (how many), gap (seconds between them), die_after, stall_after (tokens),
usage (false: none), lie (completion tokens it claims), headless (no message_start), status, retry_after, says (plain text beside it), broken ("html", "nul", "short"), undone (no
[DONE]), unfinished (no choice says why it ended), delay (before the head)."""

import json
import select
import socket
import ssl
import struct
import threading
import time


class Upstream:
    def __init__(self, word="tok ", tls=None, port=0):
        """tls: a pair of files, certificate and key."""
        self.word = word
        self.dies_at_once = False  # streams end behind their head
        self.slow_s = 0            # before each head
        self.orders = {}           # of its own, beside those of the prompt
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*tls)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.requests = []   # bodies
        self.heads = []
        self.sent = {}       # tokens, by the user that the body names
        self.left = []       # when a client went, monotonic
        self.open = 0
        self.closing = False
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def close(self):
        self.closing = True
        self.listener.close()

    def accept(self):
        while not self.closing:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with self.lock:
            self.open += 1
        try:
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    piece = client.recv(65536)
                    if not piece:
                        return
                    buffer += piece
                head, buffer = buffer.split(b"\r\n\r\n", 1)
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
                while len(buffer) < length:
                    piece = client.recv(65536)
                    if not piece:
                        return
                    buffer += piece
                body, buffer = buffer[:length], buffer[length:]
                if not self.answer(client, head.decode(), json.loads(body) if body else {}):
                    return
        except OSError:
            pass
        finally:
            with self.lock:
                self.open -= 1
                self.left.append(time.monotonic())
            client.close()

    def answer(self, client, head, body):
        path = head.split(" ")[1]
        with self.lock:
            self.requests.append(body)
            self.heads.append(head)
        try:
            order = json.loads(body["messages"][-1]["content"])
        except (KeyError, TypeError, ValueError, IndexError):
            order = {}
        order = dict(order if isinstance(order, dict) else {}, **self.orders)
        tokens = int(order.get("tokens", 3))
        if body.get("max_tokens"):
            tokens = min(tokens, body["max_tokens"])
        prompt = int(order.get("prompt", 7))
        if order.get("delay"):
            time.sleep(order["delay"])
        if self.slow_s and select.select([client], [], [], self.slow_s)[0]:
            return False  # its client left: it sends nothing more
        if order.get("die_after") == -1:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if order.get("stall_after") == -1:
            return client.recv(1) != b""
        if order.get("status"):
            extra = f"Retry-After: {order['retry_after']}\r\n" if "retry_after" in order else ""
            if "says" in order:
                text = order["says"].encode()
                client.sendall(f"HTTP/1.1 {order['status']} X\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
                return True
            return self.whole(client, {"error": {"message": "as told", "type": "x", "param": None, "code": None}}, order["status"], extra)
        usage = {"prompt_tokens": prompt, "completion_tokens": order.get("lie", tokens), "total_tokens": prompt + tokens}
        if path.endswith("/embeddings"):
            return self.whole(client, {"object": "list", "model": body["model"], "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
                                       "usage": {"prompt_tokens": prompt, "total_tokens": prompt}})
        if path.endswith("/audio/speech"):
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 4\r\n\r\n\xff\xfb\x90\x00")
            return True
        if path.endswith("/images/generations"):
            return self.whole(client, {"created": 1, "data": [{"b64_json": "AAAA"}] * body.get("n", 1)})
        if path.endswith("/count_tokens"):
            return self.whole(client, {"input_tokens": prompt})
        if path.endswith("/messages"):
            return self.messages(client, body, order, tokens, prompt)
        if not body.get("stream"):
            answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"],
                      "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self.word * tokens}}]}
            if path.endswith("/v1/completions"):
                answer["object"] = "text_completion"
                answer["choices"] = [{"index": 0, "finish_reason": "stop", "text": self.word * tokens, "logprobs": None}]
            if order.get("usage") is not False:
                answer["usage"] = usage
            if order.get("broken") == "short":
                text = json.dumps(answer).encode()
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (len(text) + 50) + text)
                return False
            return self.whole(client, answer)
        return self.stream(client, path, body, order, tokens, usage)

    def messages(self, client, body, order, tokens, prompt):
        """As Anthropic's API: what was cached is not in input_tokens."""
        usage = {"input_tokens": prompt - 3, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": tokens}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
        if not body.get("stream"):
            return self.whole(client, dict(message, content=[{"type": "text", "text": self.word * tokens}], stop_reason="end_turn", usage=usage))
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        def event(kind, **more):
            data = f"event: {kind}\ndata: {json.dumps(dict({'type': kind}, **more))}\n\n".encode()
            client.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        if not order.get("headless"):
            event("message_start", message=dict(message, content=[], stop_reason=None, usage=dict(usage, output_tokens=1)))
        event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        event("ping")
        for i in range(tokens):
            if order.get("die_after") == i:
                return False
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": self.word})
            time.sleep(order.get("gap", 0))
        event("content_block_stop", index=0)
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": tokens})
        event("message_stop")
        client.sendall(b"0\r\n\r\n")
        return True

    def whole(self, client, answer, status=200, extra=""):
        text = json.dumps(answer).encode()
        client.sendall(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        return True

    def stream(self, client, path, body, order, tokens, usage):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        def chunk(text):
            data = text.encode()
            client.sendall(b"%x\r\n%s\r\n" % (len(data), data))

        if self.dies_at_once:
            return False
        if order.get("broken"):
            chunk({"html": "<html>no</html>\n\n", "nul": "data: \0\n\n"}.get(order["broken"], "data: {\n\n"))
            return client.recv(1) != b""
        asked = (body.get("stream_options") or {}).get("include_usage")
        responses = path.endswith("/responses")
        who = str(body.get("user"))
        for i in range(tokens):
            if order.get("die_after") == i:
                return False
            if order.get("stall_after") == i:
                return client.recv(1) != b""
            if responses:
                chunk("event: response.output_text.delta\ndata: " + json.dumps({"type": "response.output_text.delta", "sequence_number": i, "delta": self.word}) + "\n\n")
            else:
                event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"],
                         "choices": [{"index": 0, "delta": {"content": self.word}, "finish_reason": None}]}
                if path.endswith("/v1/completions"):
                    event["object"] = "text_completion"
                    event["choices"] = [{"index": 0, "text": self.word, "finish_reason": None, "logprobs": None}]
                if asked:
                    event["usage"] = None
                chunk("data: " + json.dumps(event) + "\n\n")
            with self.lock:
                self.sent[who] = self.sent.get(who, 0) + 1
            if order.get("gap"):
                time.sleep(order["gap"])
        if responses:
            chunk("event: response.completed\ndata: " + json.dumps({"type": "response.completed", "sequence_number": tokens, "response": {
                "id": "r1", "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"], "total_tokens": usage["total_tokens"]}}}) + "\n\n")
        else:
            end = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": [{"index": 0, "delta": {}, "finish_reason": None if order.get("unfinished") else "stop"}]}
            if path.endswith("/v1/completions"):
                end.update(object="text_completion", choices=[{"index": 0, "text": "", "finish_reason": "stop", "logprobs": None}])
            if asked:
                end["usage"] = None
            chunk("data: " + json.dumps(end) + "\n\n")
            if asked and order.get("usage") is not False:
                chunk("data: " + json.dumps({"id": "c1", "object": end["object"], "created": 1, "model": body["model"], "choices": [], "usage": usage}) + "\n\n")
            if not order.get("undone"):
                chunk("data: [DONE]\n\n")
        client.sendall(b"0\r\n\r\n")
        return True


if __name__ == "__main__":
    upstream = Upstream()
    print(upstream.url, flush=True)
    threading.Event().wait()
