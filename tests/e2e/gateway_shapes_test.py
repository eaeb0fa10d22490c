"""What is charged is what was delivered, in whatever form an engine says it: answers of six engines, drawn by seeds, in one piece and as
streams, for one and for several choices, with thoughts and tools, whole and cut."""

import json
import os
import random

from engine_shapes import ENGINES, SAYS_NOTHING, Engine, tokens_of
from gateway_harness import Gateway, ask, equal
from gateway_tokens_test import BYTES
from harness import check, main

PROMPT = "What is the weather?"
ALPHABET = "abc dé 語🙂"


def gateway(t, exact=True, models=None, folder=""):
    os.makedirs(os.path.join(t.work, folder), exist_ok=True)
    t.write(os.path.join(folder, "bytes.json"), json.dumps(BYTES))
    upstream = Engine()
    return Gateway(t, [upstream], models=models or [dict({"name": "demo"}, **({"tokenizer": "bytes.json"} if exact else {}))], folder=folder).start(), upstream


def drawn(rng):
    engine = rng.choice(ENGINES)
    choices = rng.choice((1, 1, 2, 3))
    order = {"engine": engine, "prompt": rng.randint(5, 90), "texts": ["".join(rng.choices(ALPHABET, k=rng.randint(20, 60))) for _ in range(choices)]}
    chat = rng.random() < 0.75
    if chat and rng.random() < 0.3:
        order["thought"] = "".join(rng.choices(ALPHABET, k=20))
    if chat and rng.random() < 0.3:
        order["tool"] = True
    if rng.random() < 0.2 and engine != SAYS_NOTHING and engine != "llama.cpp":
        order["hidden"] = 400  # thought and not shown
    stream = rng.random() < 0.6
    if stream and rng.random() < 0.2:
        order["lines"] = True
    if stream and engine in ("vLLM", "SGLang") and rng.random() < 0.4:
        order["growing"] = True
    body = {"model": "demo", "n": choices, "user": json.dumps(order)}
    body.update({"messages": [{"role": "user", "content": PROMPT}]} if chat else {"prompt": PROMPT})
    if stream and rng.random() < 0.5:
        body["stream_options"] = {"include_usage": True}
    return order, body, stream, "/v1/chat/completions" if chat else "/v1/completions"


def written(order):
    return sum(Engine.tokens(dict(text=text, thought=order.get("thought", ""), tool=order.get("tool", False))) for text in order["texts"])


def shown(events):
    """Tokens that a client saw of a stream."""
    tokens = 0
    for choice in (c for e in events if e != "[DONE]" for c in json.loads(e).get("choices", [])):
        delta = choice.get("delta") or {"content": choice.get("text")}
        calls = delta.get("tool_calls") or []
        for call in calls if isinstance(calls, list) else [calls]:
            tokens += tokens_of(call["function"].get("name") or "") + tokens_of(call["function"]["arguments"])
        tokens += tokens_of(delta.get("content") or "") + tokens_of(delta.get("reasoning_content") or "")
    return tokens


class Account:
    """What each request adds to it."""

    def __init__(self, g):
        self.g, self.requests, self.row = g, 0, {"tokens_in": 0, "tokens_out": 0, "drift": 0}

    def next(self):
        self.requests += 1
        before, row = self.row, self.g.settled(self.requests)
        self.row = {name: row[name] for name in before}
        return {name: self.row[name] - before[name] for name in before}


def test_an_answer_costs_what_was_delivered_whoever_wrote_it(t):
    g, _ = gateway(t)
    account, rng = Account(g), random.Random(20)
    for round_ in range(90):
        order, body, stream, path = drawn(rng)
        what = f"{round_}: {path} {'stream' if stream else 'whole'} {order}"
        if stream:
            events = g.stream(body, path=path).rest()
            equal(events[-1], "[DONE]", what)
            equal(shown(events), written(order), f"what was shown of {what}")
        else:
            equal(g.post(body, path)[0], 200, what)
        cost = account.next()
        equal(cost["tokens_out"], written(order) + order.get("hidden", 0), what)
        if order["engine"] != SAYS_NOTHING:
            equal(cost["tokens_in"], order["prompt"], what)
        check(cost["tokens_in"] > 0, what)


