#!/usr/bin/env python3
"""The published schemas hold for what Stoker ships and prints: an editor that uses them must not mark a good file.

usage: tests/schemas_test.py STOKER SOURCE_DIR
Every example and template is valid by `stoker schema workload`, spoilt copies are not, and `plan -o json` is valid by
`stoker schema plan`. Mutated copies show that the schema accepts whatever the reader accepts, and that both refuse a key
that nobody knows; a seed names the copy that shows otherwise.
"""
import concurrent.futures
import copy
import glob
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import jsonschema
import yaml

MUTATIONS = 160
# Right and wrong, in the forms that people use.
VALUES = [0, 1, 2, 8, 64, 4096, 0.5, 1e9, -1, "", None, True, False, [], {}, [None], ["x"], {"a": 1}, "8", "1k", "7B", "7 B", "1_000",
          "1.5 billion", "2 Million", "7e9", "1GB", "10GB/s", "1 gib", "64 MB", "90m", "1h30m", "14 days", "500ms", "$20k", "20 USD", "200 dollars",
          "$1.5M", "eastus", "East US", "eastus, westeurope", ["eastus"], "azure", "any", ["azure", "aws"], "BF16", "fp-16", "Full", "QLoRA", "adam_w",
          "Fine Tuning", "BATCH_INFERENCE", "training", "allowed", "ONLY", "llama-3-8b", 7000000000, "Standard_NC4as_T4_v3", ["Standard_ND96isr_H100_v5"],
          "H100-SXM", "eu", ["pytorch", "jupyter"], "premium ssd", "rmsnorm", "yes", "1y"]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120).stdout


