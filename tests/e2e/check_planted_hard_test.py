"""Mistakes in hard spellings: a size behind variables, maps, loops and modules, a batch script that a shell writes, a chart's values. Beside
each stands its twin without the mistake. A user whose repository says the same thing in another way must be told, and a right one left alone.

    python3 tests/e2e/check_planted_hard_test.py --stoker BINARY --table [NAME...]"""

import argparse
import glob
import hashlib
import json
import os
import re
import sys

from harness import Stoker, check, main

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lint", "planted")
LEAST_RECALL, LEAST_PRECISION = 0.97, 0.99
POOL = {
    ".tf": '''resource "azurerm_kubernetes_cluster_node_pool" "gpu" {
  name                  = "gpu"
  kubernetes_cluster_id = var.cluster
  vm_size               = %s
  node_taints           = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled  = true
  min_count             = 0
  max_count             = 4
}''',
    ".bicep": '''resource theCluster 'Microsoft.ContainerService/managedClusters@2024-05-01' existing = { name: 'c' }
resource gpuPool 'Microsoft.ContainerService/managedClusters/agentPools@2024-05-01' = {
  parent: theCluster
  name: 'gpu'
  properties: {
    vmSize: %s
    mode: 'User'
    enableAutoScaling: true
    minCount: 0
    maxCount: 4
    nodeTaints: ['sku=gpu:NoSchedule']
  }
}'''}
POD = '''apiVersion: v1
kind: Pod
metadata: {name: t}
spec:
  containers:
    - name: t
      image: ghcr.io/acme/trainer:1.4.2
      resources: {limits: {nvidia.com/gpu: 1}}'''
CHART = "apiVersion: v2\nname: trainer\nversion: 0.1.0"


def arm(words):
    parts = re.fullmatch(r"(?:params=(?P<params>.*?) )?(?:vars=(?P<vars>.*?) )?size=(?P<size>.*)", words, re.S)
    return json.dumps({
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0",
        "parameters": json.loads(parts["params"] or "{}"), "variables": json.loads(parts["vars"] or "{}"),
        "resources": [{
            "type": "Microsoft.ContainerService/managedClusters/agentPools", "apiVersion": "2024-05-01", "name": "c/gpu",
            "properties": {"vmSize": json.loads(parts["size"]), "mode": "User", "enableAutoScaling": True, "minCount": 0, "maxCount": 4,
                           "nodeTaints": ["sku=gpu:NoSchedule"]}}]}, indent=1)


def expanded(path, text, twin):
    text = re.sub(r"‹([^¦›]*)¦([^›]*)›", r"\2" if twin else r"\1", text)

    def macro(match):
        name, _, words = match[1].partition(" ")
        if name == "pool":
            return POOL[os.path.splitext(path)[1]] % words.removeprefix("size=")
        return {"chart": lambda: CHART, "pod": lambda: POD, "arm": lambda: arm(words)}[name]()
    return re.sub(r"^<<(.+)>>$", macro, text, flags=re.M).strip("\n") + "\n"


def cases():
    for source in sorted(glob.glob(os.path.join(HERE, "*.txt"))):
        for block in re.split(r"^## ", open(source).read(), flags=re.M)[1:]:
            head, _, rest = block.partition("\n")
            name, rule, *more = head.split()
            allowed = {word for option in more for word in option.removeprefix("allow=").split(",")}
            files = re.split(r"^=== (.+)\n", rest, flags=re.M)[1:]
            yield name, rule, allowed, list(zip(files[::2], files[1::2]))


def held_out(name):
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def findings(t, folder, files, twin):
    for path, text in files:
        place = os.path.join(t.work, folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:
            file.write(expanded(path, text, twin))
    done = t.call("check", folder, "--format", "json", "--as-of", "2026-11-20", exit=None)
    check(done.returncode in (0, 1), done)
    return json.loads(done.stdout)["findings"]


def measure(t, names=()):
    """Of each half: planted, found, said rightly, said in all, and the lines that tell what is wrong."""
    halves = {False: [0, 0, 0, 0, []], True: [0, 0, 0, 0, []]}
    for name, rule, allowed, files in cases():
        if names and not any(word in name for word in names):
            continue
        half = halves[held_out(name)]
        planted = {f["rule"] for f in findings(t, name, files, False)}
        twin = {f["rule"]: f for f in findings(t, name + "-twin", files, True) if f["severity"] != "info" or f["rule"] == rule}
        loud = {f["rule"] for f in findings(t, name, files, False) if f["severity"] != "info"} | ({rule} & planted)
        half[0] += 1
        half[1] += rule in planted
        half[2] += len(loud & (allowed | {rule})) + len(set(twin) & allowed)
        half[3] += len(loud) + len(twin)
        if rule not in planted:
            half[4].append(f"{name}: {rule} is missed")
        for extra in sorted(loud - allowed - {rule}):
            half[4].append(f"{name}: {extra} is too much")
        for extra in sorted(set(twin) - allowed):
            half[4].append(f"{name}, its twin: {extra} is too much: {twin[extra]['message']}")
    return halves


def test_mistakes_in_hard_spellings_are_found_and_their_twins_left_alone(t):
    halves = measure(t)
    for planted, found, right, said, lines in halves.values():
        check(found >= LEAST_RECALL * planted and right >= LEAST_PRECISION * said,
              f"{found} of {planted} found, {right} of {said} right\n" + "\n".join(lines))


if __name__ == "__main__":
    if "--table" not in sys.argv:
        main(globals())
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--hide", action="store_true", help="the half that is held out in figures only")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    stoker = Stoker(os.path.abspath(options.stoker))
    try:
        for out, (planted, found, right, said, lines) in measure(stoker, options.names).items():
            print(f"{'held out' if out else 'open'}: found {found} of {planted} ({100 * found / max(planted, 1):.1f} %), "
                  f"right {right} of {said} ({100 * right / max(said, 1):.1f} %)")
            if not (out and options.hide):
                print("\n".join(lines))
    finally:
        stoker.close()
