"""Why an endpoint is slower than its plan, produced on purpose: llama.cpp's server behind stoker serve, each cause once planted and
once not, and what `stoker explain ENDPOINT` says.

    python3 bench/serve/causes.py --stoker build/release/stoker [NAME...]

right: the planted cause is told first (of queueing behind more clients than planned the load itself, too). later: it is told, not first. silent: nothing is told. wrong: only others are. A healthy twin
is silent when nothing is told; where other work keeps this machine busy, `cpu-taken` is true of both, and is left out of both and
counted by itself. The plan is for this machine (`stoker bench cpu`), so that the twin is held against what it can do. The last line
is JSON."""

import argparse
import json
import os
import pathlib
import signal
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from bench_serve_test import EXAMPLES, random_gguf, server_python  # noqa: E402
from gateway_harness import Gateway  # noqa: E402
from harness import Stoker, wait_for  # noqa: E402

PLAN = """version: 1
kind: inference
model: {{family: llama, layers: 2, hidden: 128, heads: 4, vocab: 259, ffn: 352}}
traffic: {{{traffic}, prompt_tokens: 64, output_tokens: 48}}
precision: fp16
where: {{cloud: this-machine}}
framework: llama.cpp
objective: {{survive_one_replica_lost: false}}
run: {{command: {command}, cpus: 1}}
"""


class Scene:
    """What is planned, what is started, what is asked, and what is done to it meanwhile."""

    def __init__(self, cause, traffic="concurrency: 2", slots=2, replicas=(1, 1), clients=2, prompt=56, answer=48, requests=24, pause=0.0, idle=None, wrap=None, meanwhile=None):
        self.__dict__.update(locals())


def scenes():
    return {
        "queueing": (Scene("queueing", clients=12, requests=700), Scene("queueing", requests=200)),
        "long-prompts": (Scene("long-prompts", prompt=440), Scene("long-prompts")),
        "batch-small": (Scene("batch-small", traffic="concurrency: 8", slots=1, clients=8, requests=400),
                        Scene("batch-small", traffic="concurrency: 8", slots=8, clients=8, requests=400)),
        "cold-starts": (Scene("cold-starts", replicas=(0, 1), idle="3s", clients=3, requests=12, pause=9.0),
                        Scene("cold-starts", replicas=(1, 1), clients=3, requests=12, pause=9.0)),
        "replica-unlike": (Scene("replica-unlike", traffic="concurrency: 4", replicas=(2, 2), clients=4, requests=1200, meanwhile=slow_down),
                           Scene("replica-unlike", traffic="concurrency: 4", replicas=(2, 2), clients=4, requests=1200)),
        "network": (Scene("network", wrap="0.03"), Scene("network", wrap="0")),
    }


def slow_down(t, over):
    """One replica's server runs a quarter of the time."""
    replica = t.json("endpoints", "describe", "chat")["status"]["replicas"][0]
    pid = t.describe(replica["run"])["attempts"][-1]["ranks"][0]["pid"]
    while not over.is_set():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.06)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)


def ask_all(g, scene):
    left, lock, failed = list(range(scene.requests)), threading.Lock(), []

    def client():
        while True:
            with lock:
                if not left:
                    return
                number = left.pop()
            words = " ".join(f"{number * 7919 + i:05}"[-5:] for i in range(max(1, scene.prompt // 6)))
            try:
                stream = g.stream({"model": "chat", "max_tokens": scene.answer, "ignore_eos": True, "messages": [{"role": "user", "content": words}]})
                if stream.status != 200 or stream.rest()[-1] != "[DONE]":
                    failed.append(stream.status)
            except OSError as error:
                failed.append(str(error))
            if scene.pause:
                time.sleep(scene.pause)
    clients = [threading.Thread(target=client) for _ in range(scene.clients)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    return failed


def play(binary, scene):
    t = Stoker(os.path.abspath(binary))
    try:
        weights = random_gguf(t)
        t.call("bench", "cpu", "--quick")
        t.up()
        g = Gateway(t).start()
        command = [server_python(), str(EXAMPLES / "serve_gguf.py"), weights, "{port}", "--slots", str(scene.slots), "--context", "1024", "--name", "{name}"]
        if scene.wrap:
            command = [sys.executable, str(ROOT / "bench" / "serve" / "far.py"), "{port}", scene.wrap, *command]
        t.write("chat.yaml", PLAN.format(traffic=scene.traffic, command=json.dumps(command)))
        more = ["--idle", scene.idle] if scene.idle else []
        t.json("deploy", "chat.yaml", "--endpoint", "--least", str(scene.replicas[0]), "--most", str(scene.replicas[1]), *more)
        wait_for("the gateway knows it", lambda: "chat" in [m["id"] for m in g.get("/v1/models")[1]["data"]])
        if scene.replicas[0]:
            wait_for("its replicas are ready", lambda: (t.json("endpoints", "describe", "chat")["status"] or {}).get("ready") == scene.replicas[0])
        over = threading.Event()
        beside = threading.Thread(target=scene.meanwhile or (lambda *_: None), args=(t, over))
        beside.start()
        failed = ask_all(g, scene)
        over.set()
        beside.join()
        told = wait_for("all are seen", lambda: (lambda e: e if e["requests"] + len(failed) >= scene.requests else None)(t.json("explain", "chat")))
        t.call("endpoints", "stop", "chat")
        g.terminate()
        return told, failed
    finally:
        t.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rows = []
    for name, (planted, twin) in scenes().items():
        if options.names and name not in options.names:
            continue
        for healthy, scene in ((False, planted), (True, twin)):
            told, failed = play(options.stoker, scene)
            all_told = [each["cause"] for each in told["causes"]]
            causes = [each for each in all_told if each != "cpu-taken"]
            if healthy:
                verdict = "silent" if not causes else "wrong"
            else:
                verdict = "right" if causes[:1] == [name] or (name, causes[:1]) == ("queueing", ["more-load"]) else "later" if name in causes else "silent" if not causes else "wrong"
            rows.append({"cause": name, "healthy": healthy, "verdict": verdict, "told": all_told, "failed": len(failed), "worse": [f["figure"] for f in told["figures"] if f["worse"]],
                         "load": round(os.getloadavg()[0], 1)})
            print(f"{name:16} {'twin   ' if healthy else 'planted'} {verdict:7} told {', '.join(all_told) or 'nothing'}; worse than planned: {', '.join(rows[-1]['worse']) or 'nothing'}; "
                  f"{len(failed)} failed; load {rows[-1]['load']}", flush=True)
            if options.verbose:
                print(json.dumps(told, indent=1))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
