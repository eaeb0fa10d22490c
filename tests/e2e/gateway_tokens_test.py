"""Tokens where no upstream says them: a stream that was cut is charged what it delivered, by the model's own tokenizer; and the counts
are those of the reference (PyPI's tokenizers, pinned; skipped where it cannot be had)."""

import json
import pathlib
import subprocess

from fake_upstream import Upstream
from pythons import pinned_python
from gateway_harness import Gateway, ask
from harness import check, main

HERE = pathlib.Path(__file__).resolve().parent
# Each byte is a token: what is counted can be checked by hand, and is far from four bytes a token.
LETTERS = {}
for number in range(256):
    LETTERS[number] = chr(number) if 0x21 <= number <= 0x7E or 0xA1 <= number <= 0xAC or number >= 0xAE else chr(256 + len([b for b in LETTERS if ord(LETTERS[b]) > 255]))
BYTES = {"added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
         "model": {"type": "BPE", "vocab": {letter: number for number, letter in LETTERS.items()}, "merges": []}}
TEMPLATE = 8  # of one message, until an upstream says what it is


def gateway(t, up):
    t.write("bytes.json", json.dumps(BYTES))
    return Gateway(t, [up], models=[{"name": "demo", "tokenizer": "bytes.json"}]).start()


def read_of(body):
    return len(body["messages"][-1]["content"].encode())


def shown_of(g, body):
    """Bytes that a client was shown of a stream that breaks: what its upstream sent last may be lost with it."""
    events = [json.loads(e) for e in g.stream(body).rest()]
    check(events and "error" in events[-1], str(events[-1:]))
    return sum(len((e["choices"][0]["delta"].get("content") or "").encode()) for e in events[:-1] if e.get("choices"))


def test_a_stream_that_was_cut_is_charged_what_it_delivered(t):
    word = "naïve 語! "
    g = gateway(t, Upstream(word))
    cut = ask(500, die_after=100, gap=0.005, usage=False)
    shown = shown_of(g, cut)
    row = g.settled(1)
    check(row["tokens_out"] == shown > 20 * len(word.encode()), f"{shown} were shown: {row}")
    check(row["tokens_in"] == read_of(cut) + TEMPLATE, f"what was read: {row}")
    # What the template adds is learnt from an upstream that says it.
    told = ask(3, prompt=1000, lie=3 * len(word.encode()))
    g.stream(told).rest()
    before = g.settled(2)
    check(before["tokens_out"] == row["tokens_out"] + 3 * len(word.encode()), f"usage that is told is taken: {before}")
    again = ask(500, die_after=30, gap=0.005, usage=False)
    shown = shown_of(g, again)
    row = g.settled(3)
    check(row["tokens_in"] - before["tokens_in"] == read_of(again) + 1000 - read_of(told), f"{before} {row}")
    check(row["tokens_out"] - before["tokens_out"] == shown, f"{shown} were shown: {before} {row}")
    # What is metered by the request reads nothing that anybody pays for.
    check(g.post({"model": "demo", "messages": []}, "/v1/messages/count_tokens")[0] == 200, "counted by the upstream")
    after = g.settled(4)
    check((after["tokens_in"], after["tokens_out"]) == (row["tokens_in"], row["tokens_out"]), f"{row} {after}")


def test_a_prompt_that_nobody_counted_is_charged_by_those_that_were(t):
    """Without a tokenizer, and of a stream that was cut: neither what was set aside for it, nor a guess for all models."""
    g = Gateway(t, [Upstream()]).start()

    def body(**order):
        return {"model": "demo", "messages": [{"role": "user", "content": json.dumps(dict(order, prompt=500, pad="x" * 4000))}]}
    check(all(g.post(body(tokens=1))[0] == 200 for _ in range(60)), "answers")
    before = g.settled(60)
    shown = shown_of(g, body(tokens=500, die_after=100, gap=0.005, usage=False))
    check(shown > 0, "something was shown")
    charged = g.settled(61)["tokens_in"] - before["tokens_in"]
    check(450 <= charged <= 550, f"{charged} for about 500")


def test_images_are_no_text_and_the_account_says_that_nobody_counted_them(t):
    g = gateway(t, Upstream())
    body = ask(50, die_after=30, gap=0.005, usage=False)
    text = body["messages"][-1]["content"]
    body["messages"][-1]["content"] = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}]
    body["messages"].append({"role": "user", "content": text})
    g.stream(body).rest()
    row = g.settled(1)
    check(row["tokens_in"] < len(text) + 40 and row["uncounted"] == 1, f"{row}")
    check("1 of them had images or sound" in t.call("serve", "account", "--ledger", "ledger").stdout, "the account says so")


def test_a_tokenizer_that_is_none_is_told_with_its_place(t):
    t.write("bytes.json", json.dumps(dict(BYTES, model={"type": "Unigram", "vocab": []})))
    Gateway(t, models=[{"name": "demo", "tokenizer": "bytes.json"}])
    said = t.call("serve", exit=2).stderr
    check("gateway.yaml:4" in said and "Unigram" in said and "bytes are counted" in said, said)


def test_counts_are_those_of_the_reference(t):
    python = pinned_python(HERE / "requirements_tokens.txt", "tokens-venv")
    folder = pathlib.Path(t.work)
    done = subprocess.run([python, str(HERE / "tokens_reference.py"), str(folder), "3", "600"], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, done.stderr[-3000:])
    drawn = [json.loads(line) for line in (folder / "texts.jsonl").read_text().splitlines()]
    for name, counts in json.loads((folder / "counts.json").read_text()).items():
        ours = [int(line) for line in t.call("serve", "tokens", f"{name}.json", "texts.jsonl", "--lines").stdout.split()]
        wrong = [(drawn[i], ours[i], counts[i]) for i in range(len(drawn)) if ours[i] != counts[i]]
        check(len(ours) == len(counts) and not wrong, f"{name}: {len(wrong)} of {len(drawn)} differ: {min(wrong, key=lambda w: len(w[0]), default='')}")


if __name__ == "__main__":
    main(dict(globals()))
