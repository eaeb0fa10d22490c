#!/usr/bin/env python3
"""What the agent costs on the double with eight H100: scrapes over a kept connection, processors at one reading a second, memory of
agent and sampler, and its growth. Prints one JSON line. The driver costs nothing here; what a real one costs is measured by
tools/gpu_day.py."""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import gpu_day  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "release", "stoker"))
parser.add_argument("--scrapes", type=int, default=10000)
options = parser.parse_args()

with tempfile.TemporaryDirectory() as folder:
    library = os.path.join(folder, "libnvidia-ml.so.1")
    double = os.path.join(ROOT, "tests", "nvml_double")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-o", library, os.path.join(double, "nvml_double.c"), "-lpthread"], check=True)
    os.environ.update(STOKER_NVML_LIBRARY=library, STOKER_NVML_PROFILE=os.path.join(double, "profiles", "h100.profile"), STOKER_NVML_GPUS="8")
    with gpu_day.Agent(os.path.abspath(options.stoker), folder) as agent:
        agent.wait()
        time.sleep(3)
        page = agent.get("/metrics")
        connection = http.client.HTTPConnection(agent.url[7:], timeout=10)

        def scrape():
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        for _ in range(500):
            scrape()
        before, took = agent.rss_kib(), []
        for _ in range(options.scrapes):
            began = time.perf_counter()
            scrape()
            took.append(time.perf_counter() - began)
        after = agent.rss_kib()
        cpu, began = agent.cpu_s(), time.monotonic()
        time.sleep(20)
        share = (agent.cpu_s() - cpu) / (time.monotonic() - began)
        took.sort()
        rss = sum(int(line.split()[1]) for p in agent.pids() for line in open(f"/proc/{p}/status") if line.startswith("VmRSS"))
        private = sum(int(line.split()[1]) for p in agent.pids() for line in open(f"/proc/{p}/smaps_rollup") if line.startswith("Private_"))
        print(json.dumps({"bench": "gpu_agent", "gpus": 8, "samples": sum(1 for line in page.splitlines() if not line.startswith("#")), "page_bytes": len(page),
                          "scrapes": options.scrapes, "p50_ms": round(took[len(took) // 2] * 1e3, 3), "p99_ms": round(took[len(took) * 99 // 100] * 1e3, 3),
                          "cpu_share_at_1_hz": round(share, 5), "pss_kib": after, "rss_kib": rss, "private_kib": private, "growth_kib": after - before,
                          "load": os.getloadavg()[0], "cores": os.cpu_count()}))
