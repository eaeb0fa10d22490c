#!/usr/bin/python3
"""First step of examples/pipeline.yaml: splits a text into what is learned from and what is held out. The same text gives
the same split.

  prepare.py TEXT OUT        writes OUT/train.txt and OUT/held-out.txt
"""
import os
import sys

BLOCK, EVERY = 2048, 16  # bytes; every 16th block is held out


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: prepare.py TEXT OUT")
    source, out = sys.argv[1:]
    try:
        with open(source, "rb") as file:
            lines = [line.rstrip() for line in file.read().splitlines()]
        text = b"\n".join(line for line, before in zip(lines, [b""] + lines) if line or before) + b"\n"
        blocks = [text[at:at + BLOCK] for at in range(0, len(text), BLOCK)]
        parts = {"train.txt": [b for i, b in enumerate(blocks) if i % EVERY != EVERY - 1],
                 "held-out.txt": [b for i, b in enumerate(blocks) if i % EVERY == EVERY - 1]}
        os.makedirs(out, exist_ok=True)
        for name, content in parts.items():
            temporary = os.path.join(out, name + ".tmp")
            with open(temporary, "wb") as file:
                file.write(b"".join(content))
            os.replace(temporary, os.path.join(out, name))
            print(f"{name}: {sum(map(len, content)):,} bytes")
    except OSError as problem:
        sys.exit(f"error: {problem}")


main()
