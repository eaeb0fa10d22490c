"""From a plan to an endpoint that answers: stoker deploy --endpoint, stoker serve, stoker endpoints and stoker explain, with
replicas that are runs of stoker up. Most of it with a server that does as it is told; once with llama.cpp's own, pinned in
serve_requirements.txt, which is skipped where it cannot be had."""

import fcntl
import http.client
import json
import os
import pathlib
import signal
import threading
import time

from bench_serve_test import EXAMPLES, random_gguf, server_python
from gateway_harness import Gateway
from harness import check, main, wait_for
from teams_test import Caller

HERE = pathlib.Path(__file__).resolve().parent
PLAN = """version: 1
kind: inference
model: {family: llama, layers: 2, hidden: 128, heads: 4, vocab: 259, ffn: 352}
traffic: {concurrency: 2, prompt_tokens: 60, output_tokens: 24}
precision: fp16
where: {cloud: this-machine}
framework: llama.cpp
objective: {survive_one_replica_lost: false}
"""


def plan_of(t, *words, name="chat", plan=PLAN):
    command = json.dumps([str(word) for word in words])
    return t.write(name + ".yaml", plan + f"run: {{command: {command}, cpus: 1}}\n")


def fake(t, *words, name="chat"):
    return plan_of(t, "python3", HERE / "fake_replica.py", "--port", "{port}", *words, name=name)


def chat(tokens=4, model="chat", **more):
    return dict({"model": model, "max_tokens": tokens, "messages": [{"role": "user", "content": "hello"}]}, **more)


def described(t, name="chat"):
    return t.json("endpoints", "describe", name)


def ready(t, count=1, name="chat", revision=None, limit_s=60):
    def there():
        status = described(t, name)["status"]
        return status if status and status["ready"] == count and len(status["replicas"]) == count and revision in (None, status["revision"]) else None
    return wait_for(f"{count} replicas of {name} are ready", there, limit_s)


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


