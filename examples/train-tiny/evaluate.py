#!/usr/bin/python3
"""Last step of examples/pipeline.yaml: how well a trained model predicts a text that it has not seen.

  evaluate.py FOLDER TEXT [--at-most BITS]      FOLDER has model.pt and config.json, as train.py writes them

Prints bits per byte; exit code 1 when they are more than --at-most, 2 when something cannot be read.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import math
import sys

import torch

import model as models


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("text")
    parser.add_argument("--at-most", type=float, default=8.0, help="bits per byte; 8 is what no model at all needs")
    options = parser.parse_args()
    try:
        with open(os.path.join(options.folder, "config.json")) as file:
            about = json.load(file)
        saved = torch.load(os.path.join(options.folder, "model.pt"), map_location="cpu")
        with open(options.text, "rb") as file:
            tokens = models.encode(file.read())
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    torch.set_num_threads(1)
    model = models.Model(about["dim"], about["layers"], about["heads"], about["ctx"])
    model.load_state_dict(saved["model"])
    size = about["ctx"]
    rows = tokens[:len(tokens) // (size + 1) * (size + 1)].view(-1, size + 1)
    if len(rows) == 0:
        parser.error(f"{options.text} is shorter than one example")
    with torch.no_grad():
        parts = [(model(part[:, :-1], part[:, 1:]).item(), len(part)) for part in rows.split(32)]
    bits = sum(loss * count for loss, count in parts) / len(rows) / math.log(2)
    print(f"{bits:.3f} bits per byte on {rows[:, 1:].numel():,} bytes not seen before; at most {options.at_most:g} wanted")
    sys.exit(0 if bits <= options.at_most else 1)


main()
