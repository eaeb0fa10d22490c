"""The gateway for many teams and several providers: what projects may do together, models that stand in for others, money that a
model may cost, requests that come twice, prompts that begin alike, other APIs than OpenAI's chat, and what its metrics and
objectives say. Rows of the failure table are named f08 and so on."""

import csv
import decimal
import json
import os
import re
import shutil
import subprocess
import threading
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, equal, free_port, tokens_of
from harness import check, main, wait_for


def promtool(t, kind, text):
    """Read by Prometheus itself, where it is there."""
    if shutil.which("promtool") is None:
        return
    if kind == "metrics":
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    else:
        done = subprocess.run(["promtool", "check", "rules", t.write("rules.yaml", text)], capture_output=True, text=True)
    check(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}")


def test_the_messages_of_anthropic_are_relayed_and_metered(t):
    g = Gateway(t).start()
    body = {"model": "demo", "max_tokens": 9, "system": "short", "messages": [{"role": "user", "content": json.dumps({"tokens": 5})}]}
    status, _, answer = g.post(body, "/v1/messages", headers={"Authorization": "", "x-api-key": "stk_anna", "anthropic-version": "2023-06-01"})
    equal((status, answer["type"], answer["usage"]["output_tokens"]), (200, "message", 5), "whole")
    head = g.upstreams[0].heads[-1].lower()
    check("anthropic-version: 2023-06-01" in head and "stk_" not in head and "x-api-key" not in head, head)
    events = g.stream(body, path="/v1/messages").rest()
    equal(json.loads(events[-1])["type"], "message_stop", "the end")
    equal(sum(json.loads(e)["type"] == "content_block_delta" for e in events), 5, "tokens")
    row = g.settled(2)
    # 4 that were read, 1 written to the cache, 2 read from it.
    equal((row["tokens_in"], row["tokens_cached_in"], row["tokens_out"]), (14, 4, 10), "usage")
    cut = g.stream(dict(body, messages=[{"role": "user", "content": json.dumps({"tokens": 5, "die_after": 2, "gap": 0.05})}]), path="/v1/messages").rest()
    last = json.loads(cut[-1])
    equal((last["type"], sorted(last["error"])), ("error", ["code", "message", "type"]), "cut, in its own words")
    row = g.settled(3)
    equal((row["tokens_in"], row["tokens_out"], row["partial"]), (21, 12, 1), "what was delivered")
    status, _, answer = g.post(dict(body, model="none"), "/v1/messages")
    equal((status, answer["type"], answer["error"]["type"]), (404, "error", "not_found_error"), "no model")
    status, headers, answer = g.post(body, "/v1/messages", key="nobody")
    equal((status, answer["type"], answer["error"]["type"]), (401, "error", "authentication_error"), "no key")
    equal(g.post(body, "/v1/messages/count_tokens")[2], {"input_tokens": 7}, "count_tokens")


def test_models_are_told_with_their_owner_and_by_names_with_slashes(t):
    g = Gateway(t, models=[{"name": "demo"}, {"name": "org/own", "projects": ["research"]}], keys=[{"name": "anna", "project": "research"}, {"name": "ben", "project": "sales"}]).start()
    status, listed = g.get("/v1/models")
    equal([(m["id"], m["owned_by"]) for m in listed["data"]], [("demo", "stoker"), ("org/own", "research")], "the list")
    for path in ("/v1/models/org/own", "/v1/models/org%2Fown"):  # as the clients for Python and for Node write it
        status, one = g.get(path)
        equal((status, one), (200, listed["data"][1]), path)
        check(one["object"] == "model" and abs(one["created"] - time.time()) < 3600, str(one))
        status, other = g.get(path, key="ben")
        equal((status, other["error"]["code"], other["error"]["param"]), (404, "model_not_found", "model"), "of another project")
    equal(g.get("/v1/models/org%2F..%2Fdemo")[0], 400, "no way around")


