"""A registry of models: pushes and pulls killed at any moment, Azure Blob by Azurite, and replicas of llama.cpp's server that
start from a version of it.

    python3 tests/e2e/models_test.py --stoker build/release/stoker [NAME...]"""

import hashlib
import json
import os
import pathlib
import random
import struct
import subprocess
import time

import storage_test
from bench_serve_test import EXAMPLES, random_gguf, server_python
from endpoint_test import PLAN, chat, described, plan_of, ready
from gateway_harness import Gateway
from harness import check, main, wait_for

MIB = 1 << 20


def safetensors(path, seed, size):
    """One tensor of random bytes, so that no two chunks are the same."""
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(rng.randbytes(min(MIB, size - at)) for at in range(0, size, MIB)))
    return path


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def killed_until_done(t, words, rng, longest_s, kills):
    """Starts the same command again and again, kills it after a while each time, and lets the last one end."""
    for _ in range(kills):
        process = subprocess.Popen([t.binary, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, **t.environment))
        try:
            process.wait(rng.uniform(0, longest_s))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_a_push_and_a_pull_that_are_killed_go_on_and_lose_nothing(t):
    base = pathlib.Path(t.base)
    source = safetensors(base / "big" / "model.safetensors", 1, 300 * MIB)
    (source.parent / "config.json").write_text("{}")
    t.environment.update(STOKER_MODELS=f"file://{base}/registry", STOKER_MODEL_CACHE=str(base / "cache"))
    rng = random.Random()
    began = time.monotonic()
    t.json("models", "push", "warm", str(safetensors(base / "warm.safetensors", 2, 300 * MIB)))
    longest_s = time.monotonic() - began
    killed_until_done(t, ["models", "push", "big", str(source.parent)], rng, longest_s, 12)
    pushed = t.json("models", "push", "big", str(source.parent))
    check(pushed["ref"] == "big@1", f"one version, and no second one of the same bytes: {pushed['ref']}")
    check(pushed["sent_bytes"] + pushed["shared_bytes"] == pushed["bytes"], str(pushed))
    check(t.json("models", "verify", "big")["problems"] == [], "every chunk is what was pushed")
    names = [entry["ref"] for entry in t.json("models", "list")["models"]]
    check(names == ["big@1", "warm@1"], str(names))
    # What a push left that was killed keeps nobody from removing, a day later; today it says who.
    killed_until_done(t, ["models", "pull", "big"], rng, longest_s, 12)
    pulled = t.json("models", "pull", "big")
    check(digest(pathlib.Path(pulled["folder"]) / "model.safetensors") == digest(source), "it comes back byte for byte")
    check(not list((base / "cache").glob("*.part")), "nothing half is left")
    check(t.json("models", "pull", "big")["was_there"], "a second pull fetches nothing")
    check(t.call("models", "show", "big", "--file", "config.json").stdout == "{}", "one small file of it")


def test_a_registry_in_azure_gives_back_what_was_pushed(t):
    try:
        store = storage_test.store_for(t, "azure")
    except storage_test.Skip as reason:
        print(f"SKIPPED: {reason}", flush=True)
        return
    base = pathlib.Path(t.base)
    source = safetensors(base / "one.safetensors", 3, 70 * MIB)
    t.environment.update(STOKER_MODELS=store.url, STOKER_MODEL_CACHE=str(base / "cache"))
    pushed = t.json("models", "push", "one", str(source), "--note", "of azure")
    check(pushed["ref"] == "one@1" and pushed["sent_bytes"] == source.stat().st_size, str(pushed))
    check(t.json("models", "push", "one", str(source))["was_there"], "the same bytes are no new version")
    folder = pathlib.Path(t.json("models", "pull", "one@1")["folder"])
    check(digest(folder / "one.safetensors") == digest(source), "it comes back byte for byte")
    check(t.json("models", "verify", "one@1")["problems"] == [], "whole")
    # A stranger's key is told, and nothing is kept by half.
    wrong = dict(t.environment, AZURE_STORAGE_KEY="d3Jvbmc=")
    said = subprocess.run([t.binary, "models", "list"], env=dict(os.environ, **wrong), capture_output=True, text=True, timeout=60)
    check(said.returncode == 3 and "d3Jvbmc" not in said.stderr, said.stderr)
    removed = t.json("models", "remove", "one@1")
    check(removed["chunks"] == 3, str(removed))
    check(t.json("models", "list")["models"] == [], "it is gone")
    check(t.json("models", "push", "one", str(source))["ref"] == "one@2", "its number is not given again")


def test_replicas_start_from_a_version_of_the_registry(t):
    python = server_python()
    weights = random_gguf(t)
    base = pathlib.Path(t.base)
    t.environment.update(STOKER_MODELS=f"file://{base}/registry", STOKER_MODEL_CACHE=str(base / "cache"))
    t.json("models", "push", "tiny", str(weights))
    t.up()
    g = Gateway(t).start()
    server = [python, EXAMPLES / "serve_gguf.py", "{weights}", "{port}", "--slots", "2", "--context", "512", "--name", "{name}"]
    plan_of(t, *server, plan=PLAN.replace("concurrency: 2", "requests_per_second: 1"))
    t.call("deploy", "chat.yaml", "--weights", "tiny", "--least", "0", "--most", "1")
    wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
    status, _, answer = g.post(chat(8), timeout=120)
    check(status == 200 and answer["usage"]["completion_tokens"] > 0, str(answer))
    ready(t)
    # A newer version changes nothing of the revision that serves; nobody takes the weights from under it.
    other = base / "other.gguf"
    subprocess.run(["python3", str(EXAMPLES / "to_gguf.py"), "--random", str(other)], check=True, capture_output=True, timeout=120)
    changed = bytearray(other.read_bytes())
    changed[-3] ^= 1
    other.write_bytes(changed)
    check(t.json("models", "push", "tiny", str(other))["ref"] == "tiny@2", "another version")
    cache = t.json("models", "cache", "--cache-limit", "1kB")
    check([entry["ref"] for entry in cache["models"]] == ["tiny@1"] and cache["models"][0]["in_use"] and cache["removed"] == [], str(cache))
    # The same file again is the newest version: another revision.
    check(t.json("deploy", "chat.yaml", "--weights", "tiny@1")["changed"] is False, "tiny@1 is what serves")
    check(t.json("deploy", "chat.yaml", "--weights", "tiny")["revision"] == 2, "tiny@2 is a revision of its own")
    ready(t, revision=2)
    status, _, answer = g.post(chat(8), timeout=120)
    check(status == 200, str(answer))
    # Weights of another shape than was planned, and a command that does not take them.
    t.write("other.yaml", pathlib.Path(t.work, "chat.yaml").read_text().replace("layers: 2", "layers: 4"))
    said = t.call("deploy", "other.yaml", "--weights", "tiny", exit=2)
    check("has 2 layers of 128" in said.stderr, said.stderr)
    plan_of(t, "python3", "-m", "http.server", "{port}", name="none")
    said = t.call("deploy", "none.yaml", "--weights", "tiny", exit=2)
    check("{weights}" in said.stderr, said.stderr)
    t.call("endpoints", "stop", "chat")
    wait_for("it is stopped", lambda: described(t)["state"] == "stopped")
    wait_for("nobody uses it", lambda: not any(entry["in_use"] for entry in t.json("models", "cache")["models"]))
    check(t.json("models", "cache", "--cache-limit", "1kB")["models"] == [], "what nobody uses goes when it has to")
    check(g.terminate() == 0, "exit")


if __name__ == "__main__":
    try:
        main(dict(globals()))
    finally:
        storage_test.close_shared()