def problems(schema, value):
    return [f"{list(e.absolute_path)}: {e.message[:160]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(value)]


def mappings(value):
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from mappings(each)


def keys_of(schema, path=()):
    """(path of the mapping, key) of all the schema knows."""
    for form in [schema] + schema.get("anyOf", []):
        for key, inner in form.get("properties", {}).items():
            yield path, key
            yield from keys_of(inner, path + (key,))


def respelled(rng, value):
    """The same or nearly so, as somebody else would write it."""
    if isinstance(value, bool) or value is None:
        return rng.choice([not value, None])
    if isinstance(value, (int, float)):
        return rng.choice([value * 2, value / 2, str(value), f" {value}", f"{value}k", f"{value} Thousand", float(value), [value]])
    if isinstance(value, str):
        return rng.choice([value.upper(), value.title(), value.replace("-", "_"), value.replace("-", " "), value + " ", [value], value[:-1], None])
    if isinstance(value, list):
        return rng.choice([", ".join(map(str, value)), value[:1], value * 2, []])
    return {**value, **{key: None for key in list(value)[:1]}}


def mutated(rng, value, keys):
    """A copy with one value written otherwise or replaced, or with one key more."""
    value = copy.deepcopy(value)
    kind = rng.random()
    if kind < 0.6:
        owner = rng.choice([m for m in mappings(value) if m])
        key = rng.choice([k for k in owner if k not in ("version", "kind")] or list(owner))
        owner[key] = respelled(rng, owner[key])
        return value
    if kind < 0.8:
        owner = rng.choice([m for m in mappings(value) if m])
        owner[rng.choice(list(owner))] = copy.deepcopy(rng.choice(VALUES))
        return value
    path, key = rng.choice(keys)
    owner = value
    for part in path:
        if not isinstance(owner.get(part), dict):
            owner[part] = {}
        owner = owner[part]
    owner[key] = copy.deepcopy(rng.choice(VALUES))
    return value


def reader_accepts(stoker, folder, name, value):
    """Exit 2 is a refusal; a plan that does not exist (1) is none."""
    path = os.path.join(folder, f"{name}.yaml")
    pathlib.Path(path).write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    done = subprocess.run([stoker, "plan", path, "--no-what-if", "--top", "1", "-q"], capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"{name}: exit {done.returncode}: {done.stderr[:300]}")
    return done.returncode != 2


def compare_mutations(stoker, source, schema, files):
    keys = list(keys_of(schema))
    originals = [yaml.safe_load(open(path)) for path in files]

    def one(seed):
        rng = random.Random(seed)
        value = mutated(rng, rng.choice(originals), keys)
        accepted = reader_accepts(stoker, folder, seed, value)
        found = problems(schema, value)
        failures = [f"seed {seed}: the reader accepts what the schema refuses: {found[:3]}: {value}"] if accepted and found else []
        if accepted and seed % 4 == 0:
            rng.choice(list(mappings(value)))["no_such_key"] = 1
            if not problems(schema, value):
                failures.append(f"seed {seed}: an unknown key is accepted by the schema: {value}")
            if reader_accepts(stoker, folder, f"{seed}-unknown", value):
                failures.append(f"seed {seed}: an unknown key is accepted by the reader: {value}")
        return accepted, failures

    with tempfile.TemporaryDirectory(prefix="schemas-") as folder:
        shutil.copy(f"{source}/examples/on-prem-nodes.yaml", folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            results = list(pool.map(one, range(MUTATIONS)))
    accepted = sum(1 for ok, _ in results if ok)
    failures = [line for _, lines in results for line in lines]
    if accepted < MUTATIONS // 4:
        failures.append(f"only {accepted} of {MUTATIONS} mutated files are accepted: the comparison says little")
    return accepted, failures


def main():
    stoker, source = sys.argv[1:3]
    failures = []
    workload = json.loads(run(stoker, "schema", "workload"))
    plan = json.loads(run(stoker, "schema", "plan"))
    files = [f for f in sorted(glob.glob(source + "/examples/**/*.yaml", recursive=True) + glob.glob(source + "/data/templates/*.yaml"))
             if not f.endswith(("-nodes.yaml", "/prices.yaml", "/server.yaml"))]  # lists, no workloads
    for path in files:
        value = yaml.safe_load(open(path))
        failures += [f"{path}: {p}" for p in problems(workload, value)]
        if not problems(workload, {**value, "no_such_key": 1}):
            failures.append(f"{path}: an unknown key is accepted by the schema")
        if not problems(workload, {k: v for k, v in value.items() if k != "kind"}):
            failures.append(f"{path}: a file without kind is accepted by the schema")
        # A file that names no version is of the first.
        failures += [f"{path} without version: {p}" for p in problems(workload, {k: v for k, v in value.items() if k != "version"})]
        if not problems(workload, {**value, "version": 2}):
            failures.append(f"{path}: version 2 is accepted by the schema")
    server = json.loads(run(stoker, "schema", "server"))
    # A day is a text in YAML 1.2, as editors and Stoker read it, and a date for PyYAML.
    value = json.loads(json.dumps(yaml.safe_load(open(f"{source}/examples/server.yaml")), default=str))
    failures += [f"server.yaml: {p}" for p in problems(server, value)]
    if not problems(server, {**value, "no_such_key": 1}) or not problems(server, {**value, "max_queued": 0}):
        failures.append("server.yaml: the schema accepts an unknown key or no queue")
    for name in ("llama-3-8b", "llama-3-70b-serve", "notebook"):
        printed = json.loads(run(stoker, "plan", f"{source}/examples/{name}.yaml", "-o", "json"))
        failures += [f"plan of {name}: {p}" for p in problems(plan, printed)]
        as_yaml = yaml.safe_load(run(stoker, "plan", f"{source}/examples/{name}.yaml", "-o", "yaml"))
        if as_yaml["verdict"] != printed["verdict"]:
            failures.append(f"plan of {name}: -o yaml and -o json differ")
    accepted, found = compare_mutations(stoker, source, workload, files)
    failures += found
    print("\n".join(failures[:40]))
    print(f"{len(files) + 3} files and {MUTATIONS} mutated ones, {accepted} of them good: {len(failures)} failures")
    sys.exit(1 if failures or len(files) < 20 else 0)


if __name__ == "__main__":
    main()
