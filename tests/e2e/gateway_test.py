"""The gateway between clients and upstreams that fail in every way there is: what the client sees, what the upstream
sees, and what the account says. Rows of the failure table are named f01 and so on."""

import json
import os
import resource
import socket
import threading
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, equal, free_port, tokens_of
from harness import check, main, wait_for


def head(gateway, length, more="", path="/v1/chat/completions", key="anna"):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.secret(key)}\r\nContent-Length: {length}\r\n{more}\r\n"


def test_an_answer_and_a_stream_are_relayed_and_charged_once(t):
    g = Gateway(t).start()
    body = json.dumps(ask(5, vendor={"x": [1, 2.50, None]}))
    status, headers, answer = g.post(body)
    equal(status, 200, "status")
    check(headers["x-request-id"].startswith("req_"), str(headers))
    equal(answer["usage"]["completion_tokens"], 5, "usage")
    equal(g.upstreams[0].requests[-1], json.loads(body), "unknown members pass")
    check("stk_" not in g.upstreams[0].heads[-1] and "Accept-Encoding: identity" in g.upstreams[0].heads[-1].replace("accept-encoding", "Accept-Encoding"), g.upstreams[0].heads[-1])
    stream = g.stream(ask(4))
    events = stream.rest()
    equal(tokens_of(events), 4, "tokens")
    equal(events[-1], "[DONE]", "the end")
    check(not any("usage" in event for event in events), f"usage was not asked for: {events}")
    equal(g.upstreams[0].requests[-1]["stream_options"], {"include_usage": True}, "asked upstream")
    asked = g.stream(ask(2, stream_options={"include_usage": True})).rest()
    equal(json.loads(asked[-2])["usage"]["completion_tokens"], 2, "usage was asked for")
    check(json.loads(asked[0])["usage"] is None, "as the API says")
    row = g.settled(3)
    equal((row["tokens_in"], row["tokens_out"]), (21, 11), "tokens")
    # 21 at one dollar and 11 at two, a million.
    equal(row["usd"], "0.000043000000", "charged")
    equal(row["outcomes"], {"ok": 3}, "outcomes")
    equal(g.terminate(), 0, "exit")
    sound = g.verify()
    equal((sound["reserved"], sound["settled"], sound["open"]), (3, 3, 0), "ledger")


def test_every_endpoint_has_its_meter(t):
    g = Gateway(t).start()
    equal(g.post({"model": "demo", "input": "a b", "user": "u"}, "/v1/embeddings")[0], 200, "embeddings")
    equal(g.post({"model": "demo", "prompt": "a b", "max_tokens": 2}, "/v1/completions")[2]["usage"]["completion_tokens"], 2, "completions")
    events = g.stream({"model": "demo", "input": "x"}, path="/v1/responses").rest()
    equal(json.loads(events[-1])["type"], "response.completed", "responses")
    check("stream_options" not in g.upstreams[0].requests[-1], "responses say usage by themselves")
    row = g.settled(3)
    equal((row["tokens_in"], row["tokens_out"]), (21, 5), "tokens")
    equal([m["id"] for m in g.get("/v1/models")[1]["data"]], ["demo"], "models")
    equal(g.get("/v1/models/demo")[1]["id"], "demo", "model")
    equal(g.get("/v1/models/other")[0], 404, "no model")


def test_keys_say_who_may_what(t):
    keys = [{"name": "anna"}, {"name": "old", "expires": "2020-01-01"}, {"name": "gone", "revoked": True},
            {"name": "looker", "role": "viewer"}, {"name": "narrow", "models": ["demo"]}, {"name": "ben", "project": "b"}]
    models = [{"name": "demo"}, {"name": "other"}, {"name": "secret", "projects": ["b"]}]
    g = Gateway(t, models=models, keys=keys).start()

    def code(key, model="demo"):
        status, headers, answer = g.post(ask(1, model), key=key)
        if status != 200:
            check(sorted(answer["error"]) == ["code", "message", "param", "type"], str(answer))
        return status, answer.get("error", {}).get("code")
    equal(code("nobody"), (401, "invalid_api_key"), "unknown")
    equal(code("old"), (401, "key_expired"), "expired")
    equal(code("gone"), (401, "key_revoked"), "revoked")
    equal(code("looker"), (403, "scope_missing"), "viewer")
    equal(code("narrow", "other"), (403, "model_not_allowed"), "of its project, not of its own")
    # A model of others and one that is not there are told in the same words.
    equal(code("anna", "secret"), (404, "model_not_found"), "hidden")
    equal(code("anna", "nothing"), (404, "model_not_found"), "none")
    equal(code("ben", "secret"), (200, None), "its own")
    equal([m["id"] for m in g.get("/v1/models", "looker")[1]["data"]], ["demo", "other"], "what it sees")
    equal(g.get("/v1/models/secret")[0], 404, "hidden")


