#!/usr/bin/env python3
"""llama.cpp's server without compiling it: OpenAI's API with streams, /metrics, /slots and /health.

    python3 -m venv V && V/bin/pip install xllamacpp==2026.10.11549
    V/bin/python examples/serve-tiny/serve_gguf.py MODEL.gguf PORT [--slots 4] [--context 512] [--name stoker-tiny]

Ends with SIGTERM or SIGINT. PORT 0: any; the line "listening URL" says which."""
import argparse
import os
import signal

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("port", type=int)
parser.add_argument("--slots", type=int, default=4)
parser.add_argument("--context", type=int, default=512, help="tokens of one slot")
parser.add_argument("--name", default="stoker-tiny")
parser.add_argument("--threads", type=int, default=1)
options = parser.parse_args()
signals = {signal.SIGTERM, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before the server makes its threads: none of them takes the signal
parameters = xllamacpp.CommonParams()
parameters.model.path = options.model
parameters.hostnames = ["127.0.0.1"]
parameters.port = options.port
parameters.n_parallel = options.slots
parameters.n_ctx = options.context * options.slots
parameters.cpuparams.n_threads = options.threads
parameters.warmup = False
parameters.endpoint_metrics = True
parameters.model_alias = {options.name}
server = xllamacpp.Server(parameters)
print("listening", server.listening_address, flush=True)
signal.sigwait(signals)
os._exit(0)  # the library's own end waits for streams that nobody reads any more
