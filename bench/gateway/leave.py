"""Clients that leave at any moment: nothing of theirs stays, and each is settled once.

    python3 bench/gateway/leave.py --stoker build/release/stoker [--clients 10000] [--at-once 100]

They leave in the middle of the head, of the body, before the answer, in the stream, by closing or by a reset, after up to a third of
a second. Then there is no request under way, no connection to the upstream, no file open that was not at the start, and no
reservation open in the account. The last line is JSON; exit 1 where something stayed."""

import argparse
import json
import os
import random
import re
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))
from fake_upstream import Upstream  # noqa: E402
from gateway_harness import Gateway, ask  # noqa: E402
from harness import Stoker, wait_for  # noqa: E402


def leaver(port, draw):
    """A client on its way: its socket, and when it leaves."""
    # An answer in one piece never comes, so that no connection is kept for the next request: what is open is of somebody.
    streams = draw.random() < 0.8
    order = {"gap": 0.01, "delay": draw.choice((0, 0, 0.1))} if streams else {"stall_after": -1}
    body = json.dumps(dict(ask(100_000, **order), stream=streams)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stk_anna\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    whole = head + body
    say = draw.choice((draw.randrange(len(head)), len(head) + draw.randrange(len(body)), len(whole), len(whole), len(whole), len(whole)))
    s = socket.create_connection(("127.0.0.1", port), timeout=30)
    s.sendall(whole[:say])
    return time.monotonic() + draw.random() / 3, draw.random() < 0.3, s


def gauge(gateway, name):
    return float(re.search(rf"^stoker_gateway_{name} (\S+)$", gateway.get("/metrics")[1], re.M).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    stoker = Stoker(os.path.abspath(options.stoker))
    try:
        upstream = Upstream()
        gateway = Gateway(stoker, [upstream]).start()
        gateway.post(ask(1))  # what the first one opens stays
        files = f"/proc/{gateway.process.pid}/fd"
        before = len(os.listdir(files))
        for begin in range(0, options.clients, options.at_once):
            some = sorted((leaver(gateway.port, draw) for _ in range(min(options.at_once, options.clients - begin))), key=lambda each: each[0])
            for at, resets, s in some:
                time.sleep(max(0, at - time.monotonic()))
                if resets:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        began = time.monotonic()
        wait_for("nobody is served any more", lambda: gauge(gateway, "requests_under_way") == 0 and gauge(gateway, "held_streams") == 0)
        # One connection is kept for who comes next.
        wait_for("the upstream is left", lambda: upstream.open <= 1)
        wait_for("files are closed", lambda: len(os.listdir(files)) <= before)
        took_s = time.monotonic() - began
        reached = len(upstream.requests)
        gateway.terminate()
        row, sound = gateway.row(), gateway.verify()
        result = {"clients": options.clients, "came_to_the_upstream": reached, "settled": sound["settled"], "open": sound["open"], "outcomes": row["outcomes"],
                  "all_gone_after_s": round(took_s, 2), "load": os.getloadavg()[0]}
        print(json.dumps(result))
        # Who came to the upstream had a reservation, and each of them an end.
        sys.exit(0 if sound["open"] == 0 and sound["reserved"] == sound["settled"] >= reached else 1)
    finally:
        stoker.close()


if __name__ == "__main__":
    main()