def test_limits_hold_and_their_headers_are_true(t):
    keys = [{"name": "anna", "requests_per_minute": 60, "request_burst": 3},
            {"name": "ben", "tokens_per_minute": 6000, "token_burst": 200},
            {"name": "carl", "concurrent": 1}, {"name": "dora", "budget": 0.0005}]
    g = Gateway(t, keys=keys, price="{input: 1, output: 100}").start()
    seen = [g.post(ask(1)) for _ in range(4)]
    equal([s[0] for s in seen], [200, 200, 200, 429], "requests")
    equal([s[1]["x-ratelimit-remaining-requests"] for s in seen], ["2", "1", "0", "0"], "remaining")
    refused = seen[3]
    equal((refused[2]["error"]["code"], refused[1]["retry-after"]), ("rate_limit_exceeded", "1"), "refused")
    time.sleep(1.05)
    equal(g.post(ask(1))[0], 200, "Retry-After is true")
    equal(g.post(ask(1, max_tokens=500), key="ben")[2]["error"]["code"], "tokens_exceed_limit", "never fits")
    first = g.post(ask(2, max_tokens=100), key="ben")
    equal(first[0], 200, "tokens")
    second = g.post(ask(2, max_tokens=100), key="ben")
    # What the first did not use came back.
    equal(second[0], 200, "refund")
    holder = g.stream(ask(3, gap=0.3), key="carl")
    equal(g.post(ask(1), key="carl")[2]["error"]["code"], "concurrency_exceeded", "one at once")
    holder.rest()
    equal(g.post(ask(1), key="carl")[0], 200, "room again")
    # 5 tokens of 0.0001 dollars: the second would reserve more than is left.
    equal(g.post(ask(3, max_tokens=4), key="dora")[0], 200, "budget")
    equal(g.post(ask(3, max_tokens=4), key="dora")[2]["error"]["code"], "budget_exceeded", "budget")
    # What was charged is known after a restart.
    g.terminate()
    g.start()
    equal(g.post(ask(3, max_tokens=4), key="dora")[2]["error"]["code"], "budget_exceeded", "budget, later")


def test_f01_dead_before_the_first_token_is_tried_elsewhere(t):
    alive = Upstream()
    dead = f"http://127.0.0.1:{free_port()}"
    g = Gateway(t, [alive], models=[{"name": "demo", "upstreams": [dead, alive.url]}, {"name": "lost", "upstreams": [dead]}]).start()
    for _ in range(8):
        equal(g.post(ask(2))[0], 200, "tried elsewhere")
    check(g.metric("retries_total") >= 1, "one was tried twice")
    status, headers, answer = g.post(ask(2, "lost"))
    check(status in (502, 503) and answer["error"]["code"] in ("upstream_error", "no_replica"), str(answer))
    check(status == 503 or "refused" in headers["x-stoker-attempts"], str(headers))
    rows = {row["model"]: row for row in g.account()["rows"]}
    equal(rows["lost"]["usd"], "0.000000000000", "nothing for what failed")
    equal(rows["demo"]["tokens_out"], 16, "one charge each")


def test_f01_a_stream_that_dies_behind_its_head_is_asked_elsewhere(t):
    dead, alive = Upstream(), Upstream()
    dead.dies_at_once = True
    g = Gateway(t, [dead, alive]).start()
    for _ in range(12):
        events = g.stream(ask(3)).rest()
        equal((tokens_of(events), events[-1]), (3, "[DONE]"), "nothing had been shown")
    check(g.metric("retries_total") >= 1 and len(dead.requests) >= 1, "one was tried twice")
    row = g.settled(12)
    equal((row["tokens_out"], row["outcomes"]), (36, {"ok": 12}), "one charge each")