def test_a_stream_of_messages_begins_as_its_clients_ask(t):
    """llama.cpp's server sends no message_start where the first token is half a character: the prompt was charged nothing, and clients gave up."""
    g = Gateway(t).start()
    body = {"model": "demo", "max_tokens": 9, "messages": [{"role": "user", "content": json.dumps({"tokens": 5})}]}
    g.post(body, "/v1/messages")  # what a prompt of that length is
    headless = dict(body, messages=[{"role": "user", "content": json.dumps({"tokens": 5, "headless": True})}])
    events = [json.loads(e) for e in g.stream(headless, path="/v1/messages").rest()]
    equal([e["type"] for e in events[:3]], ["message_start", "content_block_start", "ping"], "in order, and once")
    message = events[0]["message"]
    equal((message["type"], message["role"], message["model"], message["content"]), ("message", "assistant", "demo", []), "a message")
    row = g.settled(2)
    equal((row["tokens_in"], row["tokens_out"]), (7 + message["usage"]["input_tokens"], 10), "what is told is what is charged")
    check(message["usage"]["input_tokens"] > 0, "the prompt is not free")


def test_speech_is_charged_by_characters_and_images_by_the_piece(t):
    g = Gateway(t, price="{input: 15, image: 0.04}").start()
    status, headers, answer = g.post({"model": "demo", "input": "h\u00e9llo \"you\"\n", "voice": "x"}, "/v1/audio/speech")
    equal((status, headers["content-type"], len(answer) > 0), (200, "audio/mpeg", True), "speech")
    equal(g.settled(1)["tokens_in"], 12, "characters")
    status, _, answer = g.post({"model": "demo", "prompt": "a cat", "n": 3}, "/v1/images/generations")
    equal((status, len(answer["data"])), (200, 3), "images")
    row = g.settled(2)
    equal(row["usd"], f"{12 * 15e-6 + 3 * 0.04:.12f}", "charged")


def test_f24_a_request_that_comes_twice_is_answered_once(t):
    g = Gateway(t).start()
    up = g.upstreams[0]
    named = {"Idempotency-Key": "job-1"}
    first = g.post(ask(4), headers=named)
    again = g.post(ask(4), headers=named)
    equal((first[0], again[0], again[2]), (200, 200, first[2]), "the same answer")
    equal((again[1]["idempotent-replayed"], again[1]["x-request-id"]), ("true", first[1]["x-request-id"]), "it is said")
    equal(len(up.requests), 1, "asked once")
    equal(g.settled(1)["tokens_out"], 4, "charged once")
    equal(g.post(ask(5), headers=named)[2]["error"]["code"], "idempotency_mismatch", "another body")
    equal(g.post(ask(4), headers=dict(named, Authorization="Bearer " + g.secret("anna")), path="/v1/completions")[0], 422, "another path")
    both = []
    threads = [threading.Thread(target=lambda: both.append(g.post(ask(3, delay=0.5), headers={"Idempotency-Key": "job-2"}))) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.15)
    for thread in threads:
        thread.join()
    equal(sorted(b[0] for b in both), [200, 409], "two at once")
    refused = next(b for b in both if b[0] == 409)
    equal((refused[2]["error"]["code"], refused[1]["retry-after"]), ("idempotency_in_progress", "1"), "the second")
    # One that failed may be sent again under its name.
    equal(g.post(ask(1, status=500), headers={"Idempotency-Key": "job-3"})[0], 502, "failed")
    sent = len(up.requests)
    equal(g.post(ask(1, status=500), headers={"Idempotency-Key": "job-3"})[0], 502, "and again")
    equal(len(up.requests), sent + 1, "it was asked again")
    equal(g.post(ask(1), headers={"Idempotency-Key": "x" * 256})[2]["error"]["code"], "invalid_idempotency_key", "too long")


