"""Tokenizers of every shape that is counted, trained on texts of this tree with the reference (PyPI's tokenizers), and how many tokens
it makes of texts by chance: python tokens_reference.py FOLDER SEED TEXTS. Writes NAME.json each, texts.jsonl and counts.json."""

import glob
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = [pathlib.Path(f).read_text(encoding="utf-8") for f in sorted(glob.glob(f"{ROOT}/docs/guides/[a-g]*.md") + glob.glob(f"{ROOT}/src/serve/w*/*.cpp"))]
CORPUS += ["語学と文章を分かち書きする。日本語の文。" * 50, "Größe, Straße, élève, naïve. " * 50, "Привет мир, как дела? " * 50, "안녕하세요 세계 " * 50,
           "emoji 😀👍🏽👨‍👩‍👧 " * 30]
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + SUFFIX + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + SUFFIX + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def trained(cut, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = cut
    if normalizer:
        tokenizer.normalizer = normalizer
    of_bytes = "ByteLevel" in str(cut)
    special = ["<|end|>", "<unk>"] + ([f"<0x{i:02X}>" for i in range(256)] if model.get("byte_fallback") else [])
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if of_bytes else [], special_tokens=special, show_progress=False, limit_alphabet=120))
    return tokenizer


def tokenizers():
    def isolated(expression):
        return pre_tokenizers.Split(Regex(expression), "isolated")
    sequence, of_bytes = pre_tokenizers.Sequence, pre_tokenizers.ByteLevel
    plain = of_bytes(add_prefix_space=False, use_regex=False)
    blank = normalizers.Replace(" ", "▁")
    return {
        "gpt2": trained(of_bytes(add_prefix_space=False)),
        "gpt2-prefix": trained(of_bytes(add_prefix_space=True)),
        "llama3": trained(sequence([isolated(LLAMA3), plain]), ignore_merges=True),
        "o200k": trained(sequence([isolated(O200K), plain])),
        "deepseek": trained(sequence([isolated(e) for e in DEEPSEEK] + [plain])),
        "starcoder": trained(sequence([pre_tokenizers.Digits(individual_digits=True), of_bytes(add_prefix_space=False)])),
        "metaspace": trained(pre_tokenizers.Metaspace(), unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        "metaspace-first": trained(pre_tokenizers.Metaspace(prepend_scheme="first"), unk_token="<unk>"),
        "gemma": trained(pre_tokenizers.Split(" ", "merged_with_previous"), blank, unk_token="<unk>", byte_fallback=True),
        "llama2": trained(pre_tokenizers.Split("\n", "isolated"), normalizers.Sequence([normalizers.Prepend("▁"), blank]),
                          unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        "punctuation": trained(sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits()]),
                               unk_token="<unk>"),
        "unknown-dropped": trained(pre_tokenizers.Whitespace()),
    }


def texts(chance, count):
    # U+180E is white space to one library of expressions, and to the other no more.
    assigned = [chr(c) for c in range(0x20000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co") and c != 0x180E]
    words = " ".join(CORPUS[:40]).split(" ")
    odd = [" ", "  ", "\n", "\r\n", "\t", "a", "B", "'s", "'RE", "12", "3", "é", "語", "。", "😀", "<|end|>", "ſ", "İ", "\u00a0", "\u3000", "_", "-", "word", " Word", "e\u0301", "▁"]
    for _ in range(count):
        kind = chance.random()
        if kind < 0.4:
            text = " ".join(chance.choice(words) for _ in range(chance.randint(0, 60)))
        else:
            text = "".join(chance.choice(assigned if kind < 0.7 else odd) for _ in range(chance.randint(0, 50)))
        yield unicodedata.normalize("NFC", text)


def main(folder, seed, count):
    drawn = list(texts(random.Random(seed), count))
    folder = pathlib.Path(folder)
    (folder / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in drawn))
    counts = {}
    for name, tokenizer in tokenizers().items():
        tokenizer.save(str(folder / f"{name}.json"))
        counts[name] = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in drawn]
    (folder / "counts.json").write_text(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