def test_f02_f03_f22_a_stream_that_breaks_ends_with_an_event_and_without_done(t):
    g = Gateway(t, more="timeouts: {silence: 300ms}\n").start()
    for order, code in (({"die_after": 2}, "upstream_error"), ({"stall_after": 2}, "upstream_timeout")):
        events = g.stream(ask(5, gap=0.02, **order)).rest()
        equal(tokens_of(events[:-1]), 2, "delivered")
        equal(json.loads(events[-1])["error"]["code"], code, "the last event")
    equal(g.settled(2)["tokens_out"], 4, "what was delivered")
    for broken in ("html", "nul", "half"):
        stream = g.stream(ask(5, broken=broken))
        events = stream.rest()
        # Where nothing was shown yet it is an answer of its own.
        check(stream.status == 502 or events and "upstream_error" in events[-1] and "[DONE]" not in events, f"{broken}: {events}")
    row = g.settled(5)
    equal(row["outcomes"], {"upstream_error": 4, "upstream_timeout": 1}, "why")


def test_f23_an_answer_cut_short_is_no_answer(t):
    g = Gateway(t).start()
    status, _, answer = g.post(ask(3, broken="short"))
    equal((status, answer["error"]["code"]), (502, "upstream_error"), "cut short")
    equal(g.settled(1)["usd"], "0.000000000000", "nothing was shown")


def test_f04_f33_who_leaves_is_not_generated_for_and_who_half_closes_is(t):
    g = Gateway(t).start()
    up = g.upstreams[0]
    body = json.dumps(dict(ask(10_000, gap=0.02), stream=True))
    for _ in range(10):
        s = socket.create_connection(("127.0.0.1", g.port))
        s.sendall((head(g, len(body)) + body).encode())
        check(b"tok" in s.recv(65536) + s.recv(65536), "it streams")
        s.close()
    wait_for("upstreams are left", lambda: up.open == 0, 5)
    row = g.settled(10)
    equal(row["outcomes"], {"client_cancel": 10}, "who left")
    check(10 <= row["tokens_out"] <= 100, f"only what was generated: {row}")
    for body in (json.dumps(dict(ask(4, gap=0.05), stream=True)), json.dumps(ask(4, delay=0.2))):
        with socket.create_connection(("127.0.0.1", g.port)) as s:
            s.sendall((head(g, len(body)) + body).encode())
            s.shutdown(socket.SHUT_WR)
            got = b""
            while piece := s.recv(65536):
                got += piece
        check(b"[DONE]" in got or b"chat.completion" in got, f"it waits for its answer: {got}")
    equal(g.settled(12)["outcomes"], {"client_cancel": 10, "ok": 2}, "who stayed")


def test_f05_a_slow_reader_holds_little_and_stops_its_upstream(t):
    up = Upstream("x" * 2000)
    g = Gateway(t, [up], more="timeouts: {slow_consumer: 500ms}\n").start()
    body = json.dumps(dict(ask(20_000), stream=True))
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    s.connect(("127.0.0.1", g.port))
    s.sendall((head(g, len(body)) + body).encode())
    row = g.settled(1)
    equal(row["outcomes"], {"slow_consumer": 1}, "outcome")
    check(up.sent["None"] < 15_000, f"the upstream was not read: {up.sent}")
    s.close()


def test_f06_busy_upstreams_are_passed_over_and_told_in_our_words(t):
    g = Gateway(t).start()
    status, headers, answer = g.post(ask(1, status=429, retry_after=7))
    equal((status, headers["retry-after"], answer["error"]["type"]), (429, "7", "rate_limit_error"), "busy")
    # It asked for a pause, and there is no other.
    status, headers, answer = g.post(ask(1))
    equal((answer["error"]["code"], headers["retry-after"]), ("overloaded", "7"), "pause")
    equal(g.settled(2)["usd"], "0.000000000000", "nothing")


def test_f09_a_revoked_key_ends_its_streams(t):
    g = Gateway(t, keys=[{"name": "anna"}, {"name": "ben"}]).start()
    stream, kept = g.stream(ask(200, gap=0.02)), g.stream(ask(60, gap=0.02), key="ben")
    stream.event()
    began = time.monotonic()
    g.write([{"name": "anna", "revoked": True}, {"name": "ben"}])
    events = stream.rest()
    equal(json.loads(events[-1])["error"]["code"], "key_revoked", "cut")
    check(time.monotonic() - began < 3, "soon")
    equal(g.post(ask(1))[2]["error"]["code"], "key_revoked", "and no further request")
    equal(kept.rest()[-1], "[DONE]", "others go on")
    equal(g.settled(1)["outcomes"], {"key_revoked": 1}, "outcome")


