"""What a stranger meets at the door: clients of Azure and of Anthropic, an address that is nearly right, a body that is encoded, and
errors in words that say whose they are."""

import gzip
import http.client
import json
import os
import re
import subprocess
import time

from gateway_clients_test import client_python
from gateway_harness import Gateway, ask, equal
from harness import check, main

CALLS = """
import json, sys
import anthropic, openai
url, secret = sys.argv[1:3]
words = [{"role": "user", "content": '{"tokens": 5}'}]
azure = openai.AzureOpenAI(azure_endpoint=url, api_key=secret, api_version="2024-10-21", max_retries=0)
named = openai.AzureOpenAI(azure_endpoint=url, azure_deployment="org/demo", api_key=secret, api_version="2024-10-21", max_retries=0)
messages = anthropic.Anthropic(base_url=url, api_key=secret, max_retries=0)
message = messages.messages.create(model="org/demo", max_tokens=5, messages=words)
def refused():
    try:
        messages.messages.create(model="nothing", max_tokens=5, messages=words)
    except anthropic.NotFoundError as error:
        return error.request_id or ""
models = messages.models.list()
print(json.dumps({
    "azure": azure.chat.completions.create(model="org/demo", messages=words).usage.completion_tokens,
    "azure, named by its path": named.chat.completions.create(model="whatever", messages=words).usage.completion_tokens,
    "azure, a stream": len(list(azure.chat.completions.create(model="org/demo", messages=words, stream=True))),
    "azure, embeddings": azure.embeddings.create(model="org/demo", input="a").usage.prompt_tokens,
    "azure, models": [each.id for each in azure.models.list()],
    "azure, responses": [each.type for each in azure.responses.create(model="org/demo", input="a", max_output_tokens=3, stream=True)][-1],
    "message": message.usage.output_tokens, "its id": message._request_id, "id of a refusal": refused(),
    "models": [[each.id, each.type, each.display_name, each.created_at.year > 2020] for each in models.data],
    "more models": models.has_more}))
"""


# Whoever has an AzureOpenAI or an Anthropic client changes an address and a key, and finds what it is used to.
def test_clients_of_azure_and_of_anthropic(t):
    python = client_python()
    g = Gateway(t, models=[{"name": "org/demo"}]).start()
    done = subprocess.run([python, "-c", CALLS, g.told["url"], "stk_anna"], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, done.stderr[-2000:])
    seen = json.loads(done.stdout)
    for name in ("its id", "id of a refusal"):
        check(seen.pop(name).startswith("req_"), f"{name}: {done.stdout}")
    equal(seen, {"azure": 5, "azure, named by its path": 5, "azure, a stream": 6, "azure, embeddings": 7, "azure, models": ["org/demo"],
                 "azure, responses": "response.completed", "message": 5, "models": [["org/demo", "model", "org/demo", True]], "more models": False}, "seen")
    # What is Azure's alone goes to nobody.
    check(not any("api-version" in head or "deployments" in head for head in g.upstreams[0].heads), str(g.upstreams[0].heads))
    g.settled(6)


# A path decides, as Azure has it: the body may name no model, or another one.
def test_a_deployment_in_the_path_is_the_model(t):
    g = Gateway(t, models=[{"name": "demo", "upstream_model": "inner"}]).start()
    for more in ({}, {"model": "other"}):
        body = {k: v for k, v in ask(tokens=2).items() if k != "model"}
        status, _, answer = g.post(dict(body, **more), "/openai/deployments/demo/chat/completions?api-version=2024-10-21", headers={"api-key": "stk_anna"})
        equal((status, answer["usage"]["completion_tokens"]), (200, 2), f"{more}: {answer}")
        equal(g.upstreams[0].requests[-1]["model"], "inner", "the upstream is asked for")
    equal(g.post({}, "/openai/deployments/nothing/embeddings")[0], 404, "a deployment that there is not")


