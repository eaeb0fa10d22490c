#!/usr/bin/env python3
"""One chat with a server of the OpenAI API, without any library; prints the answer as it arrives.

    STOKER_API_KEY=... python3 examples/serve-tiny/chat.py URL MODEL "a prompt" [--tokens 64] [--whole] [--long] [--quiet] [--mark FILE]

The last line is JSON: the status, the tokens as the server counts them (or the pieces that came, where a stream broke), why it
ended, and how long it took. Exit 0: answered to its end; 1: not."""
import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("model")
parser.add_argument("prompt")
parser.add_argument("--tokens", type=int, default=64)
parser.add_argument("--whole", action="store_true", help="in one piece, no stream")
parser.add_argument("--long", action="store_true", help="does not end before --tokens (llama.cpp, vLLM, SGLang)")
parser.add_argument("--mark", help="this file is made when the first piece is there")
parser.add_argument("--quiet", action="store_true", help="only the last line")
options = parser.parse_args()
body = {"model": options.model, "max_tokens": options.tokens, "messages": [{"role": "user", "content": options.prompt}], "temperature": 0.8, "seed": 7}
if options.long:
    body["ignore_eos"] = True
if not options.whole:
    body.update(stream=True, stream_options={"include_usage": True})
began = time.monotonic()
told = {"status": 0, "tokens": 0, "pieces": 0, "ended": None, "error": None, "first_s": None, "waited": 0}


def say(text):
    if not options.quiet:
        sys.stdout.write("".join(c if c.isprintable() or c == "\n" else "?" for c in text))
        sys.stdout.flush()


def end(code):
    told["seconds"] = round(time.monotonic() - began, 3)
    print(("" if options.quiet else "\n") + json.dumps(told))
    sys.exit(code)


request = urllib.request.Request(options.url.rstrip("/") + "/v1/chat/completions", json.dumps(body).encode(),
                                 {"Authorization": "Bearer " + os.environ.get("STOKER_API_KEY", ""), "Content-Type": "application/json"})
try:
    answer = urllib.request.urlopen(request, timeout=120)
except urllib.error.HTTPError as error:
    told.update(status=error.code, error=json.loads(error.read()).get("error", {}).get("code"))
    end(1)
told["status"] = answer.status
if options.whole:
    whole = json.loads(answer.read())
    say(whole["choices"][0]["message"]["content"])
    told.update(tokens=whole["usage"]["completion_tokens"], ended=whole["choices"][0]["finish_reason"])
    end(0)
for line in answer:
    line = line.decode().rstrip("\r\n")
    if line.startswith(":"):
        told["waited"] += 1  # nobody is there yet
    if not line.startswith("data:"):
        continue
    data = line[5:].strip()
    if data == "[DONE]":
        end(0)
    event = json.loads(data)
    if event.get("error"):
        told["error"] = event["error"]["code"]
        end(1)
    if event.get("usage"):
        told["tokens"] = event["usage"]["completion_tokens"]
    for choice in event.get("choices", []):
        text = choice.get("delta", {}).get("content") or ""
        if text:
            told["pieces"] += 1
            if options.mark and told["pieces"] == 1:
                open(options.mark, "w").close()
            told["first_s"] = told["first_s"] or round(time.monotonic() - began, 3)
            say(text)
        told["ended"] = choice.get("finish_reason") or told["ended"]
end(1)
