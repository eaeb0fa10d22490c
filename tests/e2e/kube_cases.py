"""What the tests on a real Kubernetes share: one cluster for a file, and objects as rule pages and manifests hold them."""

import os
import re
import urllib.parse

import yaml

import harness
import kube

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.join(HERE, "..", "..", "data", "lint")
the_cluster = None


def cluster():
    global the_cluster
    if the_cluster is None:
        # Alpha and beta versions too: what is not served then is gone. The plugin is one that AKS switches on.
        the_cluster = kube.Cluster(kube.program(), apiserver=["--runtime-config=api/all=true",
                                                              "--enable-admission-plugins=ExtendedResourceToleration"])
        the_cluster.__enter__()
    return the_cluster


def examples(text):
    """(good or bad, title, {file: text}) of a rule page."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        files = {name: content for name, content in re.findall(r"^```(\S+)\n(.*?)^```$", body, flags=re.M | re.S)}
        yield title.split()[0].rstrip(":"), title, files


def documents(text):
    """(first line, text) of each."""
    found, lines, first = [], [], 1
    for number, line in enumerate(text.splitlines(), 1):
        if line.rstrip() == "---":
            found.append((first, "\n".join(lines) + "\n"))
            lines, first = [], number + 1
        else:
            lines.append(line)
    found.append((first, "\n".join(lines) + "\n"))
    return [(first, text) for first, text in found if text.strip()]


def head(text):
    """apiVersion, kind and namespace, also where keys stand twice; None: no object."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    found = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    version, kind = (found.get(key) for key in ("apiVersion", "kind"))
    if not isinstance(version, yaml.ScalarNode) or not isinstance(kind, yaml.ScalarNode):
        return None
    space = "default"
    if isinstance(found.get("metadata"), yaml.MappingNode):
        space = next((value.value for key, value in found["metadata"].value if key.value == "namespace"), space)
    return version.value, kind.value, space


spaces = {"default"}


def answers(text, validation):
    """(status, message with its causes) of the API server for one document, which is not kept. None: it serves no such kind."""
    c, about = cluster(), head(text)
    if about is None:
        return None
    version, kind, space = about
    path = c.resource_path(version, kind, space)
    if path is None:
        return None
    if "/namespaces/" in path and space not in spaces:
        c.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        spaces.add(space)
    status, answer = c.request("POST", f"{urllib.parse.quote(path)}?dryRun=All&fieldValidation={validation}", text, "application/yaml")
    message = answer if isinstance(answer, str) else str(answer.get("message", ""))
    for cause in (answer.get("details") or {}).get("causes") or [] if isinstance(answer, dict) and status >= 400 else []:
        message += f"\n{cause.get('field')}: {cause.get('message')}"
    return status, message


def is_manifest(name, text):
    return name.endswith((".yaml", ".yml")) and "{{" not in text and "apiVersion:" in text


def complete(document):
    """What an example leaves out and the API server asks for, so that what is left is what the rule is about."""
    kind, spec = document["kind"], document.setdefault("spec", {})
    document.setdefault("metadata", {}).setdefault("name", "a")
    template = document if kind == "Pod" else (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec).get("template", {})
    pod = template.get("spec", {}) if kind != "Pod" else spec
    pod.setdefault("containers", [{}])  # of examples that are about syntax
    for i, container in enumerate(pod["containers"] + pod.get("initContainers", [])):
        container.setdefault("image", "registry.example/x:1")
        container.setdefault("name", f"c{i}")
    if kind in ("Job", "CronJob"):
        pod.setdefault("restartPolicy", "Never")
    if kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet") and "selector" not in spec:
        spec["selector"] = {"matchLabels": {"app": "a"}}
        template.setdefault("metadata", {}).setdefault("labels", {})["app"] = "a"
    return document


WITH_PODS = ("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet")


def clean(c, space):
    """Nothing of a case is left for the next one: pods of all namespaces, events and nodes are read together."""
    for path in (f"/apis/batch/v1/namespaces/{space}/jobs?propagationPolicy=Background", f"/api/v1/namespaces/{space}/pods?gracePeriodSeconds=0",
                 f"/api/v1/namespaces/{space}/resourcequotas"):
        c.request("DELETE", path)
    c.until("no pod is left", lambda: not c.request("GET", f"/api/v1/namespaces/{space}/pods")[1]["items"])
    c.request("DELETE", "/api/v1/nodes")
    c.request("DELETE", f"/api/v1/namespaces/{space}/events")
    c.until("no node is left", lambda: not c.request("GET", "/api/v1/nodes")[1]["items"])


def ready(c):
    c.until("the nodes are ready", lambda: all(
        any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", [])) and
        not any(taint["key"].startswith("node.kubernetes.io/not-ready") for taint in node["spec"].get("taints", []))
        for node in c.request("GET", "/api/v1/nodes")[1]["items"]))


def run(tests):
    """The tests of a file; skipped with the reason where there is no Kubernetes."""
    try:
        kube.program()
    except kube.Missing as missing:
        print(f"skipped: {missing}")
        print("0 passed, 0 failed")
        return
    try:
        harness.main(tests)
    finally:
        if the_cluster is not None:
            the_cluster.close()
