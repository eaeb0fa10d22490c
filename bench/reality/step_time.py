#!/usr/bin/env python3
"""Predicted against measured, on this machine: step time and peak memory of real trainings.

    step_time.py --stoker build/release/stoker [--rounds 3] [--seconds 6] [--keep DIR] [--no-calibration] [--seen] [--json FILE]

Calibrates first: stoker bench cpu --framework, then trainings of the sizes in TAUGHT, added with stoker calibrate. Then the
sizes in ASKED, none of which was seen by then, each with one and with two ranks; each is predicted before it runs. Both are run
`rounds` times, interleaved, and the median step of the fastest round counts, of what is taught (stoker calibrate does so) and of
what is asked: what others take from a machine, its hypervisor too, only ever adds. Of the first prediction the interval counts.
A run of one rank on one core counts as its processor seconds where the clock says more; ranks that wait for each other have no
such figure. The clock over the processor seconds is told beside each row.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# dim, layers, heads, context, examples a step
TAUGHT = ((128, 4, 4, 128, 8), (320, 4, 5, 64, 16), (192, 8, 6, 192, 4), (448, 3, 7, 96, 12))
# Three within the sizes that are taught, one below and one above, chosen before any of them was run.
ASKED = ((240, 5, 6, 112, 10), (368, 4, 8, 88, 10), (432, 5, 9, 80, 8), (112, 7, 7, 104, 12), (608, 3, 8, 72, 10))
# Asked in earlier rounds, after which the model was mended.
SEEN = ((160, 6, 5, 128, 12), (256, 6, 8, 128, 16), (384, 4, 6, 160, 8), (96, 10, 4, 96, 16), (512, 3, 8, 64, 16),
        (224, 5, 7, 96, 10), (288, 6, 6, 128, 8), (384, 3, 8, 64, 16), (64, 6, 4, 128, 16), (640, 3, 10, 96, 8), (256, 4, 4, 80, 12),
        (352, 5, 11, 112, 8), (416, 6, 8, 72, 12), (80, 8, 4, 112, 16), (576, 4, 9, 64, 8))


def workload(size, ranks, steps):
    dim, layers, heads, context, batch = size
    wide = (dim * 8 // 3 + 31) // 32 * 32
    words = ["/usr/bin/python3", str(SOURCE / "examples/train-tiny/train.py"), "--dim", dim, "--layers", layers, "--heads", heads,
             "--ctx", context, "--batch", batch, "--steps", steps]
    return f"""version: 1
name: d{dim}-l{layers}-r{ranks}
kind: training
model: {{layers: {layers}, hidden: {dim}, heads: {heads}, ffn: {wide}, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}}
data: {{tokens: {context * batch * steps}, sequence: {context}}}
batch: {{global_examples: {batch}}}
precision: fp32
optimizer: adamw
framework: pytorch
where: {{cloud: this-machine}}
run:
  command: {json.dumps([str(word) for word in words])}
  ranks: {ranks}
  cpus: 1
  environment: {{OMP_NUM_THREADS: 1, OPENBLAS_NUM_THREADS: 1, PYTHONDONTWRITEBYTECODE: 1}}
