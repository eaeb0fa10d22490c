#!/usr/bin/env python3
"""The API keeps what its OpenAPI promises, whatever is sent: schemathesis against a real server with real runs.

usage: tests/e2e/api_test.py STOKER [EXAMPLES_PER_OPERATION]
Needs a Python with tests/e2e/requirements.txt. Exit 0: every check passed.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
          "negative_data_rejection")
HERE = pathlib.Path(__file__).parent


def call(url, token, path, body=None):
    request = urllib.request.Request(url + path, data=json.dumps(body).encode() if body is not None else None)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def wait_for(what, limit_s=60):
    until = time.monotonic() + limit_s
    while not (found := what()):
        if time.monotonic() > until:
            sys.exit("it did not happen in time")
        time.sleep(0.05)
    return found


def main():
    stoker, examples = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "20"
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([stoker, "up", "--folder", folder + "/f", "--virtual-nodes", "2"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            address = pathlib.Path(folder, "f/server.json")
            wait_for(lambda: address.exists() or server.poll() is not None)
            url = json.loads(address.read_text())["url"]
            token = pathlib.Path(folder, "f/token").read_text().strip()
            # Something of each kind to look at: one that ended with files, one that waits, a graph.
            script = 'echo hello; echo \'{"step": 1, "loss": 0.5}\' >> $STOKER_METRICS_FILE; echo x > $STOKER_ARTIFACT_DIR/a'
            call(url, token, "/api/v1/runs", {"name": "ends", "command": ["sh", "-c", script]})
            call(url, token, "/api/v1/runs", {"name": "waits", "command": ["true"], "per_rank": {"cpu_milli": 9000000}})
            call(url, token, "/api/v1/runs", {"name": "graph", "kind": "graph", "steps": [
                {"name": "a", "run": {"name": "a", "command": ["true"]}},
                {"name": "b", "depends_on": ["a"], "run": {"name": "b", "command": ["true"]}}]})
            wait_for(lambda: call(url, token, "/api/v1/runs/r-1")["run"]["state"] == "succeeded")
            # Live streams never end by themselves; tests beside the code look at them.
            return subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run",
                 url + "/api/v1/openapi.json", "-H", "Authorization: Bearer " + token, "--checks", CHECKS,
                 "--phases", "examples,coverage,fuzzing", "-n", examples, "--seed", "1", "--request-timeout", "60",
                 "--suppress-health-check", "all", "--exclude-path", "/api/v1/events",
                 "--exclude-path", "/api/v1/runs/{run}/events", "--no-color"], cwd=folder, timeout=900).returncode
        finally:
            server.terminate()
            server.wait(timeout=30)


sys.exit(main())