def test_a_stream_that_breaks_costs_what_came_of_each_answer(t):
    g, _ = gateway(t)
    account, rng = Account(g), random.Random(21)
    for round_ in range(40):
        order, body, _, path = drawn(rng)
        order.pop("hidden", None)
        order["ends_after"] = rng.randint(3, 30)
        body["user"] = json.dumps(order)
        stream = g.stream(body, path=path)
        events = stream.rest()
        what = f"{round_}: {path} {order}"
        cost = account.next()
        if stream.status != 200:  # it broke before anything of it was shown
            equal((stream.status, cost["tokens_out"]), (502, 0), what)
            continue
        check(events[-1] == "[DONE]" or "error" in json.loads(events[-1]), what)  # it may have ended before
        equal(cost["tokens_out"], shown(events[:-1]), what)


def test_without_a_tokenizer_what_is_told_of_one_answer_tells_of_the_others(t):
    g, _ = gateway(t, exact=False)
    account = Account(g)
    for stream in (False, True):
        for texts in (["0123456789" * 4, "0123456789" * 5], ["a" * 60, "", "b" * 30]):
            order = {"engine": "llama.cpp", "prompt": 11, "texts": texts}
            body = {"model": "demo", "n": len(texts), "messages": [{"role": "user", "content": PROMPT}], "user": json.dumps(order)}
            if stream:
                g.stream(body).rest()
            else:
                g.post(body)
            cost = account.next()
            equal((cost["tokens_in"], cost["tokens_out"]), (11, written(order)), f"{stream} {texts}")
    # Dense text is no second answer: one engine says two tokens for a letter, another a token for nine letters, and both say it of all.
    for text, told in (("漢" * 40, 160), ("    " * 90, 80)):
        order = {"answer": {"id": "a", "object": "chat.completion", "created": 1, "model": "demo", "usage": {"prompt_tokens": 11, "completion_tokens": told, "total_tokens": 11 + told},
                            "choices": [{"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} for i in range(2)]}}
        g.post({"model": "demo", "n": 2, "messages": [{"role": "user", "content": PROMPT}], "user": json.dumps(order)})
        equal(account.next()["tokens_out"], told, text[:4])


def test_an_upstream_that_says_far_less_than_it_wrote_is_not_believed_where_its_tokens_are_counted(t):
    for exact, cost in ((True, 200), (False, 10)):  # by bytes it may be a row of blanks
        g, _ = gateway(t, exact, folder=f"exact-{exact}")
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "demo", "usage": {"prompt_tokens": 11, "completion_tokens": 10, "total_tokens": 21},
                  "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x" * 200}}]}
        g.post({"model": "demo", "messages": [{"role": "user", "content": PROMPT}], "user": json.dumps({"answer": answer})})
        row = g.settled(1)
        equal((row["tokens_out"], row["drift"]), (cost, int(exact)), f"exact: {exact}")


def test_two_prompts_in_one_body_are_read_and_answered_twice(t):
    g, _ = gateway(t)
    account = Account(g)
    for stream in (False, True):
        order = {"engine": "llama.cpp", "prompt": 20, "texts": ["first answer", "the second one"]}
        body = {"model": "demo", "prompt": ["x" * 20, "y" * 20], "user": json.dumps(order)}
        if stream:
            g.stream(body, path="/v1/completions").rest()
        else:
            g.post(body, "/v1/completions")
        cost = account.next()
        equal(cost["tokens_out"], written(order), f"stream: {stream}")
        check(cost["tokens_in"] >= 40, f"{stream} {cost}")


