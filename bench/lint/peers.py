#!/usr/bin/env python3
"""`stoker check` beside its peers on the same files, in one run.

    peers.py --stoker build/release/stoker --files DIR [--rounds 5] [--kubeconform PATH] [--schemas DIR]

shellcheck over the shell scripts and kubeconform over the Kubernetes manifests under DIR, each started once with all files;
Stoker the same way. Then the whole of DIR, and one file from start to exit. Wall and processor seconds, peak memory; of the
rounds the fastest counts. kubeconform: go install github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7; without --schemas it is
told to skip what it has no schema for, which makes it faster than it is.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time


def measured(command, cwd, ok=(0, 1)):
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ok:
        sys.exit(f"{command[0]}: exit {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--files", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kubeconform", default=shutil.which("kubeconform"))
    parser.add_argument("--schemas")
    options = parser.parse_args()
    folder = pathlib.Path(options.files).resolve()
    stoker = os.path.abspath(options.stoker)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    shell = [str(path) for path in files if path.suffix in (".sh", ".sbatch", ".slurm", ".bash")]
    kubernetes = []
    for path in files:
        if path.suffix in (".yaml", ".yml") and path.stat().st_size < 1 << 20:
            text = path.read_text(errors="replace")
            if text.startswith("apiVersion:") or "\napiVersion:" in text and "\nkind:" in text and "{{" not in text:
                kubernetes.append(str(path))
    rows = []

    def row(name, command, count, size, ok=(0, 1)):
        rounds = [measured(command, folder, ok) for _ in range(options.rounds)]
        wall, cpu, memory = (min(column) for column in zip(*rounds))
        rows.append({"what": name, "files": count, "wall_s": wall, "cpu_s": cpu, "peak_mib": memory, "mb": size / 1e6})
        print(f"{name:<34} {count:>5} files {size / 1e6:>7.2f} MB   {wall:>8.3f} s wall {cpu:>8.3f} s cpu"
              f"   {count / cpu:>9.0f} files/s of cpu   {memory:>6.0f} MiB", flush=True)

    def bytes_of(paths):
        return sum(os.path.getsize(path) for path in paths)

    row("stoker check, shell", [stoker, "check", *shell], len(shell), bytes_of(shell))
    if shutil.which("shellcheck"):
        row("shellcheck", ["shellcheck", "-f", "gcc", *shell], len(shell), bytes_of(shell))
    row("stoker check, Kubernetes", [stoker, "check", *kubernetes], len(kubernetes), bytes_of(kubernetes))
    if options.kubeconform:
        where = ["-schema-location", options.schemas] if options.schemas else ["-schema-location", "file:///nonexistent/{{.ResourceKind}}.json"]
        row("kubeconform", [options.kubeconform, "-ignore-missing-schemas", *where, *kubernetes], len(kubernetes), bytes_of(kubernetes))
    row("stoker check, everything", [stoker, "check", str(folder)], len(files), bytes_of(map(str, files)))
    if kubernetes:
        one = kubernetes[len(kubernetes) // 2]
        walls = sorted(measured([stoker, "check", one], folder)[0] for _ in range(200))
        print(f"one file, start to exit: {1e3 * statistics.median(walls):.2f} ms (of 200; 99 %: {1e3 * walls[197]:.2f} ms)")
        rows.append({"what": "one file", "median_ms": 1e3 * statistics.median(walls), "p99_ms": 1e3 * walls[197]})
    print(json.dumps({"bench": "lint-peers", "load": os.getloadavg()[0], "rows": rows}))


if __name__ == "__main__":
    main()
