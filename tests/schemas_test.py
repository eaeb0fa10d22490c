#!/usr/bin/env python3
"""The published schemas hold for what Stoker ships and prints: an editor that uses them must not mark a good file.

usage: tests/schemas_test.py STOKER SOURCE_DIR
Every example and template is valid by `stoker schema workload`, spoilt copies are not, and `plan -o json` is valid by
`stoker schema plan`.
"""
import glob
import json
import subprocess
import sys

import jsonschema
import yaml


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120).stdout


def problems(schema, value):
    return [f"{list(e.absolute_path)}: {e.message[:160]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(value)]


def main():
    stoker, source = sys.argv[1:3]
    failures = []
    workload = json.loads(run(stoker, "schema", "workload"))
    plan = json.loads(run(stoker, "schema", "plan"))
    files = [f for f in sorted(glob.glob(source + "/examples/**/*.yaml", recursive=True) + glob.glob(source + "/data/templates/*.yaml"))
             if not f.endswith("-nodes.yaml")]
    for path in files:
        value = yaml.safe_load(open(path))
        failures += [f"{path}: {p}" for p in problems(workload, value)]
        if not problems(workload, {**value, "no_such_key": 1}):
            failures.append(f"{path}: an unknown key is accepted by the schema")
    for name in ("llama-3-8b", "llama-3-70b-serve", "notebook"):
        printed = json.loads(run(stoker, "plan", f"{source}/examples/{name}.yaml", "-o", "json"))
        failures += [f"plan of {name}: {p}" for p in problems(plan, printed)]
        as_yaml = yaml.safe_load(run(stoker, "plan", f"{source}/examples/{name}.yaml", "-o", "yaml"))
        if as_yaml["verdict"] != printed["verdict"]:
            failures.append(f"plan of {name}: -o yaml and -o json differ")
    print("\n".join(failures[:40]))
    print(f"{len(files) + 3} files, {len(failures)} failures")
    sys.exit(1 if failures or len(files) < 20 else 0)


if __name__ == "__main__":
    main()
