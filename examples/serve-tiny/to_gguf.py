#!/usr/bin/env python3
"""The weights of a tiny training as a GGUF file that llama.cpp's server loads.

    python3 examples/serve-tiny/to_gguf.py FOLDER MODEL.gguf     what train.py left: config.json and model.pt (needs PyTorch)
    python3 examples/serve-tiny/to_gguf.py --random MODEL.gguf   random weights of the same shape, for tests of protocols
A number behind that is the longest context that the server may give it, beyond what it was trained with.

Vocabulary: <unk> <s> </s> and the 256 bytes, as a SentencePiece byte vocabulary. The space stands as U+2581, because
llama.cpp escapes spaces before it looks them up. The file is written here, by its specification (ggml-org/ggml docs/gguf.md,
version 3), so that nothing has to be installed for it."""
import array
import json
import os
import random
import struct
import sys

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, TENSOR_F16 = 0, 1
PLACES = {"embedding.weight": "token_embd.weight", "norm.weight": "output_norm.weight", "head.weight": "output.weight"}
PARTS = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output",
         "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, value, of=None):
    out = text(key) + struct.pack("<I", kind)
    if kind == ARRAY:
        out += struct.pack("<IQ", of, len(value))
        return out + (b"".join(map(text, value)) if of == STRING else struct.pack(f"<{len(value)}{'if'[of == F32]}", *value))
    if kind == STRING:
        return out + text(value)
    return out + struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)


def write_gguf(path, entries, tensors):
    """tensors: (name, dimensions with the fastest first, TENSOR_F32 or TENSOR_F16, bytes)"""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)) + b"".join(entries)
    offset = 0
    for name, dimensions, kind, data in tensors:
        head += text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    with open(path + ".part", "wb") as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for _, _, _, data in tensors:
            out.write(data + bytes(-len(data) % ALIGNMENT))
    os.replace(path + ".part", path)


def entries_of(dim, layers, heads, ffn, context, name):
    tokens, kinds = [b"<unk>", b"<s>", b"</s>"], [2, 3, 3]  # unknown, control, control
    for byte in range(256):
        tokens.append("\u2581".encode() if byte == 0x20 else b"<0x%02X>" % byte)
        kinds.append(1 if byte == 0x20 else 6)  # normal, byte
    template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    return [entry("general.architecture", STRING, "llama"), entry("general.name", STRING, name),
            entry("general.file_type", U32, 1), entry("llama.context_length", U32, context),
            entry("llama.embedding_length", U32, dim), entry("llama.block_count", U32, layers),
            entry("llama.feed_forward_length", U32, ffn), entry("llama.attention.head_count", U32, heads),
            entry("llama.attention.head_count_kv", U32, heads),
            entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
            entry("llama.rope.dimension_count", U32, dim // heads), entry("llama.rope.freq_base", F32, 10000.0),
            entry("llama.vocab_size", U32, len(tokens)), entry("tokenizer.ggml.model", STRING, "llama"),
            entry("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
            entry("tokenizer.ggml.scores", ARRAY, [0.0] * len(tokens), F32),
            entry("tokenizer.ggml.token_type", ARRAY, kinds, I32), entry("tokenizer.ggml.unknown_token_id", U32, 0),
            entry("tokenizer.ggml.bos_token_id", U32, 1), entry("tokenizer.ggml.eos_token_id", U32, 2),
            entry("tokenizer.ggml.add_bos_token", BOOL, False), entry("tokenizer.ggml.add_space_prefix", BOOL, False),
            entry("tokenizer.chat_template", STRING, template)]


def place_of(name):
    if name in PLACES:
        return PLACES[name]
    _, layer, part, _ = name.split(".")
    return f"blk.{layer}.{PARTS[part]}.weight"


def of_training(folder, path, context=None):
    import torch
    with open(os.path.join(folder, "config.json")) as stream:
        config = json.load(stream)
    state = torch.load(os.path.join(folder, "model.pt"), map_location="cpu")["model"]
    tensors = []
    for name, weight in state.items():
        weight = weight.detach()
        half = weight.dim() == 2
        data = (weight.half() if half else weight.float()).contiguous().numpy().tobytes()
        tensors.append((place_of(name), list(reversed(weight.shape)), TENSOR_F16 if half else TENSOR_F32, data))
    ffn = state["blocks.0.gate.weight"].shape[0]
    write_gguf(path, entries_of(config["dim"], config["layers"], config["heads"], ffn, context or config["ctx"], "stoker-tiny"), tensors)


def of_chance(path, dim=128, layers=2, heads=4, context=512):
    """Nothing that it says makes sense, and it says it at the speed of one that does."""
    ffn = (dim * 8 // 3 + 31) // 32 * 32
    draw = random.Random(1)

    def matrix(place, rows, columns):
        # Half precision of values in +-1/16: sign and exponent drawn, mantissa random; no numpy needed.
        data = array.array("H", (draw.getrandbits(1) << 15 | draw.randint(8, 10) << 10 | draw.getrandbits(10)
                                 for _ in range(rows * columns)))
        if sys.byteorder == "big":
            data.byteswap()
        return place, [columns, rows], TENSOR_F16, data.tobytes()

    def norm(place):
        return place, [dim], TENSOR_F32, struct.pack("<f", 1.0) * dim

    tensors = [matrix("token_embd.weight", 259, dim), norm("output_norm.weight"), matrix("output.weight", 259, dim)]
    for i in range(layers):
        tensors += [norm(f"blk.{i}.attn_norm.weight"), norm(f"blk.{i}.ffn_norm.weight")]
        tensors += [matrix(f"blk.{i}.{part}.weight", dim, dim) for part in ("attn_q", "attn_k", "attn_v", "attn_output")]
        tensors += [matrix(f"blk.{i}.ffn_gate.weight", ffn, dim), matrix(f"blk.{i}.ffn_up.weight", ffn, dim),
                    matrix(f"blk.{i}.ffn_down.weight", dim, ffn)]
    write_gguf(path, entries_of(dim, layers, heads, ffn, context, "stoker-random"), tensors)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not all(word.isdigit() for word in sys.argv[3:]):
        sys.exit(__doc__)
    longest = {"context": int(sys.argv[3])} if len(sys.argv) == 4 else {}
    if sys.argv[1] == "--random":
        of_chance(sys.argv[2], **longest)
    else:
        of_training(sys.argv[1], sys.argv[2], **longest)
    print(f"{sys.argv[2]}: {os.path.getsize(sys.argv[2]) / 1e6:.1f} MB")
