"""Streams of events that carry the time at which they were sent: the server, and the client that measures.

    stream.py server                              prints its port
    stream.py client PORT STREAMS INTERVAL_MS S   prints a line when all streams are there, one when it has measured, and figures"""

import json
import os
import select
import socket
import sys
import time

BODY = json.dumps({"model": "m", "max_tokens": 1000000, "messages": [{"role": "user", "content": "INTERVAL"}], "stream": True})
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def server():
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    # due: [time, number, client, interval], kept in order by a heap. By the client and not by its descriptor, which the next
    # one has again: an event of the one that left would be the head of the other's answer, and end its stream.
    clients, inputs, due, number = {}, {}, [], 0
    import heapq
    while True:
        wait = max(0, due[0][0] - time.monotonic()) if due else 1
        for fd, events in poll.poll(wait):
            if fd == listener.fileno():
                try:
                    while True:
                        client, _ = listener.accept()
                        client.setblocking(False)
                        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        clients[client.fileno()], inputs[client.fileno()] = client, b""
                        poll.register(client, select.EPOLLIN)
                except BlockingIOError:
                    continue
            try:
                piece = clients[fd].recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if not piece:
                poll.unregister(fd)
                clients.pop(fd).close()
                inputs.pop(fd)
                continue
            inputs[fd] += piece
            if inputs[fd].rstrip().endswith(b"}"):
                interval = int(inputs[fd].split(b"interval ")[1].split(b" ")[0]) / 1000
                inputs[fd] = b""
                try:
                    clients[fd].sendall(HEAD)
                except OSError:  # it left meanwhile; the next event of poll says so
                    continue
                number += 1
                heapq.heappush(due, [time.monotonic() + interval * (fd % 97) / 97, number, clients[fd], interval])
        now = time.monotonic()
        while due and due[0][0] <= now:
            at, mine, client, interval = due[0]
            if client.fileno() < 0:  # it left
                heapq.heappop(due)
                continue
            event = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%020d"}}]}\n\n' % time.monotonic_ns()
            event = b"%x\r\n%s\r\n" % (len(event), event)
            try:
                # Whole, or the next one would stand in the middle of it.
                if client.send(event) != len(event):
                    sys.exit("the reader of a stream is too slow for this bench")
            except OSError:
                pass
            heapq.heapreplace(due, [at + interval, mine, client, interval])


def client(port, streams, interval_ms, seconds):
    body = BODY.replace("INTERVAL", f"interval {interval_ms} ").encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stk_bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    poll, sockets, begun = select.epoll(), {}, set()
    for _ in range(streams):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(head + body)
        s.setblocking(False)
        sockets[s.fileno()] = s
        poll.register(s, select.EPOLLIN)
    late, end, last = [], None, {}
    while end is None or time.monotonic() < end:
        for fd, _ in poll.poll(0.1):
            try:
                piece = sockets[fd].recv(65536)
            except BlockingIOError:
                continue
            now = time.monotonic_ns()
            if not piece:
                sys.exit(f"a stream ended with {last.get(fd)!r}")
            last[fd] = piece[-300:]
            for part in piece.split(b'"content":"')[1:]:
                if end is not None:
                    late.append((now - int(part[:20])) / 1000)
                begun.add(fd)
        if end is None and len(begun) == streams:
            print("all", flush=True)
            end = time.monotonic() + seconds
    print("measured", flush=True)
    late.sort()
    print(json.dumps({"events": len(late), "p50_us": late[len(late) // 2], "p99_us": late[int(len(late) * 0.99)]}), flush=True)
    os._exit(0)


if sys.argv[1] == "server":
    server()
client(*map(int, sys.argv[2:]))
