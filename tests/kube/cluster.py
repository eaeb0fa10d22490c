#!/usr/bin/env python3
"""A cluster for tests in other languages, until its standard input ends: prints a line of JSON when it is up, and does what each line says.

    {"kubeconfig": FILE, "folder": FOLDER}        kubeconfig: through a door that can be shut
    lose               the next answer to a POST of a Job is lost behind the server's yes
    shut | open        the door: as when the API server is away
    restart            the API server, killed and started again
    cordon | uncordon  all nodes that run pods
    delete-pods        of ours that are over
    lose-jobs          all Jobs of ours, finalizers and all, as after a backup was put back
    evict | delete-jobs                  what runs; as a person would
    out-of-service NODE | in-service NODE
    create JSON | remove PATH            an object, written without blanks
    version            of the list of pods: what a watch goes on from
    watch-from N       what the API server says to that: 200, or 410 where it no longer knows
    ended              how many pods of ours are over
    quiet              true when there are no Jobs and pods of ours
    kubectl WORDS      what it prints, as JSON text
Each is answered by a line of JSON."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import kube  # noqa: E402
import pod_runner  # noqa: E402

OURS = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dstoker"
JOBS, PODS = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default/pods"


class Door:
    """In front of the API server, with its certificate: it can be shut, and can lose an answer. On one thread: a TLS connection that one
    thread reads while another writes loses what it carries, now and then."""

    def __init__(self, cluster):
        self.cluster, self.shut, self.lose = cluster, False, False
        self.links = set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cluster.path("tls.crt"), cluster.path("tls.key"))
        self.behind = ssl.create_default_context(cafile=cluster.path("tls.crt"))
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(asyncio.start_server(self.serve, sock=listener, ssl=self.context), self.loop).result(30)

    async def serve(self, reader, writer):
        if self.shut:
            return writer.transport.abort()
        try:
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self.cluster.port, ssl=self.behind, server_hostname="127.0.0.1")
        except OSError:
            return writer.transport.abort()
        link = (writer.transport, back_writer.transport)
        self.links.add(link)
        losing = False

        async def carry(source, sink, answers):
            nonlocal losing
            while data := await source.read(65536):
                if answers and losing:
                    break  # it was done, and nobody hears of it
                if not answers and self.lose and data.startswith(b"POST ") and b"/jobs " in data[:200]:
                    self.lose, losing = False, True
                sink.write(data)
                await sink.drain()
        # Whichever side ends first takes the other with it.
        ways = [asyncio.ensure_future(each) for each in (carry(reader, back_writer, False), carry(back_reader, writer, True))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for each in (writer, back_writer):
            each.close()  # after what is written
        self.links.discard(link)

    def set(self, shut):
        self.shut = shut

        def cut():
            for link in list(self.links):
                for transport in link:
                    transport.abort()
        if shut:
            self.loop.call_soon_threadsafe(cut)


class Orders:
    def __init__(self, cluster, nodes):
        self.cluster, self.nodes, self.door = cluster, nodes, Door(cluster)

    def lose(self):
        self.door.lose = True

    def shut(self):
        self.door.set(True)

    def open(self):
        self.door.set(False)

    def restart(self):
        part = self.cluster.parts["kube-apiserver"]
        words = part.args[2:]
        part.kill()
        part.wait()
        self.cluster.start("kube-apiserver", *words)
        self.cluster.until("the API server is ready again", lambda: self.cluster.request("GET", "/readyz")[0] == 200)

    def mark(self, unschedulable):
        for node in self.nodes:
            self.cluster.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": unschedulable}}, "application/merge-patch+json")

    def cordon(self):
        self.mark(True)

    def uncordon(self):
        self.mark(None)

    def ours(self, path):
        return self.cluster.request("GET", f"{path}?{OURS}")[1]["items"]

    def delete_pods(self):
        for pod in self.ours(PODS):
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                self.cluster.request("DELETE", f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")
        self.cluster.until("they are gone", lambda: not [each for each in self.ours(PODS) if each["status"]["phase"] in ("Succeeded", "Failed")])

    def lose_jobs(self):
        for job in self.ours(JOBS):
            path = f"{JOBS}/{job['metadata']['name']}"
            self.cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            self.cluster.request("DELETE", path + "?propagationPolicy=Background")
        self.cluster.until("they are gone", lambda: not self.ours(JOBS) and not self.ours(PODS))

    def evict(self):
        """Every pod of ours that runs, as a drain does."""
        for pod in self.ours(PODS):
            name = pod["metadata"]["name"]
            self.cluster.request("POST", f"{PODS}/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})

    def out_of_service(self, node):
        """As when its node is gone: the taint that has all pods deleted."""
        taint = {"key": "stoker.test/gone", "effect": "NoExecute"}
        self.cluster.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}}, "application/merge-patch+json")

    def in_service(self, node):
        self.cluster.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": None}}, "application/merge-patch+json")

    def delete_jobs(self):
        """As a person does, who waits for nothing."""
        for job in self.ours(JOBS):
            self.cluster.request("DELETE", f"{JOBS}/{job['metadata']['name']}?propagationPolicy=Background")

    def create(self, text):
        """An object, as JSON without blanks."""
        self.cluster.create(json.loads(text))

    def remove(self, path):
        return self.cluster.request("DELETE", path)[0]

    def version(self):
        return self.cluster.request("GET", PODS)[1]["metadata"]["resourceVersion"]

    def watch_from(self, version):
        status, told = self.cluster.request("GET", f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=1")
        return told["object"]["code"] if isinstance(told, dict) and told.get("type") == "ERROR" else status

    def ended(self):
        return len([each for each in self.ours(PODS) if each["status"]["phase"] in ("Succeeded", "Failed")])

    def quiet(self):
        return not self.ours(JOBS) and not self.ours(PODS)

    def kubectl(self, *words):
        return self.cluster.kubectl(*words, exit=None).stdout


def main():
    why = pod_runner.why_not()
    if why:
        sys.exit(f"no pods here: {why}")
    nodes = sys.argv[1:] or ["k1", "k2"]
    with kube.Cluster(kube.program(), fake_nodes=False) as cluster:
        log = open(cluster.path("runner.log"), "w")
        runner = subprocess.Popen([sys.executable, os.path.join(HERE, "pod_runner.py"), "--kubeconfig", cluster.path("kubeconfig"), "--folder",
                                   cluster.path("pods"), "--tls", cluster.path("tls.crt"), cluster.path("tls.key"), "--nodes", *nodes],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=kube.with_parent(os.getpid()))
        cluster.parts["runner"] = runner
        orders = Orders(cluster, nodes)

        def ready():
            listed = cluster.request("GET", "/api/v1/nodes")[1].get("items", [])
            return len([each for each in listed if any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", []))
                        and not each["spec"].get("taints")]) >= len([each for each in nodes if not each.endswith("-tainted")])
        cluster.until("nodes are ready", ready)
        with open(cluster.path("kubeconfig")) as file:
            config = json.load(file)
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{orders.door.port}"
        cluster.write("kubeconfig-door", json.dumps(config))
        print(json.dumps({"kubeconfig": cluster.path("kubeconfig-door"), "folder": cluster.folder}), flush=True)
        for line in sys.stdin:
            words = line.split()
            try:
                answer = getattr(orders, words[0].replace("-", "_"))(*words[1:])
                print(json.dumps({"ok": True, "answer": answer}), flush=True)
            except Exception as wrong:
                print(json.dumps({"ok": False, "answer": repr(wrong)}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except kube.Missing as why:
        sys.exit(f"no Kubernetes here: {why}")