def test_teams_have_limits_of_their_own(t):
    keys = [{"name": "anna", "project": "red"}, {"name": "ben", "project": "red", "requests_per_minute": 600}, {"name": "carl", "project": "blue"}]
    g = Gateway(t, keys=keys, price="{output: 100}",
                more="projects:\n  - {name: red, requests_per_minute: 60, request_burst: 3, budget: 0.0011}\n  - {name: blue, concurrent: 1}\n").start()
    seen = [g.post(ask(1, max_tokens=1), key=key) for key in ("anna", "ben", "anna", "ben")]
    equal([s[0] for s in seen], [200, 200, 200, 429], "together")
    equal([s[1]["x-ratelimit-remaining-requests"] for s in seen[:3]], ["2", "1", "0"], "headers say the nearer limit")
    holder = g.stream(ask(3, gap=0.3), key="carl")
    equal(g.post(ask(1), key="carl")[2]["error"]["code"], "concurrency_exceeded", "one at once")
    holder.rest()
    time.sleep(1.05)
    # 3 tokens of 0.0001 dollars are spent; these want 9 more.
    status, headers, answer = g.post(ask(9, max_tokens=9), key="ben")
    equal((status, answer["error"]["code"]), (429, "budget_exceeded"), "money")
    # Nothing comes back before the month ends.
    check(60 < int(headers["retry-after"]) <= 31 * 86400 + 1, str(headers))
    g.terminate()
    g.start()
    equal(g.post(ask(9, max_tokens=9), key="ben")[2]["error"]["code"], "budget_exceeded", "what was spent is known after a restart")
    rows = t.json("serve", "account", "--ledger", os.path.join(t.work, "ledger"), "--by", "project")["rows"]
    equal([(row["project"], row["requests"], row["tokens_out"]) for row in rows], [("red", 3, 3), ("blue", 1, 3)], "by project") \
        if rows[0]["project"] == "red" else equal([(row["project"], row["requests"], row["tokens_out"]) for row in rows], [("blue", 1, 3), ("red", 3, 3)], "by project")
    equal(t.json("serve", "account", "--ledger", os.path.join(t.work, "ledger"), "--by", "model", "--since", "1h")["rows"][0]["requests"], 4, "since")
    # The month in the columns of FOCUS: the same requests, and the same money to the last digit.
    month = time.strftime("%Y-%m", time.gmtime())
    lines = list(csv.DictReader(t.call("serve", "account", "--ledger", os.path.join(t.work, "ledger"), "--month", month, "--focus").stdout.splitlines()))
    equal(sorted({line["SubAccountName"] for line in lines}), ["blue", "red"], "projects")
    equal(sum(int(line["ConsumedQuantity"]) for line in lines), sum(row["tokens_in"] + row["tokens_out"] for row in rows), "tokens")
    equal(sum(decimal.Decimal(line["BilledCost"]) for line in lines), sum(decimal.Decimal(row["usd"]) for row in rows), "money")
    check("both or none" in t.call("serve", "account", "--focus", "--ledger", "ledger", exit=2).stderr, "without a month")
    check("neither a time" in t.call("serve", "account", "--since", "soon", "--ledger", "ledger", exit=2).stderr, "a time that is none")


def test_f08_all_dead_and_back_and_another_model_meanwhile(t):
    port = free_port()
    spare = Upstream("spare ")
    models = [{"name": "main", "upstreams": [f"http://127.0.0.1:{port}"], "fallback": ["none-left", "spare"], "price": {"input": 1, "output": 2}},
              {"name": "none-left", "upstreams": [f"http://127.0.0.1:{free_port()}"]}, {"name": "spare", "upstreams": [spare.url], "upstream_model": "other-name"},
              {"name": "alone", "upstreams": [f"http://127.0.0.1:{port}"]}]
    g = Gateway(t, [spare], models=models).start()
    status, headers, answer = g.post(ask(3, "main"))
    equal((status, headers["x-stoker-model"], answer["choices"][0]["message"]["content"]), (200, "spare", "spare " * 3), "another one answers")
    equal(spare.requests[-1]["model"], "other-name", "by its own name")
    check("refused" in headers["x-stoker-attempts"], str(headers))
    events = g.stream(ask(4, "main")).rest()
    equal((tokens_of(events), events[-1]), (4, "[DONE]"), "streams, too")
    row = g.settled(2)
    equal((row["model"], row["usd"]), ("main", f"{14 * 1e-6 + 7 * 2e-6:.12f}"), "at the price of the one that was asked for")
    for _ in range(6):
        check(g.post(ask(1, "alone"))[0] in (502, 503), "nobody is there")
    back = Upstream("back ", port=port)
    wait_for("it answers when it is back", lambda: g.post(ask(1, "alone"))[0] == 200, 15)
    wait_for("and so does its model", lambda: g.post(ask(1, "main"))[2]["choices"][0]["message"]["content"] == "back ", 15)
    # A busy one hands over as well.
    status, headers, answer = g.post(ask(1, "main", status=429, retry_after=1))
    equal(status, 429, "as told, of the last one of the list")
    del back