def test_an_endpoint_wakes_changes_and_ends(t):
    t.up()
    g = Gateway(t).start()
    fake(t, "--load", "3")
    told = t.json("deploy", "chat.yaml", "--endpoint", "--least", "0", "--most", "2")
    check((told["endpoint"], told["revision"], told["changed"], told["planned"]["clients"]) == ("chat", 1, True, 2), str(told))
    wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    status = wait_for("it is kept", lambda: described(t)["status"])
    check((status["state"], status["level"], status["starts"]) == ("idle", 0, 0), str(status))

    # Asked by many while nobody is there: one start, a stream that is told that it waits, and nobody is sent away.
    answers = []
    others = [threading.Thread(target=lambda: answers.append(g.post(chat(3))[0])) for _ in range(8)]
    for thread in others:
        thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", g.port, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(chat(3, stream=True)),
                       {"Authorization": "Bearer " + g.secret("anna"), "Content-Type": "application/json"})
    response = connection.getresponse()
    check(response.status == 200, str(response.status))
    lines = [line.decode().strip() for line in response.read().split(b"\n") if line.strip()]
    check(lines[0] == ": waiting for a replica", str(lines[:3]))
    check(lines[-1] == "data: [DONE]" and sum("tok" in line for line in lines) == 3, str(lines))
    for thread in others:
        thread.join()
    check(answers == [200] * 8, str(answers))
    status = ready(t)
    check((status["starts"], status["failed"]) == (1, 0), str(status))
    check(status["cold_start_s"] >= 3, str(status["cold_start_s"]))
    row = g.settled(9)
    check((row["tokens_out"], row["model"]) == (27, "chat"), str(row))

    # Its process killed: what has no byte yet is answered all the same, by another one.
    run = status["replicas"][0]["run"]
    pid = t.describe(run)["attempts"][-1]["ranks"][0]["pid"]
    os.kill(pid, signal.SIGKILL)
    check(g.post(chat(2), timeout=60)[0] == 200, "it is held until another replica is there")
    again = ready(t)["replicas"][0]["run"]
    check(again != run, f"{again} in place of {run}")
    check("exit" in described(t)["status"]["last_failure"] or "signal" in described(t)["status"]["last_failure"].lower(), described(t)["status"]["last_failure"])

    # A gateway that was killed: the next one goes on with the replica that runs.
    g.kill()
    g.start()
    check(ready(t)["replicas"][0]["run"] == again, "the replica is found")
    wait_for("the next gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    answered = g.post(chat(2))
    check(answered[0] == 200, f"and answers: {answered}")

    # Another revision, and back.
    check(not t.json("deploy", "chat.yaml", "--endpoint")["changed"], "the same file is the same revision")
    fake(t, "--word", "new ")
    check(t.json("deploy", "chat.yaml", "--endpoint")["revision"] == 2, "another one")
    ready(t, revision=2)
    check(text_of(g.post(chat(2))[2]) == "new new ", "the new one answers")
    t.call("endpoints", "rollback", "chat")
    ready(t, revision=1)
    check(text_of(g.post(chat(2))[2]) == "tok tok ", "the old one answers")
    t.call("endpoints", "split", "chat", "1=1", "2=1")
    t.call("endpoints", "scale", "chat", "2")
    ready(t, 2)
    words = {text_of(g.post(chat(1))[2]) for _ in range(24)}
    check(words == {"tok ", "new "}, str(words))
    check("chat" in t.call("explain", "chat").stdout, "explained")

    # The end.
    check("is not stopped" in t.call("endpoints", "remove", "chat", exit=None).stderr, "not while it runs")
    t.call("endpoints", "stop", "chat")
    wait_for("it is stopped", lambda: described(t)["state"] == "stopped")
    status, headers, answer = g.post(chat(1))
    check((status, answer["error"]["code"]) == (503, "stopped") and "retry-after" in headers, str(answer))
    live = [r["id"] for r in t.json("ps") if r["name"] == "serve-chat" and r["state"] in ("queued", "running", "starting")]
    check(not live, str(live))
    t.call("endpoints", "remove", "chat")
    wait_for("it is gone", lambda: g.post(chat(1))[0] == 404)
    check(g.terminate() == 0, "exit")


def test_what_a_developer_deploys_runs_in_their_project(t):
    """Over the API, as the console does: no admin's step, the replica is theirs and counts against their quota."""
    t.up()
    admin = Caller(t)
    admin.json("POST", "/api/v1/organisations", {"name": "hospital", "project": "north"})
    admin.json("POST", "/api/v1/users", {"name": "ann", "role": "developer", "project": "p-2", "password": "a-long-enough-password"})
    ann, bob = Caller(t, ""), Caller(t, "")
    ann.token = ann.json("POST", "/api/v1/login", {"name": "ann", "password": "a-long-enough-password"})["secret"]
    admin.json("POST", "/api/v1/users", {"name": "bob", "role": "developer", "project": "p-1", "password": "a-long-enough-password"})
    bob.token = bob.json("POST", "/api/v1/login", {"name": "bob", "password": "a-long-enough-password"})["secret"]
    g = Gateway(t).start()
    words = json.dumps(["python3", str(HERE / "fake_replica.py"), "--port", "{port}"])
    text = "name: chat\n" + PLAN + f"run: {{command: {words}, cpus: 1}}\n"
    plan = ann.json("POST", "/api/v1/plan", {"text": text})["plan"]
    check(plan["feasible"], str(plan)[:300])
    made = ann.json("POST", "/api/v1/endpoints", {"text": text, "folder": str(t.work), "least": 1, "most": 2})
    check((made["endpoint"]["project"], made["endpoint"]["user"], made["endpoint"]["state"]) == ("p-2", "ann", "unkept"), str(made["endpoint"]))
    status = ready(t)
    check(text_of(g.post(chat(2))[2]) == "tok tok ", "it answers")
    run = ann.json("GET", "/api/v1/runs/" + status["replicas"][0]["run"])["run"]
    check((run["user"], run["project"]) == ("ann", "north"), str(run))
    seen = ann.json("GET", "/api/v1/endpoints/chat")
    check((seen["endpoint"]["ready"], seen["status"]["replicas"][0]["run"]) == (1, run["id"]), str(seen["endpoint"]))

    # From the deployment that was accepted to the first token: kept with the endpoint, and told wherever it is.
    seen = wait_for("the first token is told", lambda: (v := ann.json("GET", "/api/v1/endpoints/chat"))["endpoint"].get("first_token_s") and v)
    one = seen["revisions"][0]
    check(0 < one["first_ready_s"] <= one["first_token_s"] == seen["endpoint"]["first_token_s"] < 120, str(one))
    check(seen["status"]["gateway"] == g.told["url"], seen["status"]["gateway"])
    first = one["first_token_s"]
    metric = 'stoker_endpoint_first_token_seconds{endpoint="chat",revision="1"} '
    told = next(line for line in admin.ask("GET", "/metrics")[1].splitlines() if line.startswith(metric))
    check(abs(float(told.removeprefix(metric)) - first) < 1e-3, told)
    check(ann.ask("GET", "/metrics")[0] == 403, "of everybody's endpoints")
    check(abs(t.json("endpoints")[0]["first_token_s"] - first) < 1e-3, str(t.json("endpoints")))
    check("first token after" in t.call("endpoints", "describe", "chat").stdout, "describe")
    print(f"  {first:.1f} s from the deployment to the first token, {one['first_ready_s']:.1f} s of it until a replica was ready, on a busy machine")
    # A second gateway tells the same: the first token was the first one.
    check(g.terminate() == 0, "exit")
    g = Gateway(t).start()
    ready(t)
    check(text_of(g.post(chat(2))[2]) == "tok tok ", "it answers again")
    time.sleep(1.5)
    check(ann.json("GET", "/api/v1/endpoints/chat")["endpoint"]["first_token_s"] == first, "the first is the first")

    # A key of her own, for a script: made, listed, rotated and revoked without an admin, and nobody else's is seen.
    made = ann.json("POST", "/api/v1/keys", {"role": "developer", "expires_s": 86400})
    check((made["key"]["name"], made["key"]["project"]) == ("ann", "p-2"), str(made["key"]))
    check(bob.json("GET", "/api/v1/keys")["items"] == [] and bob.ask("POST", f"/api/v1/keys/{made['key']['id']}/revoke")[0] == 404, "bob's are none")
    with_key = {"STOKER_TOKEN": made["secret"]}
    check("ann, developer of the project" in t.call("whoami", env=with_key).stdout, "by the command")
    check(made["key"]["id"] in t.call("key", "list", env=with_key).stdout, "it lists itself")
    check("makes no further ones" in t.call("key", "make", env=with_key, exit=None).stderr, "a key makes no key")
    again = t.call("key", "rotate", made["key"]["id"], env=with_key).stdout.strip()
    check("the token is wrong" in t.call("whoami", env=with_key, exit=None).stderr, "the old one has ended")
    last = ann.json("GET", "/api/v1/keys")["items"][-1]
    t.call("key", "revoke", last["id"], env={"STOKER_TOKEN": again})
    check({key["state"] for key in ann.json("GET", "/api/v1/keys")["items"]} == {"revoked"}, "both have ended")
    check(bob.json("GET", "/api/v1/endpoints")["items"] == [] and bob.ask("POST", "/api/v1/endpoints/chat/stop")[0] == 404, "bob's are none")

    # Somebody else's run that looks like a replica gets no request.
    labels = dict(run["labels"], endpoint_replica="9.9")
    false = bob.json("POST", "/api/v1/runs", {"name": run["name"], "command": ["sleep", "60"], "labels": labels, "per_rank": {"cpu_milli": 100}})["run"]
    wait_for("it runs", lambda: admin.json("GET", "/api/v1/runs/" + false)["run"]["state"] == "running")
    time.sleep(1)
    check([r["name"] for r in described(t)["status"]["replicas"]] == [status["replicas"][0]["name"]], "only ann's")

    # Without the role it ends there: the next replica is refused, and the reason is told.
    admin.json("POST", "/api/v1/users/ann/roles", {"role": "developer", "project": "p-2", "remove": True})
    admin.json("POST", f"/api/v1/runs/{run['id']}/cancel")
    told = wait_for("it is told", lambda: "may not submit runs in p-2" in described(t)["status"].get("last_failure", "") and described(t)["status"])
    check(told["ready"] == 0, str(told))


def test_f07_who_would_wait_longer_than_may_be_is_told_so_at_once_and_one_replica_starts(t):
    """That a start is waited for, once for all, and what a stream is told meanwhile, is in the test above."""
    t.up()
    fake(t, "--load", "3")
    t.json("deploy", "chat.yaml", "--endpoint", "--least", "0", "--most", "2")
    file = next(pathlib.Path(t.base).rglob("chat.endpoint.json"))
    endpoint = dict(json.loads(file.read_text()), hold_s=1)  # no start was seen yet, and half a minute is assumed
    file.with_suffix(".new").write_text(json.dumps(endpoint))
    os.replace(file.with_suffix(".new"), file)
    g = Gateway(t).start()
    wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    answers = []
    others = [threading.Thread(target=lambda i=i: answers.append(g.post(chat(3, stream=i % 2 == 0)))) for i in range(4)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    for status, headers, answer in answers:
        check((status, answer["error"]["code"]) == (503, "warming_up") and int(headers["retry-after"]) > 0, f"{status} {answer}")
    row = g.settled(4)
    check((row["tokens_in"], row["tokens_out"], float(row["usd"]), g.account()["open"]) == (0, 0, 0, 0), f"what was set aside is given back: {row}")
    check(ready(t)["starts"] == 1, "one start for all")
    check(g.post(chat(2))[0] == 200, "who comes again is answered")
    g.terminate()


def test_f31_a_replica_that_serves_another_model_answers_nobody(t):
    t.up()
    g = Gateway(t).start()
    names = t.write("name", "tiny-1\n")
    fake(t, "--name-file", names)
    t.json("deploy", "chat.yaml", "--endpoint", "--most", "1")
    ready(t)
    check(g.post(chat(2))[2]["model"] == "tiny-1", "as it calls itself")
    events = g.stream(chat(2)).rest()
    check(events[-1] == "[DONE]", str(events))
    t.write("name", "tiny-2\n")  # the next process behind the same address
    status, _, answer = g.post(chat(2))
    if status == 502:  # else the probe was faster, and it waited for one that is right
        check(answer["error"]["code"] == "model_mismatch", str(answer))
    told = wait_for("it is out", lambda: (lambda s: s if s and s["ready"] == 0 and "another model than tiny-1" in s["replicas"][0].get("why", "") else None)(described(t)["status"]))
    check([r["state"] for r in told["replicas"]] == ["ejected"], str(told["replicas"]))
    t.write("name", "tiny-1\n")
    ready(t)
    check(g.post(chat(2))[0] == 200, "and is in again when it is what it was")
    check(set(g.row()["outcomes"]) <= {"ok", "upstream_error"} and g.row()["tokens_out"] == 2 * g.row()["outcomes"]["ok"], str(g.row()))
    check(g.terminate() == 0, "exit")


def test_an_endpoint_that_this_gateway_does_not_keep_yet_is_asked_for_again(t):
    """As when the last gateway still ends, and holds the endpoints meanwhile: a client that is told of no such model gives up."""
    t.up()
    folder = os.path.join(t.folder, "endpoints")
    os.makedirs(folder)
    with open(os.path.join(folder, ".keeper"), "w") as keeper:
        fcntl.flock(keeper, fcntl.LOCK_EX)
        g = Gateway(t).start()
        fake(t)
        t.json("deploy", "chat.yaml", "--endpoint")
        status, headers, body = g.post(chat())
        check(status == 503 and headers["retry-after"] == "1" and body["error"]["code"] == "warming_up", f"{status} {headers} {body}")
        status, _, body = g.post(chat(model="other"))
        check(status == 404 and body["error"]["code"] == "model_not_found", f"{status} {body}")

    def answered():
        status, _, body = g.post(chat(), timeout=60)
        check(status in (200, 503), f"{status} {body}")
        return status == 200
    wait_for("the endpoint is kept and answers", answered, 60)


def test_what_cannot_be_an_endpoint_is_refused_with_its_reason(t):
    def refused(text, words, exit=2, *more):
        t.write("x.yaml", text)
        got = t.call("deploy", "x.yaml", "--endpoint", *more, exit=exit).stderr
        check(words in got, got)
    refused(PLAN + "run: {command: [python3, server.py], cpus: 1}\n", "does not say where its port stands")
    refused("version: 1\nkind: training\nmodel: gpt2\ndata: {tokens: 1M}\nwhere: {cloud: this-machine}\nrun: {command: [x], cpus: 1}\n", "an endpoint answers requests")
    refused(PLAN + "run: {command: [x, '{port}'], cpus: 1}\n", "is no range", 2, "--least", "3", "--most", "2")
    check("of which no files are written" in t.call("deploy", "x.yaml", "--least", "1", "--render", "-", exit=2).stderr, "files")
    check("is no time" in t.call("deploy", "x.yaml", "--idle", "soon", exit=2).stderr, "idle")
    for words, said in ((["describe", "none"], "there is no endpoint none"), (["scale", "none", "2"], "there is no endpoint none"),
                        (["scale", "none"], "to how many"), (["scale", "none", "-1x"], "unknown"), (["dance"], "has no 'dance'"),
                        (["describe", "../x"], "is no name"), (["split", "none", "1"], "REVISION=SHARE"), (["split", "none", "1=0"], "no revision has a share")):
        got = t.call("endpoints", *words, exit=None)
        check(got.returncode in (1, 2) and (said in got.stderr or said == "unknown"), f"{words}: {got.returncode} {got.stderr}")
    check("there is no endpoint" in t.call("endpoints").stdout, "none yet")


def test_a_full_upstream_is_waited_for(t):
    """Static addresses with a queue: who comes when it is full waits, and who would wait too long is told so at once."""
    g = Gateway(t, models=[{"name": "demo", "max_outstanding": 1, "queue": "1s"}]).start()
    slow = {"model": "demo", "max_tokens": 4, "messages": [{"role": "user", "content": json.dumps({"tokens": 4, "gap": 0.1})}]}
    answers = []
    both = [threading.Thread(target=lambda: answers.append(g.post(slow)[0])) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    check(answers == [200, 200], str(answers))
    stuck = dict(slow, messages=[{"role": "user", "content": json.dumps({"tokens": 2, "gap": 3})}], stream=True)
    stream = g.stream(stuck)
    stream.event()
    began = time.monotonic()
    status, headers, answer = g.post(slow)
    check((status, answer["error"]["code"]) == (503, "overloaded") and int(headers["retry-after"]) > 0, str(answer))
    check(0.9 < time.monotonic() - began < 10, "after its second")
    g.terminate()


def test_llama_cpp_from_plan_to_explanation(t):
    python = server_python()
    weights = random_gguf(t)
    t.up()
    g = Gateway(t).start()
    plan_of(t, python, EXAMPLES / "serve_gguf.py", weights, "{port}", "--slots", "2", "--context", "512", "--name", "{name}", plan=PLAN.replace("concurrency: 2", "requests_per_second: 1"))
    t.call("deploy", "chat.yaml", "--endpoint", "--least", "0", "--most", "2")
    wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    status, _, answer = g.post(chat(8), timeout=120)
    check(status == 200 and answer["usage"]["completion_tokens"] > 0, str(answer))
    ready(t)
    # Four times as long as planned.
    asked = 0
    while asked < 12:
        events = g.stream(chat(8, ignore_eos=True, messages=[{"role": "user", "content": " ".join(f"{asked * 97 + i:05}" for i in range(40))}])).rest()
        check(events[-1] == "[DONE]", str(events[-2:]))
        asked += 1
    told = wait_for("they are seen", lambda: (lambda e: e if e["requests"] >= 12 else None)(t.json("explain", "chat")))
    check(told["evidence"]["prompt_mean"] > 200 and told["evidence"]["ttft_p95_s"] > 0, str(told["evidence"]))
    figures = {each["figure"]: each for each in told["figures"]}
    check({"ttft p95", "tpot p95"} <= set(figures), str(figures))
    if any(each["worse"] for each in told["figures"]):
        check("long-prompts" in [cause["cause"] for cause in told["causes"]], str(told["causes"]))
    t.call("endpoints", "stop", "chat")
    wait_for("it is stopped", lambda: described(t)["state"] == "stopped")
    check(g.terminate() == 0, "exit")


if __name__ == "__main__":
    main(dict(globals()))
