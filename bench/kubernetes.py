#!/usr/bin/env python3
"""Submit-to-start on a real Kubernetes: through Stoker beside plain kubectl, in one run.

    python3 bench/kubernetes.py --stoker build/release/stoker [--runs 20] [--pods 2000]

Start is the moment at which the user's program writes its first line, by the clock of this machine. API server, scheduler and controllers are
the real ones; pods are run by tests/kube/pod_runner.py, which pulls no image, so what a kubelet and a registry take is in neither figure. The
plain Job has one container and no init container; Stoker's has one that looks whether the program is there ("with_check" is the plain Job
with such a container, so that the rest is Stoker's own).

"watch": what the server costs while it watches that many pods of a gang that none of them begins (they are held by a scheduling gate), at
rest and while ten of them change each second. The last line is JSON."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "kube")]
import kube  # noqa: E402
import pod_runner  # noqa: E402


def wait_for(path, limit_s=60):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if os.path.exists(path) and (text := open(path).read()).endswith("\n"):
            return float(text) / 1e9
        time.sleep(0.002)
    raise SystemExit(f"nothing in {path} within {limit_s} s")


def spread(values):
    ordered = sorted(values)
    return {"p50_ms": round(1000 * statistics.median(ordered), 1), "p90_ms": round(1000 * ordered[int(len(ordered) * 0.9)], 1)}


def plain_job(name, base, out, check):
    mounts = [{"name": "base", "mountPath": base}]
    main = {"name": "main", "image": "x", "command": ["sh", "-c", f"date +%s%N > {out}"], "volumeMounts": mounts}
    look = [{"name": "check", "image": "x", "command": ["sh", "-c", "command -v sh"], "volumeMounts": mounts}] if check else []
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "initContainers": look, "containers": [main],
        "volumes": [{"name": "base", "hostPath": {"path": base, "type": "Directory"}}]}}}}


def used(pid):
    """Seconds of processors so far, and megabytes of memory."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    memory = next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), memory / 1024


def watched(api, pid, count, seconds=20):
    labels = {"app.kubernetes.io/managed-by": "stoker", "stoker/site": "aaaaa", "stoker/operation": "aaaaa-zzzzzz"}
    pods = "/api/v1/namespaces/default/pods"
    before = used(pid)[1]
    for i in range(count):
        api.call("POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": f"watched-{i}", "labels": labels, "annotations": {"batch.kubernetes.io/job-completion-index": str(i)}},
            "spec": {"schedulingGates": [{"name": "stoker.test/watched"}], "containers": [{"name": "rank-0", "image": "x"}]}})
    time.sleep(5)
    result = {"pods": count, "rss_before_mb": round(before, 1)}
    for state in ("at_rest", "changing"):
        begun, cpu = time.monotonic(), used(pid)[0]
        i = 0
        while time.monotonic() < begun + seconds:
            if state == "changing":
                api.call("PATCH", f"{pods}/watched-{i % count}", {"metadata": {"annotations": {"bench": str(i)}}},
                         "application/merge-patch+json")
            i += 1
            time.sleep(max(0.0, begun + i * 0.1 - time.monotonic()))
        wall = time.monotonic() - begun
        result[f"core_{state}"] = round((used(pid)[0] - cpu) / wall, 4)
    result["rss_mb"] = round(used(pid)[1], 1)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pods", type=int, default=2000)
    options = parser.parse_args()
    stoker = os.path.abspath(options.stoker)
    cluster = subprocess.Popen([sys.executable, str(ROOT / "tests" / "kube" / "cluster.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    hello = cluster.stdout.readline()
    if not hello:
        raise SystemExit("no Kubernetes here, see above")
    config = os.path.join(json.loads(hello)["folder"], "kubeconfig")  # without the door of the tests
    base = tempfile.mkdtemp(prefix="stoker-kube-bench-")
    environment = dict(os.environ, STOKER_FOLDER=base + "/state", HOME=base, NO_COLOR="1")
    server = None
    try:
        with open(base + "/server.yaml", "w") as file:
            file.write(f"engine: {{kind: kubernetes, config: {config}, image: x, shared: [{{path: {base}}}]}}\n")
        server = subprocess.Popen([stoker, "up", "--config", base + "/server.yaml", "--listen", "127.0.0.1:0"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while subprocess.run([stoker, "nodes"], env=environment, capture_output=True).returncode != 0:
            if time.monotonic() > end:
                raise SystemExit("the server did not come up")
            time.sleep(0.2)
        times = {"kubectl": [], "kubectl_with_check": [], "stoker": [], "stoker_answers": []}
        for i in range(options.runs):  # in turns, so that all meet the same machine
            for kind, check in (("kubectl", False), ("kubectl_with_check", True)):
                out = f"{base}/{kind}-{i}"
                text = json.dumps(plain_job(f"{kind.replace('_', '-')}-{i}", base, out, check))
                begin = time.time()
                subprocess.run([kube.program(), "kubectl", "--kubeconfig", config, "create", "-f", "-"], input=text, text=True, check=True,
                               capture_output=True, env=environment)
                times[kind].append(wait_for(out) - begin)
            out = f"{base}/through-{i}"
            begin = time.time()
            subprocess.run([stoker, "submit", "--", "sh", "-c", f"date +%s%N > {out}"], env=environment, check=True, capture_output=True)
            times["stoker_answers"].append(time.time() - begin)
            times["stoker"].append(wait_for(out) - begin)
        result = {"bench": "kubernetes", "runs": options.runs, "load_1min": round(os.getloadavg()[0], 1), **{kind: spread(values) for kind, values in times.items()}}
        for beside in ("kubectl", "kubectl_with_check"):
            result[f"added_to_{beside}_p50_ms"] = round(1000 * (statistics.median(times["stoker"]) - statistics.median(times[beside])), 1)
        if options.pods:
            result["watch"] = watched(pod_runner.Api(config), server.pid, options.pods)
        print(json.dumps(result))
    finally:
        if server:
            server.terminate()
            server.wait()
        cluster.stdin.close()
        cluster.wait()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
