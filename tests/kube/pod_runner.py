"""The kubelets of a test cluster that really run pods: each container is a process tree in PID and mount namespaces of its own, on an
overlay of this machine's file system. Images are not pulled: whatever a pod names, it finds the programs of this machine.

What is real: processes, exit codes, signals and grace periods, memory limits (a control group, where there is the v1 controller), logs through
the API server, volumes of hostPath (also behind a claim), emptyDir and downwardAPI (kept up to date), init containers, /etc/hosts with the names of pods that
share a headless Service, containers that run beside the others, deletion, eviction. What is not: images, users, networks, devices (GPUs are numbers), probes, other volumes.

An image whose name begins with `missing/` cannot be pulled, and says so as a kubelet does. Needs root."""

import argparse
import datetime
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

CGROUPS = "/sys/fs/cgroup/memory"


def why_not():
    """Why pods cannot be run here; empty: they can."""
    if os.geteuid() != 0:
        return "pods are run in namespaces of their own, which takes root here"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("up", "work", "root"):
            os.mkdir(os.path.join(folder, name))
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "mount", "-t", "overlay", "overlay", "-o",
                               f"lowerdir=/,upperdir={folder}/up,workdir={folder}/work", f"{folder}/root"], capture_output=True, text=True)
        return "" if done.returncode == 0 else "no overlay can be mounted here: " + done.stderr.strip()[-200:]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def expand(text, variables):
    """As the kubelet: $(NAME) of what is known, $$ for a dollar."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out, at = out + text[at], at + 1
        elif text[at + 1] == "$":
            out, at = out + "$", at + 2
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2:end]
            out += variables.get(name, text[at:end + 1])
            at = end + 1
        else:
            out, at = out + text[at:at + 2], at + 2
    return out


def bytes_of(quantity):
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}
    for unit, factor in units.items():
        if str(quantity).endswith(unit):
            return int(float(quantity[:-len(unit)]) * factor)
    return int(float(quantity))


class Api:
    def __init__(self, kubeconfig):
        with open(kubeconfig) as file:
            config = json.load(file)
        cluster = config["clusters"][0]["cluster"]
        self.url, self.token = cluster["server"], config["users"][0]["user"]["token"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def open(self, method, path, body=None, content="application/json", timeout=30):
        query = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode(), method=method, headers={
            "Authorization": "Bearer " + self.token, "Content-Type": content})
        return urllib.request.urlopen(query, timeout=timeout, context=self.tls)

    def call(self, method, path, body=None, content="application/json"):
        """(status, answer); tries for a minute while the server is away."""
        end = time.monotonic() + 60
        while True:
            try:
                with self.open(method, path, body, content) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as refused:
                if refused.code not in (429, 500, 503) or time.monotonic() > end:
                    return refused.code, refused.read().decode(errors="replace")
            except (OSError, urllib.error.URLError, ValueError):
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)


class Container:
    """One process tree, and what it said."""

    def __init__(self, folder, spec, pod):
        self.folder, self.spec, self.pod = folder, spec, pod
        self.lines, self.changed, self.ended = [], threading.Condition(), False
        self.process = self.started = None
        self.state = {"waiting": {"reason": "PodInitializing"}}
        os.makedirs(folder)
        for name in ("up", "work", "root"):
            os.mkdir(os.path.join(folder, name))
        self.message = os.path.join(folder, "termination-log")
        open(self.message, "w").close()
        self.limit = (spec.get("resources", {}).get("limits") or {}).get("memory")
        self.group = os.path.join(CGROUPS, "stoker-test", os.path.basename(os.path.dirname(folder)) + "-" + spec["name"])

    def start(self, volumes):
        spec, at = self.spec, self.folder
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": self.pod.host, "HOME": "/root",
                     "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
        for each in spec.get("env", []):
            reference = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            variables[each["name"]] = self.pod.field(reference) if reference else expand(each.get("value", ""), variables)
        words = [expand(word, variables) for word in spec.get("command", []) + spec.get("args", [])]
        mounts = [f"mount -t overlay overlay -o lowerdir=/,upperdir={at}/up,workdir={at}/work {at}/root",
                  f"mount -t proc proc {at}/root/proc", f"mount --rbind /sys {at}/root/sys",
                  f"mount --bind {self.pod.hosts} {at}/root/etc/hosts"]
        for each in spec.get("volumeMounts", []):
            path = os.path.join(at, "root") + each["mountPath"]
            mounts.append(f"mkdir -p '{path}'; mount --bind '{volumes[each['name']]}' '{path}'")
        mounts += [f"mount -t tmpfs tmpfs {at}/root/dev", f"mkdir {at}/root/dev/shm"]
        for device in ("null", "zero", "full", "random", "urandom", "tty"):
            mounts.append(f"touch {at}/root/dev/{device}; mount --bind /dev/{device} {at}/root/dev/{device}")
        mounts.append(f"ln -s /proc/self/fd {at}/root/dev/fd; touch {at}/root/dev/termination-log; mount --bind {self.message} {at}/root/dev/termination-log")
        for each in spec.get("volumeMounts", []):
            if each["mountPath"].startswith("/dev/"):
                path = os.path.join(at, "root") + each["mountPath"]
                mounts.append(f"mkdir -p '{path}'; mount --bind '{volumes[each['name']]}' '{path}'")
        work = spec.get("workingDir", "/")
        script = f"set -e\necho '{self.pod.host}' >/proc/sys/kernel/hostname\n" + "\n".join(mounts) + f"\nmkdir -p '{at}/root{work}'\necho >{at}/begun\nexec chroot {at}/root /usr/bin/env -i --chdir='{work}' \"$@\""
        words = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child=KILL", "sh", "-c", script, "container",
                 *[f"{key}={value}" for key, value in variables.items()], *words]
        tasks = None
        if self.limit and os.path.isdir(CGROUPS):
            os.makedirs(self.group, exist_ok=True)
            with open(os.path.join(self.group, "memory.limit_in_bytes"), "w") as file:
                file.write(str(bytes_of(self.limit)))
            tasks = os.path.join(self.group, "tasks")

        def begin():
            # Every second rank as under a runtime that was started by nohup: what is ignored is handed down. Else as anywhere.
            signal.signal(signal.SIGHUP, signal.SIG_IGN if self.pod.host[-1:] in "13579" else signal.SIG_DFL)
            if tasks:
                with open(tasks, "w") as file:
                    file.write(str(os.getpid()))
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=begin,
                                        start_new_session=True)
        # As a runtime: it has begun when its program has, and can be told to end. A first process without a handler is told nothing.
        end = time.monotonic() + 30
        while not os.path.exists(f"{at}/begun") and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        self.started = now()
        self.state = {"running": {"startedAt": self.started}}
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
            with self.changed:
                self.lines.append((stamp, line))
                self.changed.notify_all()

    def wait(self):
        code = self.process.wait()
        # The last lines are read; a stray that would hold the pipe is gone with its namespace.
        self.reader.join(2)
        reason = "Completed" if code == 0 else "Error"
        if self.limit and os.path.isdir(self.group):
            with open(os.path.join(self.group, "memory.oom_control")) as file:
                if any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file):
                    reason = "OOMKilled"
            for _ in range(20):
                try:
                    os.rmdir(self.group)
                    break
                except OSError:
                    time.sleep(0.05)
        with open(self.message, errors="replace") as file:
            message = file.read(4096)
        self.state = {"terminated": {"exitCode": code if code >= 0 else 128 - code, "reason": reason, "startedAt": self.started,
                                     "finishedAt": now(), **({"message": message} if message else {})}}
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        return code

    def signal(self, number):
        """To the first process of the container."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
                children = file.read().split()
            for child in children:
                os.kill(int(child), number)
        except (OSError, ValueError):
            pass

    def status(self):
        return {"name": self.spec["name"], "image": self.spec["image"], "imageID": "", "restartCount": 0, "ready": "running" in self.state,
                "started": "running" in self.state, "state": self.state}