def test_money_that_a_model_may_cost(t):
    cheap = Upstream("cheap ")
    models = [{"name": "dear", "cap": 0.001, "fallback": ["cheap"], "price": {"output": 100}}, {"name": "cheap", "upstreams": [cheap.url], "price": {"output": 1}},
              {"name": "alone", "cap": 0.0005, "price": {"output": 100}}]
    g = Gateway(t, models=models).start()
    said = [g.post(ask(4, "dear", max_tokens=4)) for _ in range(3)]
    equal([s[2]["choices"][0]["message"]["content"].split()[0] for s in said], ["tok", "tok", "cheap"], "until it is spent")
    equal(g.post(ask(4, "alone", max_tokens=4))[0], 200, "alone")
    status, headers, answer = g.post(ask(4, "alone", max_tokens=4))
    equal((status, answer["error"]["code"]), (429, "model_budget_exceeded"), "spent")
    check(int(headers["retry-after"]) > 60, str(headers))
    g.terminate()
    g.start()
    equal(g.post(ask(4, "alone", max_tokens=4))[2]["error"]["code"], "model_budget_exceeded", "and is so after a restart")


def certificate(t):
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "up-key.pem", "-out", "up.pem",
                           "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=t.work, capture_output=True, text=True)
    check(made.returncode == 0, made.stderr)
    return os.path.join(t.work, "up.pem"), os.path.join(t.work, "up-key.pem")


def test_providers_are_reached_by_tls_with_a_key_by_reference(t):
    pair = certificate(t)
    up = Upstream(tls=pair)
    t.environment["PROVIDER_KEY"] = "sk-provider"
    models = [{"name": "v1", "upstreams": [up.url + "/openai/v1"], "ca": "up.pem", "key_env": "PROVIDER_KEY", "key_header": "api-key"},
              {"name": "deployed", "upstreams": [up.url], "ca": "up.pem", "key_env": "PROVIDER_KEY", "upstream_model": "gpt-x", "api_version": "2024-10-21"},
              {"name": "mistrusted", "upstreams": [up.url], "key_env": "PROVIDER_KEY"}]
    g = Gateway(t, [up], models=models).start()
    big = "x" * 200_000
    for _ in range(3):
        equal(g.post(ask(3, "v1", pad=big))[0], 200, "whole")
    check(up.heads[-1].startswith("POST /openai/v1/chat/completions ") and "api-key: sk-provider" in up.heads[-1] and "stk_" not in up.heads[-1], up.heads[-1])
    equal(up.requests[-1]["pad"], big, "all of it arrived")
    events = g.stream(ask(200, "v1")).rest()
    equal((tokens_of(events), events[-1]), (200, "[DONE]"), "a stream")
    equal(g.post(ask(2, "deployed"))[0], 200, "a deployment in the path")
    check(up.heads[-1].startswith("POST /openai/deployments/gpt-x/chat/completions?api-version=2024-10-21 "), up.heads[-1])
    heads = len(up.heads)
    status, headers, answer = g.post(ask(2, "mistrusted"))
    equal((status, answer["error"]["code"], len(up.heads)), (502, "upstream_error", heads), "an authority that nobody trusts gets no key")
    left = g.stream(ask(10_000, "v1", gap=0.01))
    left.event()
    left.close()
    wait_for("it is left by TLS as well", lambda: up.open <= 4, 5)
    rows = wait_for("all are settled", lambda: (lambda rows: rows if sum(row["requests"] for row in rows) == 7 else None)(g.account()["rows"]))
    check(sum(row["tokens_out"] for row in rows) >= 212, f"all of it metered: {rows}")
    text = open(os.path.join(t.work, "gateway.yaml")).read()
    check("sk-provider" not in text, "the key stands in no file")
    t.write("bad.yaml", f"models: [{{name: a, upstreams: [\"https://x.example/a b\"], key_header: api-key, fallback: [a]}}]\nkeys: [{{name: a, sha256: {'0' * 64}}}]\n")
    told = t.call("serve", "--config", "bad.yaml", exit=2).stderr
    check(all(word in told for word in ("is no path before /v1", "key_header", "does not stand in for itself")), told)


