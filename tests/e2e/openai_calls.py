"""Every kind of call of the official client that the gateway has, made with it; prints one line of JSON for each.

    python openai_calls.py BASE_URL SECRET MODEL [CALL...]        exit 1 where one fails"""

import asyncio
import json
import sys

import openai

base_url, secret, model = sys.argv[1:4]
client = openai.OpenAI(base_url=base_url, api_key=secret, max_retries=0, timeout=60)
MESSAGES = [{"role": "user", "content": '{"tokens": 5}'}]


def chat():
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5)
    assert answer.choices[0].message.role == "assistant" and answer.usage.completion_tokens > 0
    return answer.usage.completion_tokens


def chat_raw():
    raw = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES, max_tokens=5)
    assert raw.headers["x-request-id"].startswith("req_")
    return raw.parse().usage.completion_tokens


def chat_stream():
    chunks = list(client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5, stream=True))
    # Nobody asked for usage: each chunk has a choice.
    assert all(chunk.choices for chunk in chunks) and chunks[-1].choices[0].finish_reason
    return len(chunks)


def chat_stream_usage():
    chunks = list(client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices
    return chunks[-1].usage.completion_tokens


def chat_stream_left():
    stream = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=50, stream=True)
    next(iter(stream))
    stream.close()
    return 1


def chat_async():
    async def run():
        async with openai.AsyncOpenAI(base_url=base_url, api_key=secret, max_retries=0) as other:
            answers = await asyncio.gather(*(other.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5) for _ in range(8)))
            stream = await other.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5, stream=True)
            return len(answers) + len([chunk async for chunk in stream])
    return asyncio.run(run())


def completion():
    return client.completions.create(model=model, prompt="one", max_tokens=4).usage.completion_tokens


def completion_stream():
    return len(list(client.completions.create(model=model, prompt="one", max_tokens=4, stream=True)))


def embeddings():
    answer = client.embeddings.create(model=model, input=["a", "b"], encoding_format="float")
    assert answer.data[0].embedding and answer.usage.prompt_tokens > 0
    return len(answer.data)


def responses_stream():
    events = list(client.responses.create(model=model, input="one", max_output_tokens=4, stream=True))
    assert events[-1].type in ("response.completed", "response.incomplete")
    return len(events)


def models():
    assert client.models.retrieve(model).id == model
    return len(list(client.models.list()))


def errors():
    seen = []
    for kind, call in ((openai.AuthenticationError, lambda: openai.OpenAI(base_url=base_url, api_key="stk_no", max_retries=0).models.list()),
                       (openai.NotFoundError, lambda: client.chat.completions.create(model="nothing", messages=MESSAGES)),
                       (openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=-1))):
        try:
            call()
            raise AssertionError(f"no {kind.__name__}")
        except kind as error:
            assert error.code and error.message
            assert kind is not openai.BadRequestError or error.param == "max_tokens", error.param
            seen.append(error.code)
    return seen


failed = 0
for call in (chat, chat_raw, chat_stream, chat_stream_usage, chat_stream_left, chat_async, completion, completion_stream, embeddings, responses_stream, models, errors):
    if len(sys.argv) > 4 and call.__name__ not in sys.argv[4:]:
        continue
    try:
        print(json.dumps({"call": call.__name__, "ok": True, "saw": call()}), flush=True)
    except Exception as error:
        failed += 1
        print(json.dumps({"call": call.__name__, "ok": False, "error": f"{type(error).__name__}: {error}"[:500]}), flush=True)
sys.exit(1 if failed else 0)