# The first mistake that everybody makes is told with its remedy.
def test_an_address_that_is_nearly_right(t):
    g = Gateway(t).start()
    for path, wanted in (("/chat/completions", "; /v1/chat/completions is there"), ("/v1/v1/chat/completions", "; /v1/chat/completions is there"),
                         ("/v1/chat/completions/", "; /v1/chat/completions is there"), ("/v1/moderations", "/v1/moderations")):
        status, _, answer = g.post(ask(), path)
        equal(status, 404, path)
        check(answer["error"]["message"].endswith(wanted), str(answer))
    status, headers, answer = g.post(gzip.compress(json.dumps(ask()).encode()), headers={"Content-Encoding": "gzip"})
    equal((status, answer["error"]["code"], headers["accept-encoding"]), (415, "unsupported_encoding", "identity"), "a body that is encoded")
    equal(g.post(ask(), "/v1/chat/completions?beta=true")[0], 200, "with a query")
    check(g.upstreams[0].heads[-1].startswith("POST /v1/chat/completions?beta=true HTTP/1.1"), g.upstreams[0].heads[-1])


# Too long a body is told in the words that its client reads, also before anything of it was read.
def test_a_body_that_is_too_long_is_told_in_the_clients_words(t):
    g = Gateway(t, more="max_body: 64KiB\n").start()
    status, _, answer = g.post(ask(pad="x" * 70_000), "/v1/messages")
    equal((status, answer["type"], answer["error"]["type"]), (413, "error", "request_too_large"), str(answer))
    status, _, answer = g.post(ask(pad="x" * 70_000))
    equal((status, answer["error"]["code"]), (413, "request_too_large"), str(answer))


# Some servers say in plain words what is wrong with a body. It is the caller's to mend, and no failure of the service.
def test_what_an_upstream_refuses_in_plain_words(t):
    g = Gateway(t, models=[{"name": "demo", "objective": {"availability": 99.9}}]).start()
    for stream in (False, True):
        status, _, answer = g.post(ask(status=422, says="missing field `inputs`", stream=stream))
        equal((status, answer["error"]["type"], answer["error"]["message"]), (422, "invalid_request_error", "missing field `inputs`"), str(answer))
    equal(g.post(ask(status=400, says=""))[0], 400, "without words")
    status, _, answer = g.post(ask(status=500, says="Internal Server Error"))
    equal((status, answer["error"]["message"]), (502, "Internal Server Error"), "a failure is one all the same")
    row = g.settled(4)
    equal((row["outcomes"], float(row["usd"])), ({"rejected": 3, "upstream_error": 1}, 0), "what they cost")


# An upstream that says when to come back is not asked before, however it writes it; and those who come meanwhile hear why.
def test_an_upstream_says_when_to_come_back(t):
    g = Gateway(t).start()
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 300))
    status, headers, _ = g.post(ask(status=429, retry_after=later))
    check(status == 429 and 200 < int(headers["retry-after"]) <= 300, f"{status} {headers}")
    status, headers, answer = g.post(ask())
    equal((status, answer["error"]["code"], answer["error"]["message"]), (503, "overloaded", "every replica of this model says that it is busy"), str(answer))
    check(int(headers["retry-after"]) > 1, str(headers))
    equal(len(g.upstreams[0].requests), 1, "requests that reached it")


