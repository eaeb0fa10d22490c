#!/usr/bin/env python3
"""A checkpoint of 256 MiB into real stores and back, beside the vendors' own tools on the same machine at the same time.

    python3 bench/run/storage.py --stoker build/release/stoker [--mib 256] [--rounds 3]

Azurite and versitygw as tests/e2e/storage_test.py has them. Up: from `checkpoint.uploading` to `checkpoint.stored` in the journal,
which is two commits, the upload, its manifest and the retention. Down: `stoker run` with restore_from, the whole command less
the same command with the checkpoint in its folder. aws (S3) and the Python SDK azure-storage-blob (STOKER_AZURE_PYTHON names a
Python that has it) are called when they are there. Prints one line of JSON a round, then medians."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
import harness  # noqa: E402
import storage_test  # noqa: E402

MIB = 1 << 20


def seconds_of(words, env):
    began = time.monotonic()
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr[-300:]
    return time.monotonic() - began, ""


def peer(t, store, path, down):
    env = dict(os.environ, **store.environment, HOME=t.base)
    if store.kind == "s3" and shutil.which("aws"):
        aws = ["aws", "--endpoint-url", f"http://127.0.0.1:{store.port}", "--region", "us-east-1", "s3", "cp", "--no-progress"]
        words = [*aws, "s3://box/peer", path + ".back"] if down else [*aws, path, "s3://box/peer"]
        return seconds_of(words, dict(env, HOME=os.environ.get("HOME", "/root")))[0]
    python = os.environ.get("STOKER_AZURE_PYTHON")
    if store.kind == "azure" and python:
        program = ("import sys, time; from azure.storage.blob import BlobClient\n"
                   f"b = BlobClient.from_connection_string('DefaultEndpointsProtocol=http;AccountName={storage_test.ACCOUNT};AccountKey={storage_test.KEY};"
                   f"BlobEndpoint=http://127.0.0.1:{store.port}/{storage_test.ACCOUNT};', 'box', 'peer', max_block_size=8 << 20)\n")
        program += ("b.download_blob(max_concurrency=4).readinto(open(sys.argv[1] + '.back', 'wb'))" if down else
                    "b.upload_blob(open(sys.argv[1], 'rb'), overwrite=True, max_concurrency=4)")
        return seconds_of([python, "-c", program, path], env)[0]
    return None


def one_round(binary, kind, mib):
    t = harness.Stoker(binary)
    try:
        store = storage_test.store_for(t, kind, own=True)
        t.write("write.py", "import json, os, shutil\nf = os.environ['STOKER_CHECKPOINT_DIR'] + '/step-1'\nos.makedirs(f + '.tmp')\n"
                f"data = os.urandom({MIB})\nwith open(f + '.tmp/w', 'wb') as o:\n  for i in range({mib}): o.write(data[i:] + data[:i])\n"
                f"json.dump({{'files': {{'w': {mib * MIB}}}}}, open(f + '.tmp/manifest.json', 'w'))\nos.rename(f + '.tmp', f)\n")
        t.write("up.yaml", f"version: 1\nrun:\n  command: [python3, write.py]\n  checkpoint: {{upload: {{to: '{store.url}'}}}}\n")
        server = t.up()
        t.call("submit", "up.yaml")
        harness.wait_for("stored", lambda: (t.describe("r-1").get("stored") or {}).get("step") == 1, 600)
        records = json.loads(t.call("journal", "show", "-o", "json", "--limit", "1000").stdout)["items"]
        at = {record["kind"]: record["at_us"] for record in records}
        out = {"store": kind, "up_s": (at["checkpoint.stored"] - at["checkpoint.uploading"]) / 1e6}
        rss = [line for line in open(f"/proc/{server.pid}/status") if line.startswith("VmHWM")][0]
        out["server_peak_mib"] = int(rss.split()[1]) / 1024
        url = t.describe("r-1")["stored"]["url"]
        server.terminate()
        server.wait()
        t.folder = t.environment["STOKER_FOLDER"] = os.path.join(t.base, "other")
        t.write("down.yaml", f"version: 1\nrun:\n  command: 'true'\n  checkpoint: {{folder: {t.base}/there, restore_from: '{url}'}}\n")
        times = []
        for _ in range(2):
            began = time.monotonic()
            t.call("run", "down.yaml", limit_s=600)
            times.append(time.monotonic() - began)
        out["down_s"] = times[0] - times[1]
        data = os.path.join(t.base, "there/step-1/w")
        out["peer_up_s"], out["peer_down_s"] = peer(t, store, data, False), peer(t, store, data, True)
        store.stop()
        return out
    finally:
        t.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for kind, get in (("azure", storage_test.azurite_command), ("s3", storage_test.versitygw_program)):
        try:
            get()
        except storage_test.Skip as reason:
            print(f"SKIPPED: {kind}: {reason}")
            continue
        rounds = []
        for _ in range(options.rounds):
            rounds.append(one_round(os.path.abspath(options.stoker), kind, options.mib))
            print(json.dumps({"mib": options.mib, "load": os.getloadavg()[0], **rounds[-1]}), flush=True)
        for name in ("up_s", "down_s", "peer_up_s", "peer_down_s"):
            values = [each[name] for each in rounds if each[name]]
            if values:
                print(f"{kind:6} {name:12} {statistics.median(values):6.2f} s  {options.mib / statistics.median(values):6.0f} MiB/s")


if __name__ == "__main__":
    main()