class Pod:
    def __init__(self, runner, thing):
        self.runner, self.thing = runner, thing
        meta = thing["metadata"]
        self.space, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.host = thing["spec"].get("hostname", self.name)
        self.folder = os.path.join(runner.folder, self.uid)
        os.makedirs(os.path.join(self.folder, "volumes"))
        self.hosts = os.path.join(self.folder, "hosts")
        self.containers, self.inits, self.deadline = {}, {}, None
        self.stop = threading.Event()
        self.phase, self.gone = "Pending", False

    @property
    def path(self):
        return f"/api/v1/namespaces/{self.space}/pods/{self.name}"

    def field(self, path):
        meta = self.thing["metadata"]
        for kind in ("annotations", "labels"):
            if path.startswith(f"metadata.{kind}['"):
                return meta.get(kind, {}).get(path.split("'")[1], "")
        return {"metadata.name": self.name, "metadata.namespace": self.space, "metadata.uid": self.uid,
                "spec.nodeName": self.thing["spec"]["nodeName"], "status.podIP": "127.0.0.1"}.get(path, "")

    def write_volumes(self):
        made = {}
        for volume in self.thing["spec"].get("volumes", []):
            path = os.path.join(self.folder, "volumes", volume["name"])
            if "hostPath" in volume:
                path = volume["hostPath"]["path"]
                if not os.path.isdir(path):
                    raise RuntimeError(f'hostPath type check failed: {path} is not a directory')
            elif "persistentVolumeClaim" in volume:
                path = self.runner.folder_of_claim(self.space, volume["persistentVolumeClaim"]["claimName"])
            else:
                os.makedirs(path, exist_ok=True)
            for item in volume.get("downwardAPI", {}).get("items", []):
                at = os.path.join(path, item["path"])
                with open(at + ".new", "w") as file:
                    file.write(self.field(item["fieldRef"]["fieldPath"]))
                os.replace(at + ".new", at)
            made[volume["name"]] = path
        return made

    def report(self):
        conditions = [{"type": kind, "status": "True" if good else "False", "lastTransitionTime": now()} for kind, good in (
            ("Initialized", self.phase != "Pending"), ("Ready", self.phase == "Running"), ("ContainersReady", self.phase == "Running"))]
        status = {"phase": self.phase, "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "hostIP": "127.0.0.1", "startTime": self.began,
                  "conditions": conditions, "containerStatuses": [each.status() for each in self.containers.values()],
                  "initContainerStatuses": [each.status() for each in self.inits.values()]}
        self.runner.api.call("PATCH", self.path + "/status", {"status": status}, "application/strategic-merge-patch+json")

    def run(self):
        try:
            self.live()
        except Exception as wrong:  # of the test's own kubelet: told as a kubelet tells what it cannot do
            print(f"pod {self.name}: {wrong!r}", file=sys.stderr, flush=True)
            self.phase = "Failed"
            try:
                self.report()
            except OSError:
                pass
        if self.stop.is_set():
            # As a kubelet: what never ran is over too, and its Job waits for that.
            if self.phase not in ("Succeeded", "Failed"):
                self.phase = "Failed"
                self.report()
            self.remove()

    def live(self):
        self.began = now()
        spec = self.thing["spec"]
        with open(self.hosts, "w") as file:
            file.write("127.0.0.1 localhost " + self.host + "\n")
            # What a headless Service and the cluster's DNS do.
            if spec.get("subdomain"):
                job = self.thing["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", self.name)
                for index in range(64):
                    file.write(f"127.0.0.1 {job}-{index}.{spec['subdomain']}\n")
        for group, into in (("initContainers", self.inits), ("containers", self.containers)):
            for each in spec.get(group, []):
                into[each["name"]] = Container(os.path.join(self.folder, each["name"]), each, self)
        for each in [*self.inits.values(), *self.containers.values()]:
            if each.spec["image"].startswith("missing/"):
                each.state = {"waiting": {"reason": "ErrImagePull", "message": f"failed to pull image {each.spec['image']}: not found"}}
                self.report()
                self.stop.wait()
                return
        volumes = self.write_volumes()
        beside = []
        for each in self.inits.values():
            if self.stop.is_set():
                return self.end(beside)
            each.start(volumes)
            if each.spec.get("restartPolicy") == "Always":
                beside.append(each)
            elif self.finish([each]) != 0:
                self.end(beside)
                self.phase = "Failed"
                return self.report()
        for each in self.containers.values():
            if not self.stop.is_set():
                each.start(volumes)
        self.phase = "Running"
        if not self.stop.is_set():
            self.report()
        codes = self.finish([each for each in self.containers.values() if each.process])
        self.end(beside)
        self.phase = "Succeeded" if codes == 0 and all(each.process for each in self.containers.values()) else "Failed"
        self.report()

    def end(self, beside):
        """Of containers that run beside the others: TERM when those have ended, and KILL after what is left of the grace period."""
        for each in beside:
            each.signal(signal.SIGTERM)
        end = min(self.deadline or time.monotonic() + 30, time.monotonic() + 30)
        waits = [threading.Thread(target=each.wait) for each in beside]
        for each in waits:
            each.start()
        while any(each.is_alive() for each in waits):
            if time.monotonic() > end:
                for each in beside:
                    each.signal(signal.SIGKILL)
            time.sleep(0.01)

    def finish(self, containers):
        """0 when all ended well. TERM and KILL on the way when the pod is deleted."""
        results = {}

        def wait(each):
            results[each.spec["name"]] = each.wait()
            if len(results) < len(containers) and len(containers) > 1:
                self.report()
        threads = [threading.Thread(target=wait, args=(each,)) for each in containers]
        for each in threads:
            each.start()
        told = False
        while any(each.is_alive() for each in threads):
            if self.stop.is_set() and not told:
                told = True
                for each in containers:
                    each.signal(signal.SIGTERM)
            if self.deadline is not None and time.monotonic() > self.deadline:
                for each in containers:
                    each.signal(signal.SIGKILL)
            threads[0].join(0.02)
            if not threads[0].is_alive():
                for each in threads[1:]:
                    each.join(0.02)
        return max([abs(code) for code in results.values()] or [0])

    def seen(self, thing):
        self.thing = thing
        if thing["metadata"].get("deletionTimestamp"):
            grace = thing["metadata"].get("deletionGracePeriodSeconds", 30)
            deadline = time.monotonic() + grace
            self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)
            if not self.stop.is_set():
                self.stop.set()
                if self.phase in ("Succeeded", "Failed"):
                    threading.Thread(target=self.remove, daemon=True).start()
        try:
            self.write_volumes()
        except (OSError, RuntimeError):
            pass

    def vanished(self):
        """Taken from the API: a kubelet then kills what runs."""
        self.deadline = time.monotonic()
        self.stop.set()

    def remove(self):
        self.runner.api.call("DELETE", self.path + "?gracePeriodSeconds=0", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                                                                             "preconditions": {"uid": self.uid}})
        self.gone = True