# Who is refused hears whose limit it was: a key that has done little cannot know what its project did.
def test_a_refusal_says_whose_limit_it_was(t):
    g = Gateway(t, keys=[{"name": "anna", "project": "team"}, {"name": "bob", "requests_per_minute": 1, "request_burst": 1},
                         {"name": "carl", "budget": 0.000001}, {"name": "dora", "tokens_per_minute": 600, "token_burst": 600}],
                more="projects:\n  - {name: team, requests_per_minute: 1, request_burst: 1}\n").start()
    equal(g.post(ask())[0], 200, "the first")
    status, headers, answer = g.post(ask())
    equal(status, 429, "the second")
    check(answer["error"]["message"].startswith("all keys of the project 'team' together may make 1 request a minute;"), str(answer))
    check("x-should-retry" not in headers, str(headers))
    g.post(ask(), key="bob")
    check(g.post(ask(), key="bob")[2]["error"]["message"].startswith("this key may make 1 request a minute;"), "of its own")
    status, headers, answer = g.post(ask(), key="carl")
    equal((status, answer["error"]["message"], headers["x-should-retry"]), (429, "the budget of this key does not cover this request", "false"), str(answer))
    status, _, answer = g.post(ask(), key="dora")
    check(status == 400 and answer["error"]["message"].endswith("ask for a smaller max_tokens, since it names none and 1024 are set aside"), str(answer))


# Whoever asks why something was refused has a name to ask by, also where nothing came to the account.
def test_every_refusal_has_a_name(t):
    g = Gateway(t).start()
    for status, answer in ((401, g.post(ask(), key="nobody")), (404, g.post(ask(), path="/v1/nothing")), (405, g.post(ask(), path="/v1/models")),
                           (415, g.post(ask(), headers={"Content-Encoding": "br"})), (404, g.post(ask(model="nothing"))), (400, g.post("{"))):
        equal(answer[0], status, str(answer))
        check(re.fullmatch(r"req_[0-9A-HJKMNP-TV-Z]{26}", answer[1].get("x-request-id", "")), f"{status}: {answer[1]}")


# A page in a browser asks with OPTIONS, without a key, whether it may ask at all.
def test_pages_of_the_file_may_ask_from_a_browser(t):
    g = Gateway(t, more="origins: ['https://chat.example']\n").start()

    def ask_first(origin, path="/v1/chat/completions"):
        connection = http.client.HTTPConnection("127.0.0.1", g.port, timeout=20)
        connection.request("OPTIONS", path, headers=dict({"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-stainless-lang"},
                                                         **({"Origin": origin} if origin else {})))
        answer = connection.getresponse()
        body = answer.read()
        heads = {name.lower(): value for name, value in answer.getheaders()}
        equal((answer.status, body, "content-length" in heads), (204, b"", False), "no body")
        # The connection is good for what comes next.
        connection.request("POST", path, json.dumps(ask()), dict({"Authorization": "Bearer stk_anna"}, **({"Origin": origin} if origin else {})))
        answer = connection.getresponse()
        answer.read()
        equal(answer.status, 200, "the request itself")
        connection.close()
        return heads, answer.getheader("access-control-allow-origin")
    heads, told = ask_first("https://chat.example")
    equal((heads["access-control-allow-origin"], heads["access-control-allow-headers"], told),
          ("https://chat.example", "authorization,x-stainless-lang", "https://chat.example"), "one that may")
    check("POST" in heads["access-control-allow-methods"], str(heads))
    for origin in ("https://other.example", None):
        heads, told = ask_first(origin)
        check(not any(name.startswith("access-control") for name in heads) and told is None, f"{origin}: {heads}")
    # A refusal can be read by the page, too; a stream as well.
    equal(g.post(ask(), key="nobody", headers={"Origin": "https://chat.example"})[1]["access-control-allow-origin"], "https://chat.example", "a refusal")
    equal(g.post(ask(stream=True), headers={"Origin": "https://chat.example"})[1]["access-control-allow-origin"], "https://chat.example", "a stream")
    # What comes behind it is not read without a key.
    check(b"connection: close" in g.raw(b"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{").lower(), "a body")
    bad = Gateway(t, more="origins: ['https://chat.example/', chat.example]\n", folder="bad")
    said = t.call("serve", "--config", os.path.join(bad.folder, "gateway.yaml"), exit=2).stderr
    equal(said.count("is nowhere that a web page comes from"), 2, said)


if __name__ == "__main__":
    main(dict(globals()))
