"""A Kubernetes of one's own for tests: the real API server, controllers and scheduler of tests/kube on fake GPU nodes.

    with kube.Cluster(kube.program()) as cluster:
        cluster.create(kube.gpu_node("gpu-0"), kube.gpu_node("gpu-1", gpus=4))
        cluster.kubectl("get", "nodes")

One TCP port on the loopback, all else in one folder; up in 3 to 5 s. The processes die with the one that started them,
however it ends, and folders of dead ones are removed by the next. Any user, several clusters at once."""

import ctypes
import json
import os
import random
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "..", "kube")
LIMIT_S = 90  # for what takes seconds, on a machine that does other things
PREFIX = "stoker-kube-"
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Missing(Exception):
    """There is no Kubernetes here; says why."""


class Broken(Exception):
    pass


def program(build=False):
    """The path of the program of tests/kube; it is only looked for, unless `build`."""
    done = subprocess.run([os.path.join(FILES, "build.sh"), *([] if build else ["--look"])], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=6000)
    if done.returncode != 0:
        raise Missing((done.stderr.strip().splitlines() or ["build.sh failed"])[-1])
    return done.stdout.strip()


def with_parent(parent):
    """What a child does first: it is killed when the process that started it is gone."""
    libc = ctypes.CDLL(None, use_errno=True)

    def begin():
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
    return begin


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def remove_leftovers():
    """Folders of test runs that were killed."""
    base = tempfile.gettempdir()
    for name in os.listdir(base):
        owner = name[len(PREFIX):].split("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not alive(int(owner)):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def free_port():
    """Below the ports that the system hands out itself, so that it is still free when the server takes it."""
    for port in random.sample(range(20000, 32000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise Broken("no free port between 20000 and 32000")


class Cluster:
    def __init__(self, kube, apiserver=(), gates="", users=(), fake_nodes=True):
        """apiserver: more options for it; gates: feature gates of all parts; users: lines of the token file."""
        self.kube = kube
        self.apiserver, self.users, self.fake_nodes = list(apiserver), list(users), fake_nodes
        self.gates = ["--feature-gates=" + gates] if gates else []
        self.parts = {}

    def __enter__(self):
        remove_leftovers()
        self.folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        try:
            self.up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)

    def openssl(self, *words):
        # Certificates that have been good for a while, as those of other clusters, also for who is an hour behind.
        faked = {"LD_PRELOAD": FAKETIME, "FAKETIME": "-1d"} if os.path.exists(FAKETIME) else {}
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True, timeout=LIMIT_S, env=dict(os.environ, **faked))

    def up(self):
        self.port, self.token = free_port(), secrets.token_hex(16)
        self.url = f"https://127.0.0.1:{self.port}"
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "4",
                     "-subj", "/CN=stoker-test", "-keyout", "tls.key", "-out", "tls.crt", "-addext",
                     "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc")
        # A client who shows client.crt and client.key may do everything, too.
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        self.openssl("req", "-x509", *key, "-days", "4", "-subj", "/CN=clients", "-keyout", "client-ca.key", "-out", "client-ca.crt")
        self.openssl("req", *key, "-subj", "/O=system:masters/CN=alice", "-keyout", "client.key", "-out", "client.csr")
        self.openssl("x509", "-req", "-in", "client.csr", "-CA", "client-ca.crt", "-CAkey", "client-ca.key", "-CAcreateserial", "-days", "4", "-out", "client.crt")
        self.write("tokens.csv", "\n".join([f"{self.token},admin,admin,system:masters", *self.users]) + "\n")
        self.write("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": self.path("tls.crt")}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}]}))
        self.tls = ssl.create_default_context(cafile=self.path("tls.crt"))
        # etcd on Unix sockets of this folder, named by relative paths: their length has a limit.
        self.start("etcd", "--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "warn",
                   "--listen-client-urls", "unix://etcd:0", "--advertise-client-urls", "unix://etcd:0",
                   "--listen-peer-urls", "unix://peer:0", "--initial-advertise-peer-urls", "unix://peer:0",
                   "--initial-cluster", "default=unix://peer:0")
        self.start("kube-apiserver", "--etcd-servers", "unix://etcd:0", "--bind-address", "127.0.0.1", "--advertise-address",
                   "127.0.0.1", "--secure-port", str(self.port), "--endpoint-reconciler-type", "none",
                   "--service-cluster-ip-range", "10.0.0.0/16", "--allow-privileged", "--authorization-mode", "RBAC",
                   "--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key", "--token-auth-file", "tokens.csv", "--client-ca-file", "client-ca.crt",
                   "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-signing-key-file",
                   "sa.key", "--service-account-key-file", "sa.key", *self.gates, *self.apiserver)
        self.until("the API server is ready", lambda: self.request("GET", "/readyz")[0] == 200)
        client = ["--kubeconfig", "kubeconfig"]
        patient = [*client, "--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "1000", "--kube-api-burst", "2000"]
        self.start("kube-controller-manager", *patient, "--service-account-private-key-file", "sa.key", "--root-ca-file",
                   "tls.crt", "--node-monitor-grace-period", "1h", *self.gates)
        self.start("kube-scheduler", *patient, *self.gates)
        if self.fake_nodes:
            self.start("kwok", *client, "--manage-all-nodes", "--node-lease-duration-seconds", "0", "--cidr", "10.244.0.0/16",
                       "--node-ip", "127.0.0.1", "--config", os.path.join(FILES, "stages.yaml"))
        self.until("pods can be made", lambda: self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200)

    def start(self, part, *words):
        with open(self.path(part + ".log"), "w") as log:
            self.parts[part] = subprocess.Popen([self.kube, part, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log, preexec_fn=with_parent(os.getpid()), start_new_session=True)

    def until(self, what, condition, limit_s=LIMIT_S):
        """The first true value of condition(); fails with the end of a log when a part of the cluster died."""
        end = time.monotonic() + limit_s
        while True:
            for part, process in self.parts.items():
                if process.poll() is not None:
                    tail = open(self.path(part + ".log"), errors="replace").read()[-1500:]
                    raise Broken(f"{part} ended with {process.returncode} before {what}:\n{tail}")
            try:
                value = condition()
            except (OSError, urllib.error.URLError):
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise Broken(f"not within {limit_s} s: {what}")
            time.sleep(0.05)

    def request(self, method, path, body=None, content="application/json", token=None):
        """(status, answer) of the API server; what is not 2xx is no exception."""
        data = body if body is None or isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        query = urllib.request.Request(self.url + path, data=data, method=method, headers={
            "Authorization": "Bearer " + (token or self.token), "Content-Type": content, "Accept": "application/json"})
        try:
            with urllib.request.urlopen(query, timeout=30, context=self.tls) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def kubectl(self, *words, input=None, exit=0):
        done = subprocess.run([self.kube, "kubectl", "--kubeconfig", self.path("kubeconfig"), *words], input=input,
                              stdin=subprocess.DEVNULL if input is None else None, capture_output=True, text=True,
                              timeout=LIMIT_S, cwd=self.folder, env=dict(os.environ, HOME=self.folder))
        if exit is not None and done.returncode != exit:
            raise Broken(f"kubectl {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kinds(self):
        """{(apiVersion, kind): (path of the resource's group, plural, namespaced)} of all that is served."""
        if not hasattr(self, "served"):
            groups = ["/api/v1"]
            for group in self.request("GET", "/apis")[1]["groups"]:
                groups += ["/apis/" + each["groupVersion"] for each in group["versions"]]
            self.served = {}
            for path in groups:
                for each in self.request("GET", path)[1].get("resources", []):
                    if "/" not in each["name"] and "create" in each["verbs"]:
                        self.served[(path.split("/", 2)[2], each["kind"])] = (path, each["name"], each["namespaced"])
        return self.served

    def resource_path(self, version, kind, space="default"):
        """Where objects of a kind are made; None: the server does not serve it."""
        found = self.kinds().get((version, kind))
        if not found:
            return None
        path, plural, namespaced = found
        return f"{path}/namespaces/{space}/{plural}" if namespaced else f"{path}/{plural}"

    def create(self, *objects, space="default"):
        made = []
        for each in objects:
            path = self.resource_path(each["apiVersion"], each["kind"], each.get("metadata", {}).get("namespace", space))
            status, answer = self.request("POST", path, each)
            if status != 201:
                raise Broken(f"{each['kind']} {each.get('metadata', {}).get('name')}: {status} {answer}")
            made.append(answer)
        return made

    def namespace(self, name):
        """A namespace in which pods can be made."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.until(f"namespace {name}", lambda: self.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200)
        return name

    def pod(self, name, space="default"):
        status, answer = self.request("GET", f"/api/v1/namespaces/{space}/pods/{name}")
        return answer if status == 200 else None

    def close(self):
        # SIGKILL: nothing in the folder is worth keeping, and an orderly end takes seconds.
        for process in self.parts.values():
            process.kill()
        for process in self.parts.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def gpu_node(name, gpus=8, size="Standard_ND96isr_H100_v5", product="NVIDIA-H100-80GB-HBM3", pool="h100", cpus=95,
             memory="1850Gi", taints=("sku=gpu:NoSchedule",), labels=None, spot=False, resource="nvidia.com/gpu"):
    """A node as AKS and NVIDIA's GPU operator label and taint it. gpus=0: the device plugin does not run on it.
    Labels of AKS: learn.microsoft.com/azure/aks/use-labels; of GPU feature discovery: NVIDIA/k8s-device-plugin README.md."""
    own = {
        "agentpool": pool, "kubernetes.azure.com/agentpool": pool, "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia", "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux", "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": size,
        "topology.kubernetes.io/region": "eastus2", "topology.kubernetes.io/zone": "eastus2-1",
        "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus),
        **(labels or {})}
    taints = list(taints)
    if spot:
        own["kubernetes.azure.com/scalesetpriority"] = "spot"
        taints.append("kubernetes.azure.com/scalesetpriority=spot:NoSchedule")

    def taint(text):
        key, effect = text.rsplit(":", 1)
        key, _, value = key.partition("=")
        return {"key": key, "effect": effect, **({"value": value} if value else {})}
    amounts = {"cpu": str(cpus), "memory": memory, "ephemeral-storage": "900Gi", "pods": "110",
               **({resource: str(gpus)} if gpus else {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own},
            "spec": {"taints": [taint(each) for each in taints]}, "status": {"capacity": amounts, "allocatable": amounts}}


def plain_node(name, **labels):
    """A node of the system pool."""
    node = gpu_node(name, gpus=0, size="Standard_D8s_v5", pool="system", cpus=7, memory="28Gi", taints=())
    node["metadata"]["labels"] = {key: value for key, value in node["metadata"]["labels"].items()
                                  if "nvidia" not in key and "accelerator" not in key}
    node["metadata"]["labels"].update({"kubernetes.azure.com/mode": "system", **labels})
    return node


def gpu_pod(name, gpus=1, tolerations=({"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},),
            resource="nvidia.com/gpu", **spec):
    container = {"name": "main", "image": "registry.example/train:1",
                 **({"resources": {"limits": {resource: str(gpus)}}} if gpus else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [container], "tolerations": list(tolerations), **spec}}


def job(name, pod, parallelism=1, **spec):
    """A Job of such a pod."""
    template = {"metadata": {"annotations": {"stoker.test/stays": "true"}},
                "spec": dict(pod["spec"], restartPolicy="Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"parallelism": parallelism, "completions": parallelism, "template": template, **spec}}
