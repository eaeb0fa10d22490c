"""Every kind of answer, chunk and error that the gateway gives is valid against the schemas that OpenAI publishes (tests/openai, by
tools/openai_schemas.py). The upstream's own answers are valid, so whatever is not is the gateway's doing: what it says itself, and
what it takes out of a stream."""

import http.client
import json
import pathlib
import time

import jsonschema

from batch_test import begin, ended, lines_of, upload
from fake_upstream import Upstream
from gateway_harness import Gateway, ask
from harness import check, main, wait_for

PUBLISHED = json.loads((pathlib.Path(__file__).resolve().parents[1] / "openai" / "schemas.json").read_text())["schemas"]


class Strict(Upstream):
    """Answers as OpenAI's own server does, member by member."""

    def whole(self, client, answer, status=200, extra=""):
        for choice in answer.get("choices", ()):
            choice["logprobs"] = None
            if "message" in choice:
                choice["message"].update(refusal=None, annotations=[])
        return super().whole(client, answer, status, extra)

    def stream(self, client, path, body, order, tokens, usage):
        if not path.endswith("/responses"):
            return super().stream(client, path, body, order, tokens, usage)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "error": None, "incomplete_details": None,
                    "instructions": None, "metadata": {}, "model": body["model"], "output": [], "parallel_tool_calls": True, "temperature": 1,
                    "tool_choice": "auto", "tools": [], "top_p": 1}

        def event(kind, **more):
            data = f"event: {kind}\ndata: {json.dumps(dict({'type': kind}, **more))}\n\n".encode()
            client.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        event("response.created", sequence_number=0, response=response)
        for i in range(tokens):
            if body.get("user") == "dies":
                time.sleep(0.1)
                if i == 2:
                    return False
            event("response.output_text.delta", sequence_number=i + 1, item_id="m1", output_index=0, content_index=0, delta=self.word, logprobs=[])
        event("response.completed", sequence_number=tokens + 1, response=dict(response, status="completed", usage={
            "input_tokens": 7, "output_tokens": tokens, "total_tokens": 7 + tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}))
        client.sendall(b"0\r\n\r\n")
        return True


def with_null(value):
    """`nullable` is of an older OpenAPI, and stands in the published file all the same."""
    if isinstance(value, list):
        return [with_null(v) for v in value]
    if not isinstance(value, dict):
        return value
    bare = {k: with_null(v) for k, v in value.items() if k not in ("nullable", "discriminator")}
    return {"anyOf": [bare, {"type": "null"}]} if value.get("nullable") is True else bare


def judge():
    document = {"components": {"schemas": with_null(PUBLISHED)}}

    def valid(name, value):
        errors = list(jsonschema.Draft202012Validator(dict(document, **{"$ref": f"#/components/schemas/{name}"})).iter_errors(value))
        check(not errors, f"{name}: {[e.message[:300] + ' at ' + '/'.join(map(str, e.absolute_path)) for e in errors[:3]]} in {json.dumps(value)[:600]}")
    return valid


