"""An upstream that answers in the forms of engines, as their documentation and sources have them (read in November 2026): what differs
between them is where usage stands, of what it is, and how tools and thoughts are written. `user` of the body is JSON that says which
engine, and what it writes: texts (one for each choice), thought, tool, hidden (tokens that nobody sees), ends_after (chunks)."""

import json

from fake_upstream import Upstream

ENGINES = ("llama.cpp", "vLLM", "SGLang", "TGI", "TensorRT-LLM", "Triton")
SAYS_NOTHING = "Triton"  # its front end has no usage of streams
TOOL, ARGUMENTS = "weather", {"city": "Łódź"}


def tokens_of(text):
    return len(text.encode())  # as the tokenizer of the tests counts


class Engine(Upstream):
    def answer(self, client, head, body):
        order, path = json.loads(body.get("user") or "{}"), head.split(" ")[1]
        if "answer" in order:
            return self.whole(client, order["answer"], order.get("status", 200))
        engine = order["engine"]
        written = [dict(text=t, thought=order.get("thought", ""), tool=order.get("tool", False)) for t in order["texts"]]
        chat = path.endswith("/chat/completions")
        if not body.get("stream"):
            return self.whole(client, self.in_one_piece(engine, written, order, body, chat))
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number, event in enumerate(self.events(engine, written, order, body, chat)):
            if number == order.get("ends_after", -1):
                return False
            data = event.encode()
            client.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        client.sendall(b"0\r\n\r\n")
        return True

    @staticmethod
    def tokens(one):
        called = tokens_of(TOOL) + tokens_of(json.dumps(ARGUMENTS, ensure_ascii=False)) if one["tool"] else 0
        return tokens_of(one["text"]) + tokens_of(one["thought"]) + called

    def usage(self, engine, written, order):
        out = sum(self.tokens(one) for one in written) + order.get("hidden", 0)
        used = {"prompt_tokens": order["prompt"], "completion_tokens": out, "total_tokens": order["prompt"] + out}
        if engine == "SGLang":
            used.update(prompt_tokens_details=None, reasoning_tokens=order.get("hidden", 0))
        elif order.get("hidden"):
            used["completion_tokens_details"] = {"reasoning_tokens": order["hidden"]}
        return used

    def in_one_piece(self, engine, written, order, body, chat):
        choices = []
        for i, one in enumerate(written):
            choice = {"index": i, "finish_reason": order.get("finish", "stop"), "logprobs": None}
            if not chat:
                choices.append(dict(choice, text=one["text"]))
                continue
            message = {"role": "assistant", "content": one["text"]}
            if one["thought"]:
                message["reasoning_content"] = one["thought"]
                if engine == "vLLM":
                    message["reasoning"] = one["thought"]  # under both names
            if one["tool"]:
                arguments = ARGUMENTS if engine == "TGI" else json.dumps(ARGUMENTS, ensure_ascii=False)
                message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": TOOL, "arguments": arguments}}]
            choices.append(dict(choice, message=message))
        answer = {"id": "a", "object": "chat.completion" if chat else "text_completion", "created": 1, "model": body["model"], "choices": choices}
        if engine == "llama.cpp":  # merged from the answers of its slots; what stands beside the choices is the first one's
            answer["usage"] = self.usage(engine, written[:1], order)
            answer["timings"] = {"prompt_n": 1, "predicted_n": answer["usage"]["completion_tokens"], "predicted_ms": 1.5}
        else:
            answer["usage"] = self.usage(engine, written, order) if engine != SAYS_NOTHING else None
        return answer

    def events(self, engine, written, order, body, chat):
        base = {"id": "a", "object": "chat.completion.chunk" if chat else "text_completion", "created": 1, "model": body["model"]}
        asked = (body.get("stream_options") or {}).get("include_usage")
        grown = [0] * len(written)

        def chunk(index, piece, finish=None, **more):
            choice = {"index": index, "finish_reason": finish}
            choice.update({"delta": piece} if chat else {"text": piece.get("content") or "", "logprobs": None})
            event = dict(base, choices=[choice], **more)
            if asked and "usage" not in event and engine in ("vLLM", "SGLang", "TensorRT-LLM"):
                event["usage"] = None
            if asked and order.get("growing"):  # stream_options.continuous_usage_stats
                event["usage"] = {"prompt_tokens": order["prompt"], "completion_tokens": grown[index], "total_tokens": order["prompt"] + grown[index]}
            text = json.dumps(event, ensure_ascii=engine == "TGI")
            if order.get("lines"):  # the same event in several lines
                return "data: " + json.dumps(event, indent=1).replace("\n", "\ndata: ") + "\n\n"
            return f"data: {text}\n\n" if engine != "SGLang" else f"data:{text}\r\n\r\n"

        pieces = []
        for i, one in enumerate(written):
            mine = [(i, {"role": "assistant", "content": ""}, 0)] if chat else []
            if chat and one["thought"]:
                mine.append((i, {"reasoning_content": one["thought"]}, tokens_of(one["thought"])))
            mine += [(i, {"content": one["text"][at:at + 3]}, tokens_of(one["text"][at:at + 3])) for at in range(0, len(one["text"]), 3)]
            if chat and one["tool"]:
                arguments = json.dumps(ARGUMENTS, ensure_ascii=False)
                call = {"index": 0, "id": "c", "type": "function", "function": {"name": TOOL, "arguments": ""}}
                rest = {"index": 0, "function": {"name": None, "arguments": arguments}}
                for each, tokens in ((call, tokens_of(TOOL)), (rest, tokens_of(arguments))):
                    mine.append((i, {"tool_calls": each if engine == "TGI" else [each]}, tokens))
            pieces.append(mine)
        while any(pieces):  # they take turns
            for mine in pieces:
                if not mine:
                    continue
                index, piece, tokens = mine.pop(0)
                grown[index] += tokens
                yield chunk(index, piece)
                if not mine:
                    yield chunk(index, {}, order.get("finish", "stop"))
                    if engine == "llama.cpp" and asked:  # each slot ends by itself
                        used = self.usage(engine, [written[index]], order)
                        yield "data: " + json.dumps(dict(base, choices=[], usage=used, timings={"predicted_n": used["completion_tokens"]})) + "\n\n"
        if asked and engine not in ("llama.cpp", SAYS_NOTHING):
            yield "data: " + json.dumps(dict(base, choices=[], usage=self.usage(engine, written, order))) + "\n\n"
        yield "data: [DONE]\n\n"
