"""The access log of the gateway: one line for each request, however it ended, that agrees with the account; no prompt, no
answer and no key in it."""

import json
import os
import shutil
import subprocess
import time

from gateway_harness import Gateway, ask, equal
from harness import check, main, wait_for

LOG = "access_log: {file: access.log}\n"


def lines(t, count, name="access.log"):
    """When that many are there; the log is written by a thread of its own."""
    path = os.path.join(t.work, name)

    def read():
        found = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
        return found if len(found) >= count else None
    found = wait_for(f"{count} lines of the access log", read)
    time.sleep(0.3)  # a line too many would come now
    found = read()
    equal(len(found), count, "lines: " + str([(line["event"], line.get("status"), line.get("path")) for line in found]))
    return found


def test_each_request_is_one_line_that_agrees_with_the_account(t):
    g = Gateway(t, keys=[{"name": "anna", "project": "chemistry"}, {"name": "bert", "requests_per_minute": 1}], more=LOG).start()
    status, headers, _ = g.post(ask(5))
    equal(status, 200, "an answer")
    events = g.stream(ask(7)).rest()
    equal(events[-1], "[DONE]", "a stream")
    equal(g.post(ask(5, model="none"))[0], 404, "no such model")
    equal(g.post(ask(5), key="nobody")[0], 401, "no such key")
    equal(g.post(ask(5), path="/v1/nowhere")[0], 404, "no such path")
    equal(g.get("/v1/models")[0], 200, "models")
    equal(g.get("/healthz")[0], 200, "who watches is not told")
    equal(g.post(ask(3), key="bert")[0], 200, "the one of a minute")
    equal(g.post(ask(3), key="bert")[0], 429, "the second one")
    equal(g.post(ask(1, status=500))[0] >= 500, True, "a failed upstream")
    stream = g.stream(ask(200, gap=0.05))
    stream.event()
    stream.close()
    found = lines(t, 10)
    first = found[0]
    equal({name: first.get(name) for name in ("event", "peer", "method", "path", "key", "project", "model", "status", "outcome", "streamed", "out")},
          {"event": "request.answered", "peer": "127.0.0.1", "method": "POST", "path": "/v1/chat/completions", "key": "anna", "project": "chemistry",
           "model": "demo", "status": 200, "outcome": "ok", "streamed": False, "out": 5}, "the first line")
    equal(first["request"], headers["x-request-id"], "its name is the one that the client has")
    equal(first["replica"], g.upstreams[0].url, "who answered")
    second = found[1]
    check(second["streamed"] and second["out"] == 7 and second["first_token_ms"] >= 1 and second["duration_ms"] >= second["first_token_ms"] - 1, str(second))
    refused = {(line["status"], line["code"]): line for line in found if line["event"] == "request.refused"}
    check({(404, "model_not_found"), (401, "invalid_api_key"), (404, "unknown_url")} < set(refused) and len(refused) == 4, f"refused: {list(refused)}")
    check("key" not in refused[(401, "invalid_api_key")], "nobody's key")
    answered = [line for line in found if line["event"] == "request.answered"]
    left = [line for line in answered if line["outcome"] == "client_cancel"]
    equal((len(left), left[0]["status"]), (1, 499), "who left")
    check(sum(line["status"] >= 500 for line in answered) == 1, "the failed upstream is a line")
    for key in ("anna", "bert"):
        row = g.settled(sum(line["key"] == key for line in answered), key)
        of_key = [line for line in answered if line["key"] == key]
        equal(sum(line["in"] for line in of_key), row["tokens_in"], "tokens in of " + key)
        equal(sum(line["out"] for line in of_key), row["tokens_out"], "tokens out of " + key)
        check(abs(sum(line["usd"] for line in of_key) - float(row["usd"])) < 1e-9, f"money of {key}: {row}")
    text = open(os.path.join(t.work, "access.log")).read()
    for secret in ("stk_anna", "stk_bert", "stk_nobody", ask(5)["messages"][0]["content"]):
        check(secret not in text, f"{secret} is in the log")


def test_lines_of_http2_and_of_logfmt_and_the_log_turns_over(t):
    g = Gateway(t, more="access_log: {file: a.log, format: logfmt, max_bytes: 64KiB, keep: 2}\n").start()
    if shutil.which("curl"):
        subprocess.run(["curl", "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{g.port}/v1/chat/completions", "-H", "Authorization: Bearer stk_anna",
                        "-H", "Content-Type: application/json", "-d", json.dumps(ask(2))], check=True, capture_output=True, timeout=30)
        wait_for("its line", lambda: " peer=127.0.0.1 " in open(os.path.join(t.work, "a.log")).read())
    for _ in range(900):
        g.get("/v1/models")
    wait_for("it turned over", lambda: os.path.exists(os.path.join(t.work, "a.log.1")))
    check(os.path.getsize(os.path.join(t.work, "a.log.1")) <= 66 * 1024, "bounded")
    check(g.metric("access_lines_dropped_total") == 0, "none was lost")


def test_a_log_that_cannot_be_written_is_refused_at_the_start(t):
    g = Gateway(t, more="access_log: {file: /nowhere/at/all/access.log}\n")
    g.write()
    said = t.call("serve", "--config", os.path.join(g.folder, "gateway.yaml"), exit=None)
    check(said.returncode != 0 and "/nowhere/at/all/access.log" in said.stderr, said.stderr)


if __name__ == "__main__":
    main(dict(globals()))