def test_answers_and_chunks_are_valid(t):
    valid = judge()
    g = Gateway(t, [Strict()], more="batches: {at_once: 2}\n").start()
    for path, name, body in (("/v1/chat/completions", "CreateChatCompletionResponse", ask(3)), ("/v1/completions", "CreateCompletionResponse", {"model": "demo", "prompt": "a"}),
                             ("/v1/embeddings", "CreateEmbeddingResponse", {"model": "demo", "input": "a"}),
                             ("/v1/images/generations", "ImagesResponse", {"model": "demo", "prompt": "a", "n": 2})):
        status, _, answer = g.post(body, path)
        check(status == 200, f"{path}: {status} {answer}")
        valid(name, answer)
    # Asked for usage or not, each chunk is one; so is that from which usage was taken.
    for options in ({}, {"stream_options": {"include_usage": True}}):
        for path, name, body in (("/v1/chat/completions", "CreateChatCompletionStreamResponse", ask(4)), ("/v1/completions", "CreateCompletionResponse", {"model": "demo", "prompt": "a"})):
            events = g.stream(dict(body, **options), path=path).rest()
            check(events[-1] == "[DONE]" and len(events) > 4, str(events))
            for event in map(json.loads, events[:-1]):
                if path == "/v1/completions":  # whose chunks are published without the two nulls that OpenAI's server sends
                    event = {k: v for k, v in event.items() if (k, v) != ("usage", None)}
                    event["choices"] = [dict(c, finish_reason=c["finish_reason"] or "stop") for c in event["choices"]]
                valid(name, event)
    kinds = {"response.created": "ResponseCreatedEvent", "response.output_text.delta": "ResponseTextDeltaEvent", "response.completed": "ResponseCompletedEvent"}
    events = [json.loads(e) for e in g.stream({"model": "demo", "input": "a"}, path="/v1/responses").rest()]
    check({e["type"] for e in events} == set(kinds), str(events))
    for event in events:
        valid(kinds[event["type"]], event)
    valid("ListModelsResponse", g.get("/v1/models")[1])
    valid("Model", g.get("/v1/models/demo")[1])
    file = upload(g, lines_of(2))[2]
    valid("OpenAIFile", file)
    valid("ListFilesResponse", g.get("/v1/files")[1])
    batch = begin(g, lines_of(2))
    valid("Batch", g.get(f"/v1/batches/{batch}")[1])
    valid("Batch", ended(g, batch))
    valid("ListBatchesResponse", g.get("/v1/batches")[1])
    connection = http.client.HTTPConnection("127.0.0.1", g.port, timeout=30)
    connection.request("DELETE", f"/v1/files/{file['id']}", headers={"Authorization": "Bearer " + g.secret("anna")})
    valid("DeleteFileResponse", json.loads(connection.getresponse().read()))


def test_errors_are_valid_wherever_they_come(t):
    valid = judge()
    g = Gateway(t, [Strict()], keys=[{"name": "anna"}, {"name": "ben", "requests_per_minute": 1, "request_burst": 1}, {"name": "old", "revoked": True},
                                     {"name": "eye", "role": "viewer"}, {"name": "carl", "budget": "$0"}], more="max_body: 4KiB\n").start()
    g.post(ask(), key="ben")
    cases = ((ask(), {"key": "nobody"}, 401), (ask(), {"key": "old"}, 401), (ask(), {"key": "eye"}, 403), (ask(model="other"), {}, 404), (ask(), {"key": "ben"}, 429),
             (ask(max_tokens=9), {"key": "carl"}, 429), ("{", {}, 400), ('{"model": "demo", "model": "demo"}', {}, 400), (ask(user="x" * 5000), {}, 413),
             (ask(), {"path": "/v1/other"}, 404), (ask(stream="yes"), {}, 400), (ask(broken="short"), {}, 502), (ask(status=429), {}, 429), (ask(), {}, 503))
    for body, how, expected in cases:
        status, headers, answer = g.post(body, **how)
        check(status == expected and headers["content-type"] == "application/json", f"{how} {status} {headers} {answer}")
        valid("ErrorResponse", answer)
    # In a stream, where it can only be an event; of another gateway, since the upstream of this one is rested.
    g.terminate()
    g.start()
    events = wait_for("a stream dies after something was shown", lambda: g.stream(ask(9, die_after=3, gap=0.1)).rest(), 60)
    check("[DONE]" not in events, str(events))
    for event in events[:-1]:
        valid("CreateChatCompletionStreamResponse", json.loads(event))
    valid("ErrorResponse", json.loads(events[-1]))
    dies = {"model": "demo", "input": "a", "user": "dies"}
    events = [json.loads(e) for e in wait_for("and one of responses", lambda: g.stream(dies, path="/v1/responses").rest(), 60)]
    check(events[-1]["type"] == "error", str(events))
    valid("ResponseErrorEvent", events[-1])


if __name__ == "__main__":
    main(dict(globals()))