class Runner:
    def __init__(self, api, folder, nodes, gpus, cpus, memory, port, tls):
        self.api, self.folder, self.pods, self.lock = api, folder, {}, threading.Lock()
        self.claims = {}
        self.nodes = nodes
        self.serve(port, tls)
        for name in nodes:
            self.make_node(name, gpus, cpus, memory)

    def make_node(self, name, gpus, cpus, memory):
        amounts = {"cpu": str(cpus), "memory": memory, "pods": "110", "ephemeral-storage": "100Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "stoker.test/runs": "yes"}
        taints = []
        if gpus:
            labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB"
            taints = [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}] if name.endswith("-tainted") else []
        self.api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
                                                "spec": {"taints": taints}})
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]
        self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": amounts, "allocatable": amounts, "conditions": ready, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}}}}, "application/strategic-merge-patch+json")

    def folder_of_claim(self, space, claim):
        if (space, claim) not in self.claims:
            volume = self.api.call("GET", f"/api/v1/namespaces/{space}/persistentvolumeclaims/{claim}")[1]["spec"]["volumeName"]
            self.claims[space, claim] = self.api.call("GET", f"/api/v1/persistentvolumes/{volume}")[1]["spec"]["hostPath"]["path"]
        return self.claims[space, claim]

    def serve(self, port, tls):
        runner = self

        class Logs(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                parts = urllib.parse.urlsplit(self.path)
                words, query = parts.path.strip("/").split("/"), urllib.parse.parse_qs(parts.query)
                if words[0] != "containerLogs" or len(words) != 4:
                    return self.send_error(404)
                with runner.lock:
                    pod = next((each for each in runner.pods.values() if each.space == words[1] and each.name == words[2]), None)
                container = pod and (pod.containers.get(words[3]) or pod.inits.get(words[3]))
                if not container or not container.process:
                    return self.send_error(400, "container is waiting to start")
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                since, at = query.get("sinceTime", [""])[0].replace("Z", ""), 0
                follow, stamps = query.get("follow", ["false"])[0] == "true", query.get("timestamps", ["false"])[0] == "true"
                try:
                    while True:
                        with container.changed:
                            if follow and at == len(container.lines) and not container.ended:
                                container.changed.wait(1)
                            lines, ended = container.lines[at:], container.ended
                            at += len(lines)
                        text = b"".join((stamp.encode() + b" " if stamps else b"") + line for stamp, line in lines if stamp[:len(since)] >= since)
                        if text:
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                            self.wfile.flush()
                        elif not follow or ended:
                            break
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Logs)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def take(self, kind, thing):
        meta = thing["metadata"]
        with self.lock:
            pod = self.pods.get(meta["uid"])
            if kind == "DELETED":
                if pod:
                    pod.vanished()
                    threading.Timer(5, lambda: self.pods.pop(meta["uid"], None)).start()
                return
            if thing["spec"].get("nodeName") not in self.nodes:
                return
            if pod is None:
                if thing.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                    return
                pod = self.pods[meta["uid"]] = Pod(self, thing)
                fresh = True
            else:
                fresh = False
        pod.seen(thing)
        if fresh:
            threading.Thread(target=pod.run, daemon=True).start()

    def watch(self):
        while True:
            try:
                status, listed = self.api.call("GET", "/api/v1/pods")
                uids = set()
                for thing in listed["items"]:
                    uids.add(thing["metadata"]["uid"])
                    self.take("ADDED", thing)
                for uid in [each for each in self.pods if each not in uids]:
                    self.pods[uid].vanished()
                version = listed["metadata"]["resourceVersion"]
                with self.api.open("GET", f"/api/v1/pods?watch=true&resourceVersion={version}&allowWatchBookmarks=true", timeout=3600) as answer:
                    for line in answer:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        if event["type"] != "BOOKMARK":
                            self.take(event["type"], event["object"])
            except (OSError, urllib.error.URLError, ValueError, TypeError, KeyError) as wrong:
                print("watch:", repr(wrong), file=sys.stderr, flush=True)
                time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--tls", nargs=2, required=True)
    parser.add_argument("--nodes", nargs="+", required=True)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--cpus", type=int, default=64)
    parser.add_argument("--memory", default="256Gi")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    runner = Runner(Api(given.kubeconfig), given.folder, given.nodes, given.gpus, given.cpus, given.memory, 0, given.tls)
    runner.watch()


if __name__ == "__main__":
    main()