def test_f10_money_that_ends_in_a_stream_ends_the_stream(t):
    # 30 tokens are covered; the reservation grows by 512 at 20 tokens, which is not.
    g = Gateway(t, models=[{"name": "demo", "default_output_tokens": 20}], keys=[{"name": "anna", "budget": 0.003}],
                price="{output: 100}").start()
    events = g.stream(ask(200, gap=0.01)).rest()
    equal(json.loads(events[-1])["error"]["code"], "budget_exceeded", "cut")
    row = g.settled(1)
    check(float(row["usd"]) <= 0.003 and row["outcomes"] == {"budget_cut": 1}, str(row))


def test_f11_f12_f13_f14_f34_what_is_refused_at_the_door_reaches_nobody(t):
    g = Gateway(t, more="max_body: 4KiB\ntimeouts: {head: 300ms}\n").start()
    equal(g.post(ask(1, pad="x" * 5000))[2]["error"]["code"], "request_too_large", "body")
    deep = '{"model":"demo","messages":' + "[" * 70 + "]" * 70 + "}"
    for body, code, place in (('{"model":"demo","model":"x"}', "duplicate_key", "16"), ('{"model":"demo","mod\\u0065l":"x"}', "duplicate_key", "16"),
                              ('{"model":"demo",}', "invalid_json", "16"), (b'{"model":"\xff"}', "invalid_utf8", "10"),
                              (deep, "too_deep", "90"), ('{"model":"\\ud800"}', "invalid_utf8", "10"), ("[1]", "invalid_json", "0"),
                              ('{"model":"demo","max_tokens":1e400}', "invalid_type", "29"), ("", "invalid_json", "0")):
        status, _, answer = g.post(body)
        equal((status, answer["error"]["code"]), (400, code), f"{body[:40]}")
        check(f"byte {place} " in answer["error"]["message"], answer["error"]["message"])
    bearer = f"Authorization: Bearer {g.secret('anna')}\r\n"
    post = "POST /v1/chat/completions HTTP/1.1\r\n"
    hostile = [post + "Host: x\r\n" + bearer + h + "\r\n\r\n" for h in (
        "Content-Length: 3\r\nTransfer-Encoding: chunked", "Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: +3", "Content-Length: 3 x", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "X : 1", "X: 1\r\n 2", "X: a\rb", "X: a\0b", "Host: y")]
    hostile += [post + bearer + "\r\n", post.replace("1.1", "1.0") + "Host: x\r\n" + bearer + "Transfer-Encoding: chunked\r\n\r\n",
                (post + "Host: x\r\n" + bearer + "\r\n").replace("\r\n", "\n"),
                post + "Host: x\r\n" + bearer + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                post.replace("/v1", "http://y/v1") + "Host: x\r\n" + bearer + "\r\n"]
    for request in hostile:
        got = g.raw(request)
        check(b" 400 " in got.split(b"\r\n")[0] and got.count(b"HTTP/1.1") == 1, f"{request!r}: {got[:200]!r}")
    check(b" 408 " in g.raw("POST /v1/chat/completions HTTP/1.1\r\nHost"), "a head that does not come")
    refused = g.raw(head(g, 100, "Expect: 100-continue\r\n", key="nobody"))
    check(b" 401 " in refused.split(b"\r\n")[0] and b"100 Continue" not in refused, refused)
    equal(g.upstreams[0].requests, [], "nothing reached the upstream")
    equal(g.account()["rows"], [], "nothing was charged")