def test_what_is_only_read_costs_what_was_read(t):
    g, _ = gateway(t)
    account = Account(g)

    def cost(path, answer, status=200, **body):
        equal(g.post(dict({"model": "demo", "user": json.dumps({"answer": answer, "status": status})}, **body), path)[0], status, path)
        return account.next()
    vector = {"object": "list", "model": "demo", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]}
    equal(cost("/v1/embeddings", dict(vector, usage={"prompt_tokens": 9, "total_tokens": 9}), input="x" * 30)["tokens_in"], 9, "told")
    for usage in ({}, {"prompt_tokens": 0, "total_tokens": 0}, None):
        check(cost("/v1/embeddings", dict(vector, usage=usage), input="x" * 30)["tokens_in"] >= 30, f"nobody reads nothing: {usage}")
    # SGLang ranks with a bare list.
    ranked = [{"score": 0.5, "index": i, "meta_info": {"id": "r", "prompt_tokens": 12 + i}} for i in range(2)]
    equal(cost("/v1/rerank", ranked, query="q", documents=["a", "b"])["tokens_in"], 25, "a list")
    equal(cost("/v1/rerank", {"id": "r", "results": [], "usage": {"total_tokens": 17}}, query="q", documents=["a", "b"])["tokens_in"], 17, "vLLM's")
    # What went wrong costs nothing, also where it is told with 200.
    for status in (200, 400, 422):
        spent = cost("/v1/chat/completions", {"error": {"message": "no", "type": "x", "param": None, "code": 400}}, status, messages=[{"role": "user", "content": "x" * 50}])
        equal((spent["tokens_in"], spent["tokens_out"]), (0, 0), f"{status}")


def test_what_an_upstream_refuses_reaches_the_client_as_it_came(t):
    g, _ = gateway(t)
    said = {"error": {"code": 400, "message": "Expected 'messages' to be an array", "type": "invalid_request_error", "n_ctx": 512}}
    for stream in (False, True):
        status, _, answer = g.post({"model": "demo", "stream": stream, "messages": [], "user": json.dumps({"answer": said, "status": 400})})
        equal((status, answer), (400, said), f"stream: {stream}")


def test_fewer_images_than_were_asked_for_cost_less(t):
    g, _ = gateway(t, models=[{"name": "demo", "price": {"input": 0, "output": 0, "image": 0.04}}])
    for sent in (3, 1):
        g.post({"model": "demo", "prompt": "a cat", "n": 3, "user": json.dumps({"answer": {"created": 1, "data": [{"b64_json": "AAAA"}] * sent}})}, "/v1/images/generations")
    row = g.settled(2)
    check("0.16" in json.dumps(row), f"four images: {row}")


# Some servers end a stream without [DONE]. The answer is whole where each part of it says why it ended, and broken where none does.
def test_a_stream_without_done_is_whole_where_it_says_why_it_ended(t):
    g = Gateway(t).start()
    for path in ("/v1/chat/completions", "/v1/completions"):
        events = g.stream(ask(tokens=3, undone=True), path=path).rest()
        equal((events[-1], "error" in "".join(events)), ("[DONE]", False), f"{path}: {events}")
    row = g.settled(2)
    equal((row["outcomes"], row["tokens_out"]), ({"ok": 2}, 6), "charged as told")
    # With a gap: what comes whole before anything was handed on is answered with a status, and there is no stream to look at.
    events = g.stream(ask(tokens=3, gap=0.1, undone=True, unfinished=True)).rest()
    check("error" in events[-1] and "[DONE]" not in events, str(events))
    # Of two answers one has not ended.
    events = g.stream(ask(tokens=3, gap=0.1, undone=True, n=2)).rest()
    check("error" in events[-1] and "[DONE]" not in events, str(events))
    equal(g.settled(4)["outcomes"], {"ok": 2, "upstream_error": 2}, "and the others")


if __name__ == "__main__":
    main(dict(globals()))
