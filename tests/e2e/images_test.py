"""Images of a registry, on a real one (Debian's docker-registry on loopback): fetched before anything is held, pinned,
run as root through runc and as a user without root, and nothing left behind after kill -9.

    python3 tests/e2e/images_test.py --stoker build/release/stoker [NAME...]

Skipped, with the reason, where the programs are missing: apt-get install runc skopeo umoci docker-registry busybox-static
"""

import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import check, main, wait_for

APPLETS = "sh cat sleep env id ls head kill touch tail true echo grep".split()


def missing():
    absent = [tool for tool in ("runc", "skopeo", "umoci", "docker-registry")
              if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if not os.path.exists("/bin/busybox"):
        absent.append("busybox-static")
    return absent


class Registry:
    """A registry with one image, demo/box:v1; a second tag can be moved."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="stoker-registry-")
        os.chmod(self.folder, 0o755)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        config = os.path.join(self.folder, "config.yml")
        with open(config, "w") as file:
            file.write(f"version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n"
                       f"storage: {{filesystem: {{rootdirectory: {self.folder}/data}}, delete: {{enabled: true}}}}\n"
                       f"http: {{addr: {self.host}}}\n")
        self.process = subprocess.Popen(["docker-registry", "serve", config], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for("the registry", self.answers)
        self.push("v1", "the first")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def layout(self, words):
        """An OCI layout of busybox, with /etc/inside; its folder."""
        work = tempfile.mkdtemp(dir=self.folder)
        call = lambda *command: subprocess.run(command, cwd=work, check=True, capture_output=True)
        call("umoci", "init", "--layout", "lay")
        call("umoci", "new", "--image", "lay:box")
        call("umoci", "unpack", "--image", "lay:box", "b")
        for name in ("bin", "etc", "closed"):
            os.mkdir(f"{work}/b/rootfs/{name}")
        shutil.copy("/bin/busybox", f"{work}/b/rootfs/bin/busybox")
        for name in APPLETS:
            os.symlink("busybox", f"{work}/b/rootfs/bin/{name}")
        with open(f"{work}/b/rootfs/etc/inside", "w") as file:
            file.write(words + "\n")
        os.chmod(f"{work}/b/rootfs/closed", 0)
        call("umoci", "repack", "--image", "lay:box", "b")
        call("umoci", "config", "--image", "lay:box", "--config.env", "PATH=/bin", "--config.env", "OF_IMAGE=yes")
        subprocess.run(["chmod", "-R", "a+rX", f"{work}/lay"], check=True)
        return work

    def push(self, tag, words):
        work = self.layout(words)
        subprocess.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", "oci:lay:box",
                        f"docker://{self.host}/demo/box:{tag}"], cwd=work, check=True, capture_output=True)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


REGISTRY = None


def registry():
    global REGISTRY
    if REGISTRY is None:
        REGISTRY = Registry()
    return REGISTRY


def box(tag="v1"):
    return f"{registry().host}/demo/box:{tag}"


def operation(t):
    """The id of the operation whose ranks run now: control groups of other servers on this machine are none of ours."""
    for pid in t.processes():
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                found = re.search(rb"(?:^|\0)STOKER_OP=([a-z0-9-]+)", environment.read())
        except OSError:
            continue  # has ended since
        if found:
            return found[1].decode()
    return None


def groups(name):
    """Control groups of the gang of this operation and of its boxes."""
    return [os.path.join(path, folder) for path, folders, _ in os.walk("/sys/fs/cgroup") for folder in folders
            if name in folder]


def test_a_run_fetches_its_image_and_keeps_its_digest(t):
    t.up()
    t.write("box.yaml", f"version: 1\nname: box\nrun:\n  image: {box()}\n  ranks: 2\n  command: [sh, -c, "
            "'cat /etc/inside; echo IMAGE $OF_IMAGE rank $RANK; id -u; ls /closed; touch written-$RANK; exit 0']\n")
    run = t.call("submit", "box.yaml").stdout.strip()
    view = t.wait_state(run, "succeeded", "failed")
    check(view["run"]["state"] == "succeeded", json.dumps(view)[:2000] + t.call("logs", run, exit=None).stdout)
    image = view["spec"]["image"]
    check(re.fullmatch(re.escape(box()) + "@sha256:[0-9a-f]{64}", image), f"not pinned: {image}")
    logs = t.call("logs", run).stdout
    for words in ("the first", "IMAGE yes rank 0"):
        check(words in logs, f"{words!r} is not in {logs}")
    for rank in (0, 1):
        check(os.path.exists(os.path.join(t.work, f"written-{rank}")), "the working folder is not the machine's")
    # The second needs no registry any more once it is pinned; a moved tag is another image.
    registry().push("moves", "old words")
    t.write("moves.yaml", f"version: 1\nname: moves\nrun:\n  image: {box('moves')}\n  restarts: 5\n  command: [sh, -c, "
            "'cat /etc/inside; touch began; [ -e go ] || exit 7']\n")
    first = t.call("submit", "moves.yaml").stdout.strip()
    wait_for("its first attempt", lambda: os.path.exists(os.path.join(t.work, "began")))
    registry().push("moves", "new words")
    open(os.path.join(t.work, "go"), "w").close()
    view = t.wait_state(first, "succeeded", "failed", limit_s=120)
    check(view["run"]["state"] == "succeeded" and len(view["attempts"]) > 1, json.dumps(view["attempts"])[:1000])
    logs = t.call("logs", first, "--all", exit=None).stdout or t.call("logs", first).stdout
    check("new words" not in logs and "old words" in logs, f"a retry took another image: {logs}")
    second = t.call("submit", "moves.yaml").stdout.strip()
    t.wait_state(second, "succeeded")
    check("new words" in t.call("logs", second).stdout, "a new run takes what the tag names now")


def test_wrong_names_are_told_at_once(t):
    t.up()
    for image, words in ((f"{registry().host}/demo/box:no-such", "there is no such image"),
                         (f"{registry().host}/demo/none", "there is no such image"),
                         ("127.0.0.1:1/demo/box:v1", "the registry cannot be reached"),
                         ("./no-such-file.tar", "does not exist"),
                         ("UPPER/case:x", "no name of an image")):
        done = t.call("submit", "--image", image, "--", "true", exit=None)
        check(done.returncode in (1, 2, 3), f"{image}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        check(words in done.stderr, f"{image}: {done.stderr}")
    check(t.json("ps") == [], "a run that was refused is there")


class Denies(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="demo"')
        self.end_headers()

    def log_message(self, *words):
        pass


def test_a_registry_that_denies_or_is_silent(t):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Denies)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    t.up()
    done = t.call("submit", "--image", f"127.0.0.1:{server.server_port}/demo/box:v1", "--", "true", exit=3)
    check("denied" in done.stderr and "skopeo login" in done.stderr, done.stderr)
    server.shutdown()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        begin = time.monotonic()
        done = t.call("submit", "--image", f"127.0.0.1:{silent.getsockname()[1]}/demo/box:v1", "--", "true", exit=3)
        check(time.monotonic() - begin < 40 and "did not answer in time" in done.stderr, done.stderr)


def test_archives_and_layouts(t):
    work = registry().layout("from a file")
    subprocess.run(["skopeo", "copy", "--quiet", "oci:lay:box", f"oci-archive:{t.work}/box.tar"], cwd=work, check=True)
    subprocess.run(["skopeo", "copy", "--quiet", "oci:lay:box", f"docker-archive:{t.work}/saved.tar:demo/box:v1"],
                   cwd=work, check=True)
    shutil.copytree(f"{work}/lay", f"{t.work}/lay")
    t.up()
    for image in ("./box.tar", "./saved.tar", "./lay"):
        run = t.call("submit", "--image", image, "--", "cat", "/etc/inside").stdout.strip()
        view = t.wait_state(run, "succeeded", "failed")
        check("from a file" in t.call("logs", run, exit=None).stdout, f"{image}: {json.dumps(view)[:1500]}")
        check("@sha256:" in view["spec"]["image"], view["spec"]["image"])


class SlowRegistry:
    """Passes everything on; the layer only after `gate` is set."""

    def __init__(self):
        self.gate = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if "/blobs/" in self.path:
                    outer.gate.wait(60)
                try:
                    import urllib.request
                    request = urllib.request.Request(f"http://{registry().host}{self.path}", headers={
                        "Accept": ", ".join(self.headers.get_all("Accept") or ["*/*"])})
                    with urllib.request.urlopen(request) as answer:
                        body = answer.read()
                        self.send_response(answer.status)
                        for key in ("Content-Type", "Docker-Content-Digest"):
                            if answer.headers.get(key):
                                self.send_header(key, answer.headers[key])
                        self.send_header("Content-Length", str(len(body)))
                        self.end_headers()
                        self.wfile.write(body)
                except OSError:
                    pass

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_port}"


def test_waits_with_a_reason_and_survives_kill_9(t):
    slow = SlowRegistry()
    server = t.up()
    run = t.call("submit", "--image", f"{slow.host}/demo/box:v1", "--", "sh", "-c",
                 "cat /etc/inside; trap 'echo noted' USR1; i=0; while [ ! -e go ]; do sleep 0.1; done").stdout.strip()
    view = wait_for("the reason", lambda: (lambda v: v if (v["run"].get("why") or v.get("why") or {}).get("code") ==
                                           "image_pulling" else None)(t.describe(run)))
    why = view["run"].get("why") or view["why"]
    wait_for("its progress", lambda: "fetched" in json.dumps(t.describe(run)))
    check(view["run"]["state"] == "queued" and not view.get("attempts"), f"something is held: {view}")
    check("image" in why["text"], why["text"])
    # Others go on meanwhile.
    other = t.call("submit", "--", "true").stdout.strip()
    t.wait_state(other, "succeeded")
    server.send_signal(signal.SIGKILL)
    server.wait()
    wait_for("no process that fetches", lambda: not [pid for pid in t.processes()])
    slow.gate.set()
    server = t.up()
    t.wait_state(run, "running", limit_s=120)
    wait_for("its words", lambda: "the first" in t.call("logs", run, exit=None).stdout)
    started = wait_for("the operation of its rank", lambda: operation(t))
    check(groups(started), f"no control group of {started} while it runs")
    server.send_signal(signal.SIGKILL)
    server.wait()
    t.up()
    view = t.wait_state(run, "running")
    check(len(view["attempts"]) == 1, "it was adopted, not started again")
    open(os.path.join(t.work, "go"), "w").close()
    t.wait_state(run, "succeeded")
    slow.server.shutdown()
    wait_for("no mount of the box", lambda: not [line for line in open("/proc/mounts") if t.base in line])
    wait_for("no control group of it", lambda: not groups(started))
    check(not [name for name in os.listdir(os.path.join(t.folder, "images")) if name.startswith(".")],
          "what was half fetched is there")


def test_without_root(t):
    """As a real user without rights: fetched, unpacked and run in a user namespace; refused clearly where there is none."""
    if os.geteuid() != 0:
        return
    home = tempfile.mkdtemp(prefix="stoker-user-")
    os.chown(home, 65534, 65534)
    binary = os.path.join(home, "stoker")
    shutil.copy(t.binary, binary)
    environment = dict(os.environ, HOME=home, STOKER_FOLDER=f"{home}/state", XDG_CACHE_HOME=f"{home}/cache", NO_COLOR="1",
                       PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin")
    as_user = lambda *words: subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words],
                                            cwd=home, env=environment, capture_output=True, text=True, timeout=120)
    try:
        if as_user("unshare", "-Urm", "true").returncode != 0:
            done = as_user(binary, "run", "--image", box(), "--", "true")
            check(done.returncode != 0 and "user namespaces" in done.stderr, done.stderr)
            print("skipped: this machine forbids user namespaces to users without rights")
            return
        done = as_user(binary, "run", "--image", box(), "--", "sh", "-c",
                       "cat /etc/inside; id -u; touch mine; touch /etc/new && echo can write; mkdir /etc/shut; chmod 0 /etc/shut")
        check(done.returncode == 0, done.stdout + done.stderr)
        check("the first" in done.stdout and "can write" in done.stdout, done.stdout + done.stderr)
        check(os.stat(f"{home}/mine").st_uid == 65534, "what it writes belongs to somebody else")
        wait_for("no folder of the gang", lambda: not os.listdir(f"{home}/state/run") if os.path.isdir(
            f"{home}/state/run") else True)
        done = as_user(binary, "run", "--image", box(), "--", "sh", "-c", "exit 5")
        check(done.returncode != 0 and "left with 5" in done.stdout + done.stderr, done.stdout + done.stderr)
    finally:
        subprocess.run(["rm", "-rf", home], check=False)


if __name__ == "__main__":
    absent = missing()
    if absent:
        print(f"skipped: apt-get install {' '.join(absent)}")
        print("0 passed, 0 failed")
    elif subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        print("skipped: no mount namespaces here (a plain chroot, or a machine that forbids them)")
        print("0 passed, 0 failed")
    else:
        try:
            main(dict(globals()))
        finally:
            if REGISTRY is not None:
                REGISTRY.close()