def test_f15_f25_killed_with_live_streams_nothing_is_lost_or_charged_twice(t):
    g = Gateway(t, keys=[{"name": "anna"}]).start()
    up, charged, rounds, live = g.upstreams[0], 0, 3, 20
    for round in range(rounds):
        streams = [g.stream(ask(10_000, gap=0.01, user=f"{round}-{i}")) for i in range(live)]
        for stream in streams:
            stream.event()
        time.sleep(0.05 + 0.6 * round)
        g.kill()
        for stream in streams:
            stream.close()
        g.start()
        equal(g.told["recovered"], live, "open ones are settled")
        wait_for("the upstream is left", lambda: up.open == 0, 10)
    row = g.settled(rounds * live)
    equal((row["recovered"], row["outcomes"]), (rounds * live, {"gateway_crash": rounds * live}), "each once")
    sent = sum(up.sent.values())
    check(row["tokens_out"] <= sent, f"charged {row['tokens_out']}, sent {sent}")
    check(sent - row["tokens_out"] <= 256 * rounds * live, "within the marks")
    sound = g.verify()
    equal((sound["reserved"], sound["settled"]), (rounds * live, rounds * live), "ledger")


def test_f15_what_nobody_waits_for_yet_is_on_record_all_the_same(t):
    g = Gateway(t).start()
    asked = threading.Thread(target=lambda: g.raw(head(g, len(body)) + body))
    body = json.dumps(ask(3, delay=60))
    asked.start()
    wait_for("its reservation is on disk", lambda: g.verify()["open"] == 1)
    g.kill()
    asked.join()
    g.start()
    equal(g.told["recovered"], 1, "settled by the next process")
    row = g.settled(1)
    equal((row["outcomes"], row["tokens_out"], float(row["usd"])), ({"gateway_crash": 1}, 0, 0), "and nothing was shown of it")


def test_a_request_in_one_piece_costs_one_commit(t):
    g = Gateway(t).start()
    began, before, requests = time.monotonic(), g.metric("ledger_commits_total"), 40
    for _ in range(requests):
        equal(g.post(ask(1))[0], 200, "answered")
    commits, seconds = g.metric("ledger_commits_total") - before, time.monotonic() - began
    # Its reservation goes with its settlement, unless a tenth of a second has passed between them.
    check(commits <= requests + seconds / 0.1 + 1, f"{commits} commits for {requests} requests in {seconds:.1f} s")


def test_f16_at_term_streams_end_and_new_requests_go_elsewhere(t):
    g = Gateway(t, more="timeouts: {drain: 1s}\n").start()
    short, long = g.stream(ask(5, gap=0.05)), g.stream(ask(1000, gap=0.05))
    short.event()
    long.event()
    began = time.monotonic()
    g.process.terminate()
    equal(short.rest()[-1], "[DONE]", "what ends in time")
    last = long.rest()[-1]
    equal(json.loads(last)["error"]["code"], "draining", "what does not")
    equal(g.process.wait(timeout=10), 0, "exit")
    check(time.monotonic() - began < 6, "by its deadline")
    equal((g.verify()["open"], g.row()["outcomes"]), (0, {"ok": 1, "drained": 1}), "all settled")


def test_f18_an_account_that_cannot_be_written_refuses(t):
    g = Gateway(t).start()
    equal(g.post(ask(1))[0], 200, "at first")
    stream = g.stream(ask(1000, gap=0.02))
    stream.event()
    # From here on its files may not be written.
    resource.prlimit(g.process.pid, resource.RLIMIT_FSIZE, (100, 100))
    status, headers, answer = g.post(ask(1))
    equal((status, answer["error"]["code"], headers["retry-after"]), (503, "ledger_unavailable", "5"), "refused")
    equal(json.loads(stream.rest()[-1])["error"]["code"], "ledger_unavailable", "and what streams is ended")
    equal(g.get("/readyz")[0], 503, "not ready")
    g.kill()
    g.start()
    equal(g.told["recovered"], 1, "the stream is settled; the refused one never was there")
    equal(g.verify()["open"], 0, "all settled")


def test_f19_a_changed_file_is_taken_up_and_a_broken_one_is_not(t):
    g = Gateway(t).start()
    stream = g.stream(ask(40, gap=0.03))
    stream.event()
    g.write([{"name": "anna"}, {"name": "new"}])
    wait_for("the new key is known", lambda: g.post(ask(1), key="new")[0] == 200)
    with open(os.path.join(t.work, "gateway.yaml"), "w") as file:
        file.write("models: 7\n")
    wait_for("it says what is wrong", lambda: "goes on as it was" in open(g.process.err_path).read())
    equal(g.post(ask(1), key="new")[0], 200, "as it was")
    equal(stream.rest()[-1], "[DONE]", "under way")