def test_prompts_that_begin_alike_go_where_they_were_read(t):
    ups = [Upstream(f"u{i} ") for i in range(4)]
    g = Gateway(t, ups).start()

    def talk(who, turns):
        text = [{"role": "user", "content": f"{who} " * 400}]
        seen = []
        for turn in range(turns):
            answer = g.post({"model": "demo", "max_tokens": 1, "messages": text})[2]["choices"][0]["message"]["content"]
            seen.append(answer)
            text = text + [{"role": "assistant", "content": answer}, {"role": "user", "content": f"more {turn} " * 60}]
        return seen
    homes = [talk(f"person-{i}", 5) for i in range(6)]
    check(all(len(set(seen)) == 1 for seen in homes), f"each conversation stays: {homes}")
    check(len({seen[0] for seen in homes}) >= 2, f"and not all are in one place: {homes}")
    named = [g.post(ask(1), headers={"x-stoker-session": "s-1"})[2]["choices"][0]["message"]["content"] for _ in range(6)]
    equal(len(set(named)), 1, "a session that the client names")
    keyed = [g.post(ask(1, prompt_cache_key="k"))[2]["choices"][0]["message"]["content"] for _ in range(6)]
    equal(len(set(keyed)), 1, "and prompt_cache_key")


def test_metrics_and_objectives_say_how_the_service_is(t):
    models = [{"name": "demo", "objective": {"first_token": "250ms", "met": 90, "availability": 99}}, {"name": "it's \"x\"", "objective": {"answer": "1s"}}]
    g = Gateway(t, models=models).start()
    for _ in range(8):
        g.stream(ask(3)).rest()
    g.stream(ask(3, delay=0.4)).rest()
    g.post(ask(1, status=500))
    g.post(ask(1, status=400))
    g.settled(11)
    text = g.get("/metrics")[1]
    promtool(t, "metrics", text)
    value = lambda line: float(re.search(rf"^{re.escape(line)} (\S+)$", text, re.M).group(1))
    equal(value('stoker_gateway_first_token_seconds_count{model="demo"}'), 9, "streams")
    equal(value('stoker_gateway_first_token_seconds_bucket{model="demo",le="0.25"}'), 8, "fast ones")
    equal(value('stoker_gateway_model_requests_total{model="demo",outcome="ok"}'), 9, "by outcome")
    equal(value('stoker_gateway_objective_judged_total{model="demo"}'), 10, "what the client spoilt is not judged")
    equal((value('stoker_gateway_objective_missed_total{model="demo",why="slow"}'), value('stoker_gateway_objective_missed_total{model="demo",why="unavailable"}')), (1, 1), "missed")
    check(value('stoker_gateway_project_tokens_total{project="default",type="output"}') == 27, "of the project")
    done = t.call("serve", "objectives", "-o", "json", exit=1)
    told = {row["model"]: row for row in json.loads(done.stdout)}
    equal((told["demo"]["availability"]["missed"], told["demo"]["availability"]["requests"], told["demo"]["kept"]), (1, 10, False), "availability")
    equal((told["demo"]["times"]["missed"], told["demo"]["times"]["requests"], told["demo"]["first_token"]["requests"]), (1, 9, 9), "times")
    check(told["demo"]["first_token"]["p99_s"] >= 0.4 and told["demo"]["times"]["budget_left"] < 0, str(told))
    words = t.call("serve", "objectives", exit=1).stdout
    check("not kept" in words and "burn rate" in words and "p95" in words, words)
    rules = t.call("serve", "objectives", "--rules").stdout
    check(rules.count("alert:") == 12, rules)
    promtool(t, "rules", rules)


if __name__ == "__main__":
    main(dict(globals()))
