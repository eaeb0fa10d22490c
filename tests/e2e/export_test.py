#!/usr/bin/env python3
"""A run as one folder: everything that is known of it is in there, byte for byte, with its digest; of a graph its steps too."""
import hashlib
import json
import os

from harness import check, main

SCRIPT = ("for i in 1 2 3; do echo \"{\\\"step\\\": $i, \\\"loss\\\": 0.$i}\" >> $STOKER_METRICS_FILE; echo line $i; done; "
          "mkdir $STOKER_ARTIFACT_DIR/sub; head -c 9000000 /dev/urandom > $STOKER_ARTIFACT_DIR/sub/model.bin; "
          "echo a > \"$STOKER_ARTIFACT_DIR/a b%.txt\"")


def run_file(t, name, run):
    return t.write(name + ".yaml", json.dumps({"version": 1, "name": name, "run": dict(run) if "steps" in run else dict(run, cpus=0.1, memory="64MiB")}))


def text_of(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def proven(folder):
    """Its manifest, after every file was held against it."""
    manifest = json.loads(text_of(folder, "manifest.json"))
    there = {os.path.relpath(os.path.join(path, name), folder) for path, _, names in os.walk(folder) for name in names}
    check(there == {each["path"] for each in manifest["files"]} | {"manifest.json"}, f"{there}\n{manifest}")
    for each in manifest["files"]:
        with open(os.path.join(folder, each["path"]), "rb") as file:
            bytes_ = file.read()
        check((len(bytes_), hashlib.sha256(bytes_).hexdigest()) == (each["bytes"], each["sha256"]), str(each))
    return manifest


def test_a_run_with_all_that_it_left(t):
    t.up()
    run = t.call("submit", run_file(t, "small", {"command": ["sh", "-c", SCRIPT]})).stdout.strip()
    t.wait_state(run, "succeeded")
    to = os.path.join(t.work, "out")
    said = t.call("export", run, "--to", to).stdout
    check(said.startswith(f"{to}: ") and "MiB" in said, said)
    manifest = proven(to)
    check(manifest["missing"] == [], str(manifest["missing"]))
    check(json.loads(text_of(to, "run.json"))["run"]["state"] == "succeeded", "run.json")
    kinds = [json.loads(line)["kind"] for line in text_of(to, "events.jsonl").splitlines()]
    check(kinds[0] == "run.submitted" and len(kinds) >= 4, str(kinds))
    check(json.loads(text_of(to, "metrics.json"))["series"][0]["points"] == [[1, 0.1], [2, 0.2], [3, 0.3]], "metrics.json")
    check(text_of(to, "logs", "attempt-1", "rank-0.log") == "line 1\nline 2\nline 3\n", "the log")
    check(text_of(to, "artifacts", "a b%.txt") == "a\n", "a name that a URL has to quote")
    check(os.path.getsize(os.path.join(to, "artifacts", "sub", "model.bin")) == 9000000, "in two pieces")
    check("not empty" in t.call("export", run, "--to", to, exit=2).stderr, "written over")
    less = os.path.join(t.work, "less")
    t.call("export", "small", "--to", less, "--no-artifacts")
    check(not os.path.exists(os.path.join(less, "artifacts")), "they are there")
    check("no run has that name" in t.call("export", "nobody", exit=2).stderr, "a run that is none")


def test_without_a_server_and_of_a_graph(t):
    graph = {"steps": [{"name": "first", "command": ["echo", "one"]}, {"name": "second", "after": ["first"], "command": ["echo", "two"]}]}
    t.call("run", run_file(t, "graph", graph), limit_s=60)
    to = os.path.join(t.work, "out")
    told = json.loads(t.call("export", "graph", "--to", to, "-o", "json").stdout)
    check(proven(to) == told, str(told))
    for step, word in (("first", "one\n"), ("second", "two\n")):
        check(text_of(to, "steps", step, "logs", "attempt-1", "rank-0.log") == word, step)
    # The journal's events want a server: it is said, and the rest is there.
    check(any("events.jsonl" in each for each in told["missing"]), str(told["missing"]))


if __name__ == "__main__":
    main(globals())
