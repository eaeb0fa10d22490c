"""What stands before a slurmrestd at sites that offer it over the network: https, and a token for each user. Debian's has no auth/jwt, so the
token is looked at here, as the controller would (HS256, `sun`, `exp`), and what is asked goes on to a slurmrestd on a socket.

refuses_as: "gateway" answers 401 by itself; "controller" answers as slurmrestd 22.05 hands on what slurmctld says of a token it does not
take: 500 with error 1007."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import secrets
import socket
import ssl
import subprocess
import threading
import time


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def certificate(folder, name):
    """(certificate, key), for this machine alone; nobody else's."""
    paths = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=" + name, "-out", paths[0], "-keyout", paths[1], "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True, timeout=60)
    return paths


class Front:
    def __init__(self, folder, behind):
        """behind: unix:/PATH of a slurmrestd"""
        self.key, self.refuses_as, self.seen = secrets.token_bytes(32), "controller", set()
        self.trusted, key = certificate(folder, "front")
        front, path = self, behind.removeprefix("unix:")

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                if not front.takes(self.headers.get("X-SLURM-USER-NAME", ""), self.headers.get("X-SLURM-USER-TOKEN", "")):
                    if front.refuses_as == "gateway":
                        return self.answer(401, "text/plain", b"Authentication failure")
                    return self.answer(500, "application/json", json.dumps({"meta": {}, "errors": [
                        {"error_number": 1007, "error": "Protocol authentication error"}], "jobs": []}).encode())
                link = OverSocket(path)
                link.request(self.command, self.path, body or None, {"Accept": "application/json", **({"Content-Type": "application/json"} if body else {})})
                got = link.getresponse()
                said = got.read()
                link.close()
                self.answer(got.status, got.headers.get("Content-Type", "application/json"), said)

            do_GET = do_POST = do_DELETE = serve

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # whoever does not trust us breaks off
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.trusted, key)
        # The handshake on the thread of its connection: one that is broken off holds up nobody.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self, user, lives_s):
        """As scontrol token makes one."""
        parts = [base64url(json.dumps(each).encode()) for each in (
            {"alg": "HS256", "typ": "JWT"}, {"exp": int(time.time() + lives_s), "iat": int(time.time()), "sun": user})]
        return ".".join([*parts, base64url(hmac.new(self.key, ".".join(parts).encode(), hashlib.sha256).digest())])

    def takes(self, user, token):
        try:
            head, claims, signature = token.split(".")
            told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        except ValueError:
            return False
        right = base64url(hmac.new(self.key, f"{head}.{claims}".encode(), hashlib.sha256).digest())
        good = hmac.compare_digest(signature, right) and told["sun"] == user and told["exp"] > time.time()
        if good:
            self.seen.add(token)
        return good

    def close(self):
        self.server.shutdown()
        self.server.server_close()