"""


class Stoker:
    def __init__(self, binary, base):
        self.binary, self.base = os.path.abspath(binary), base
        # Nothing else of ours: a variable that chooses the kernels of a BLAS would be measured and not be there in runs.
        self.environment = {"PATH": os.environ["PATH"], "STOKER_FOLDER": f"{base}/state", "HOME": base, "NO_COLOR": "1",
                            "XDG_CACHE_HOME": f"{base}/cache", "XDG_DATA_HOME": f"{base}/data"}
        self.runs = 0

    def call(self, *words):
        done = subprocess.run([self.binary, *words], env=self.environment, cwd=self.base, capture_output=True, text=True,
                              timeout=900)
        if done.returncode != 0:
            sys.exit(f"stoker {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def train(self, size, ranks, seconds):
        """Runs it for about so long; the answer is what was predicted and what was measured."""
        path = f"{self.base}/train.yaml"
        with open(path, "w") as file:
            file.write(workload(size, ranks, 10))
        guess = json.loads(self.call("plan", path, "-o", "json", "--no-what-if"))["candidates"][0]["prediction"]["step_seconds"]["mid"]
        with open(path, "w") as file:
            file.write(workload(size, ranks, max(12, min(400, int(seconds / guess)))))
        self.call("run", path)
        self.runs += 1
        name = f"r-{self.runs}"
        view = json.loads(self.call("describe", name, "-o", "json"))
        lines = [json.loads(line) for line in open(f"{self.base}/state/runs/{name}/metrics.jsonl")]
        steps = lines[3:]  # the first ones allocate
        return {"run": name, "size": size, "ranks": ranks, "prediction": view["spec"]["prediction"],
                "step_s": statistics.median(line["step_s"] for line in steps),
                "cpu_s": statistics.median(line["cpu_s"] for line in steps),
                "peak_bytes": max(line["peak_rss_bytes"] for line in lines)}


def counted(rounds):
    """What the rounds of one size and number of ranks measured: the fastest, as of what is taught."""
    if rounds[0]["ranks"] == 1:
        return min(min(each["step_s"], each["cpu_s"]) for each in rounds)
    return min(each["step_s"] for each in rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each training")
    parser.add_argument("--keep", help="folder for what the runs leave")
    parser.add_argument("--no-calibration", action="store_true", help="the published constants alone")
    parser.add_argument("--seen", action="store_true", help="the sizes that the model was mended on, in place of new ones")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    base = options.keep or tempfile.mkdtemp(prefix="stoker-reality-")
    os.makedirs(base, exist_ok=True)
    stoker = Stoker(options.stoker, base)
    if options.no_calibration:
        stoker.call("bench", "cpu")
    else:
        stoker.call("bench", "cpu", "--framework")
        for _ in range(options.rounds):
            for ranks in (1, 2):
                for size in TAUGHT:
                    taught = stoker.train(size, ranks, options.seconds)
                    stoker.call("calibrate", "add", taught["run"])
        print(stoker.call("calibrate", "show"))
    found = {}
    for _ in range(options.rounds):
        for size in SEEN if options.seen else ASKED:
            for ranks in (1, 2):
                found.setdefault((size, ranks), []).append(stoker.train(size, ranks, options.seconds))
    print(f"load {os.getloadavg()[0]:.1f}\n{'dim layers':>12} {'ranks':>5} {'predicted':>24} {'measured':>9} {'off':>6}  clock/cpu"
          f"   memory predicted, measured, off")
    inside, off, memory_off = 0, [], []
    for (size, ranks), rounds in found.items():
        plan, measured = rounds[0]["prediction"], counted(rounds)
        error = plan["step_s"] / measured - 1
        peak = max(each["peak_bytes"] for each in rounds)
        memory_error = plan["memory_bytes"] / peak - 1
        within = plan["step_low_s"] <= measured <= plan["step_high_s"]
        inside += within
        off.append(abs(error))
        memory_off.append(abs(memory_error))
        print(f"{size[0]:>6} {size[1]:>5} {ranks:>5} {1e3 * plan['step_s']:>7.1f} ({1e3 * plan['step_low_s']:6.1f} -"
              f"{1e3 * plan['step_high_s']:6.1f}) {1e3 * measured:>8.1f} {100 * error:>+5.0f}% {'in ' if within else 'OUT'}"
              f" {statistics.median(e['step_s'] / max(e['cpu_s'], 1e-9) for e in rounds):5.2f}"
              f"   {plan['memory_bytes'] / 2**20:6.0f} {peak / 2**20:6.0f} MiB {100 * memory_error:+4.0f}%")
    print(f"inside the 80 % interval {inside} of {len(found)}; step off by {100 * statistics.median(off):.1f} % at the median, "
          f"{100 * max(off):.1f} % at worst; memory {100 * statistics.median(memory_off):.1f} % and {100 * max(memory_off):.1f} %")
    if options.json:
        with open(options.json, "w") as file:
            json.dump([each for rounds in found.values() for each in rounds], file, indent=1)


if __name__ == "__main__":
    main()
