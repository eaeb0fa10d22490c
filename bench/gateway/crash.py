"""kill -9 of the gateway with live streams, again and again: what was reserved is settled once each, and what is charged lies
within the marks of what was delivered.

    python3 bench/gateway/crash.py --stoker build/release/stoker [--kills 1000] [--streams 200]

The upstream logs every token that it sent, by request; the client reads what it gets until the connection breaks. The last line is
JSON. A short form of it is a test (tests/e2e/gateway_test.py)."""

import argparse
import json
import os
import random
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))
from fake_upstream import Upstream  # noqa: E402
from gateway_harness import Gateway, ask  # noqa: E402
from harness import Stoker  # noqa: E402


def round_of(gateway, streams, number):
    """Begins the streams, kills the gateway, and says how many tokens the clients got."""
    sockets, got = {}, {}
    for i in range(streams):
        body = json.dumps(dict(ask(1_000_000, gap=0.02, user=f"{number}-{i}"), stream=True))
        s = socket.create_connection(("127.0.0.1", gateway.port))
        s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stk_anna\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        s.setblocking(False)
        sockets[s.fileno()], got[s.fileno()] = s, 0
    poll = select.epoll()
    for fd in sockets:
        poll.register(fd, select.EPOLLIN)
    end, killed = time.monotonic() + random.random() * 1.5, False
    while sockets:
        for fd, _ in poll.poll(0.02):
            try:
                piece = sockets[fd].recv(65536)
            except OSError:
                piece = b""
            if piece:
                got[fd] += piece.count(b'"content": "tok ')
            else:
                poll.unregister(fd)
                sockets.pop(fd).close()
        if not killed and time.monotonic() > end:
            gateway.kill()
            killed = True
    return sum(got.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=200)
    options = parser.parse_args()
    stoker = Stoker(os.path.abspath(options.stoker))
    try:
        gateway = Gateway(stoker, [Upstream()])
        delivered = recovered = 0
        gateway.start()
        for number in range(options.kills):
            delivered += round_of(gateway, options.streams, number)
            gateway.start()
            recovered += gateway.told["recovered"]
            if number % 10 == 9:
                print(f"{number + 1} kills, {recovered} recovered, {delivered} tokens delivered", flush=True)
        gateway.terminate()
        row, sound = gateway.row(), gateway.verify()
        result = {"kills": options.kills, "streams": options.streams, "reserved": sound["reserved"], "settled": sound["settled"], "open": sound["open"],
                  "recovered": recovered, "delivered_tokens": delivered, "charged_tokens": row["tokens_out"],
                  "difference_per_stream": round((row["tokens_out"] - delivered) / max(1, row["requests"]), 2), "lost": sound["reserved"] - sound["settled"]}
        print(json.dumps(result))
        sys.exit(0 if result["lost"] == 0 and sound["open"] == 0 and row["requests"] == sound["reserved"] else 1)
    finally:
        stoker.close()


if __name__ == "__main__":
    main()
