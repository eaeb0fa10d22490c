"""The second half of `./dev demo`, with weights by chance: from a GGUF to an endpoint with two replicas of llama.cpp's server, of which
one is killed, an account that agrees with what the clients counted, asleep and woken. And the official clients against such a replica,
through the gateway: OpenAI's, and Anthropic's API by hand."""

import json
import os
import pathlib
import subprocess

from bench_serve_test import EXAMPLES, VENV, random_gguf, server_python
from endpoint_test import PLAN, plan_of, ready
from gateway_clients_test import HERE, client_python
from gateway_harness import Gateway
from harness import check, main, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_story_ends_well(t):
    server_python()
    (VENV / "pinned").write_text("xllamacpp==2026.10.11549\n")
    done = subprocess.run(["bash", str(ROOT / "examples" / "story" / "serve.sh")], capture_output=True, text=True, timeout=330,
                          env=dict(os.environ, STOKER=t.binary, STOKER_SERVE_VENV=str(VENV), STOKER_DEMO_LIMIT="300"))
    check(done.returncode == 0 and "every token in the account, no process left" in done.stdout, done.stdout[-6000:] + done.stderr[-3000:])
    check("were cut, with an event that says so" in done.stdout and "held for" in done.stdout, done.stdout[-4000:])


def test_official_clients_against_a_real_engine(t):
    openai, python, weights = client_python(), server_python(), random_gguf(t)
    t.up()
    g = Gateway(t).start()
    plan_of(t, python, EXAMPLES / "serve_gguf.py", weights, "{port}", "--slots", "4", "--context", "512", "--name", "{name}", plan=PLAN)
    # The file alone says that it is an endpoint.
    told = t.json("deploy", "chat.yaml")
    check((told["endpoint"], told["changed"]) == ("chat", True), str(told))
    check(not t.json("deploy", "chat.yaml")["changed"], "nothing of it is different")
    wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    ready(t)
    calls = ("chat", "chat_raw", "chat_stream", "chat_stream_usage", "chat_stream_left", "chat_async", "completion", "completion_stream", "models", "errors")
    done = subprocess.run([openai, str(HERE / "openai_calls.py"), g.told["url"] + "/v1", "stk_anna", "chat", *calls], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0 and len(done.stdout.splitlines()) == len(calls), done.stdout + done.stderr[-2000:])
    body = {"model": "chat", "max_tokens": 6, "messages": [{"role": "user", "content": "one"}]}
    status, _, answer = g.post(body, "/v1/messages")
    check(status == 200 and answer["type"] == "message" and answer["usage"]["output_tokens"] > 0, f"{status} {answer}")
    events = [json.loads(e) for e in g.stream(body, path="/v1/messages").rest()]
    check(events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop", str(events))
    before = g.row()["requests"]
    check(g.post({"model": "chat", "content": "one two"}, "/tokenize")[2]["tokens"], "tokenize")
    row = g.settled(before + 1)
    # Each answer's usage is the engine's own; what was left is charged by its bytes.
    check(row["outcomes"].get("ok", 0) >= row["requests"] - 2 and row["drift"] == 0, str(row))
    t.call("endpoints", "stop", "chat")
    wait_for("it is stopped", lambda: t.json("endpoints", "describe", "chat")["state"] == "stopped")
    check(g.terminate() == 0, "exit")


if __name__ == "__main__":
    main(dict(globals()))