def test_f20_f21_usage_that_is_missing_or_wrong(t):
    g = Gateway(t).start()
    g.stream(ask(20, usage=False)).rest()
    row = g.settled(1)
    check(row["tokens_out"] == 20 and row["tokens_in"] > 0, f"counted: {row}")
    g.stream(ask(20, lie=0)).rest()
    row = g.settled(2)
    equal((row["tokens_out"], row["drift"]), (40, 1), "the larger of both")


def test_f26_a_flipped_bit_in_the_ledger_refuses_the_start(t):
    g = Gateway(t).start()
    for _ in range(5):
        g.post(ask(1))
    g.terminate()
    folder = os.path.join(t.work, "ledger")
    name = sorted(f for f in os.listdir(folder) if f.startswith("seg-"))[0]
    path = os.path.join(folder, name)
    data = bytearray(open(path, "rb").read())
    data[600] ^= 1
    open(path, "wb").write(data)
    done = t.call("serve", exit=None)
    check(done.returncode == 2 and f"{name}, byte " in done.stderr, f"{done.returncode} {done.stderr}")
    equal(bytearray(open(path, "rb").read()), data, "nothing is touched")


def test_f27_who_reads_the_account_and_is_killed_doubles_nothing(t):
    """What was charged is read from the ledger each time: there is no second book that could have taken a request twice."""
    g = Gateway(t).start()
    words = ("serve", "account", "-o", "json", "--ledger", os.path.join(t.work, "ledger"))
    for posted in range(10, 51, 10):
        readers = []
        for _ in range(10):
            check(g.post(ask(3))[0] == 200, "an answer")
            readers.append(t.start(*words))
        for reader in readers:
            reader.kill()
            reader.wait()
        row = g.row()
        check(row["requests"] == posted, f"{row} of {posted}")
        g.kill()
        g.start()
    row = g.row()
    check((row["requests"], row["tokens_in"], row["tokens_out"], row["recovered"]) == (50, 350, 150, 0), str(row))
    check(g.verify()["open"] == 0, "nothing is left open")


def test_f30_one_upstream_that_never_answers_costs_other_models_nothing(t):
    silent, alive = Upstream(), Upstream()
    g = Gateway(t, [silent, alive], models=[{"name": "stuck", "upstreams": [silent.url]}, {"name": "demo", "upstreams": [alive.url]}],
                more="timeouts: {first_byte: 500ms}\n").start()
    body = json.dumps(ask(1, "stuck", stall_after=-1))
    waiting = [socket.create_connection(("127.0.0.1", g.port)) for _ in range(20)]
    for s in waiting:
        s.sendall((head(g, len(body)) + body).encode())
    began = time.monotonic()
    for _ in range(50):
        equal(g.post(ask(1))[0], 200, "others")
    check(time.monotonic() - began < 5, "others do not wait")
    for s in waiting:
        got = s.recv(65536)
        check(b" 504 " in got.split(b"\r\n")[0] or b" 503 " in got.split(b"\r\n")[0] or b" 502 " in got.split(b"\r\n")[0], got[:200])
        s.close()


def test_a_wrong_file_is_told_with_its_place(t):
    for text, words in (("models: []\nkeys: []\n", ["models: expected at least one", "stoker serve key"]),
                        ("models: [{name: a, upstreams: [\"ftp://x\"]}]\nkeys: [{name: a, sha256: abc}]\n", ["ftp://x", "64 hex digits", ":2:"]),
                        ("modls: []\n", ["modls", "models"]), ("listen: 0.0.0.0:0\n", ["keys"])):
        t.write("gateway.yaml", text)
        done = t.call("serve", exit=2)
        check(all(word in done.stderr for word in words), done.stderr)
    t.write("gateway.yaml", f"models: [{{name: a, upstreams: [\"http://127.0.0.1:1\"]}}]\nkeys: [{{name: a, sha256: {'0' * 64}}}]\n")
    done = t.call("serve", "--listen", "0.0.0.0:0", exit=None)
    check(done.returncode in (2, 3) and "loopback" in done.stderr, done.stderr)
    check("stoker serve has no 'acount'" in t.call("serve", "acount", exit=2).stderr, "a word that is none")


if __name__ == "__main__":
    main(dict(globals()))
