#!/usr/bin/env python3
"""Pods that really wait (tests/kube) are explained by stoker doctor --read, with a remedy after which they really run.

Skipped where ./dev kube has not built it. STOKER_RECORD=FOLDER keeps what kubectl printed: tests/kube/recorded is made so."""

import json
import os
import shlex
import shutil
import subprocess

import yaml

import kube
from harness import check
from kube_cases import clean, cluster, ready, run


def scheduled(c, space, count=1):
    def all_have_nodes():
        pods = [each for each in c.request("GET", f"/api/v1/namespaces/{space}/pods")[1]["items"]
                if each["metadata"]["name"].startswith("train")]
        return len([each for each in pods if each["spec"].get("nodeName")]) >= count
    return all_have_nodes


def doctor(t, c, space, cause, name=None):
    """What stoker says about the cluster, as JSON and as YAML; the first conclusion is the cause."""
    kinds = "pods,nodes,events,resourcequotas"
    texts = {form: c.kubectl("get", kinds, "-A", "-o", form).stdout for form in ("json", "yaml")}
    if os.environ.get("STOKER_RECORD"):
        with open(os.path.join(os.environ["STOKER_RECORD"], f"{name or cause}.yaml"), "w") as file:
            file.write(texts["yaml"])
    said = []
    for form, text in texts.items():
        done = subprocess.run([t.binary, "doctor", "--read", "-", "-o", "json"], input=text, text=True, capture_output=True,
                              env=t.environment, cwd=t.work, timeout=60)
        check(done.returncode == 1, f"{form}: {done.returncode} {done.stdout}{done.stderr}")
        answer = json.loads(done.stdout)
        check(f"[{cause}]" in answer["conclusion"], f"{form}: {answer['conclusion']}")
        first = next(each for each in answer["files"][0]["checks"] if each["name"] == "pod-pending" and each["verdict"] == "fail")
        check(first["fix"], first)
        said.append((answer["conclusion"], first["fix"]))
    check(said[0] == said[1], f"as JSON and as YAML: {said}")
    # describe says less: neither affinity nor gates nor the scheduler's name, and no nodes.
    if cause not in ("gate", "scheduler", "cordoned"):
        c.until("there is an event", lambda: any(
            each["reason"] in ("FailedScheduling", "FailedCreate") and each["involvedObject"]["name"].startswith("train")
            for each in c.request("GET", f"/api/v1/namespaces/{space}/events")[1]["items"]))
        # Of several objects at once kubectl prints no events.
        what = "pod/train" if c.pod("train", space) else "job/train"
        described = t.write("described.txt", c.kubectl("describe", what, "-n", space).stdout)
        if os.environ.get("STOKER_RECORD") and cause in ("taint", "quota", "selector"):
            shutil.copy(described, os.path.join(os.environ["STOKER_RECORD"], f"{name or cause}.txt"))
        t.write("nodes.yaml", c.kubectl("get", "nodes", "-o", "yaml").stdout)
        answer = t.json("doctor", "--read", "described.txt", "nodes.yaml", exit=1)
        check(f"[{cause}]" in answer["conclusion"],
              f"described: {answer['conclusion']}\n{open(os.path.join(t.work, 'described.txt')).read()}")
    return said[0]


def waits(c, space, name="train"):
    """Until the scheduler has said why."""
    def told():
        pod = c.pod(name, space)
        return pod and any(each["type"] == "PodScheduled" and each["status"] == "False" for each in pod["status"].get("conditions", []))
    c.until(f"the scheduler says why {space}/{name} waits", told)


def again(c, space, pod, **changes):
    """The pod with a remedy: what was pending can mostly not be changed, so it is made anew."""
    c.request("DELETE", f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
    c.until("the old pod is gone", lambda: c.pod(pod["metadata"]["name"], space) is None)
    changed = json.loads(json.dumps(pod))
    for key, value in changes.items():
        if key == "limits":
            changed["spec"]["containers"][0]["resources"] = {"limits": {name: str(each) for name, each in value.items()}}
        elif value is None:
            changed["spec"].pop(key, None)
        else:
            changed["spec"][key] = value
    c.create(changed, space=space)


def words_of(fix, begin):
    """The words of the kubectl command in a remedy that begins so."""
    at = fix.index(begin)
    return shlex.split(fix[at:].split(";")[0])[1:]


def settled(c, space, *pods):
    for name in pods:
        c.until(f"{name} runs", lambda: (c.pod(name, space) or {}).get("status", {}).get("phase") == "Running")


def case(t, space, nodes, objects, cause, remedy, pending=True, name=None, settle=None):
    """A pod that waits, what is said about it, and that it runs after the remedy."""
    try:
        return case_in(cluster(), t, space, nodes, objects, cause, remedy, pending, name, settle)
    finally:
        clean(cluster(), space)


def case_in(c, t, space, nodes, objects, cause, remedy, pending, name, settle):
    c.namespace(space)
    c.create(*nodes)
    ready(c)
    c.create(*objects[:-1], space=space)
    if settle:
        c.until("what the pod needs is there", lambda: settle(c, space))
    c.create(objects[-1], space=space)
    if pending:
        waits(c, space)
    conclusion, fix = doctor(t, c, space, cause, name)
    remedy(c, space, objects[-1], fix)
    c.until(f"the pod has a node after: {fix}", scheduled(c, space))
    return conclusion, fix


def test_a_taint_is_not_tolerated(t):
    def remedy(c, space, pod, fix):
        tolerations = yaml.safe_load(fix)["tolerations"]
        check(tolerations == [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}], fix)
        again(c, space, pod, tolerations=tolerations)
    case(t, "taint", [kube.plain_node("system-0"), kube.gpu_node("gpu-0")], [kube.gpu_pod("train", gpus=8, tolerations=())], "taint", remedy)


def test_a_spot_taint_too(t):
    def remedy(c, space, pod, fix):
        again(c, space, pod, tolerations=pod["spec"]["tolerations"] + yaml.safe_load(fix)["tolerations"])
    conclusion, _ = case(t, "spot", [kube.gpu_node("spot-0", spot=True)], [kube.gpu_pod("train")], "taint", remedy, name="spot")
    check("scalesetpriority" in conclusion, conclusion)


def test_no_node_has_as_many_gpus(t):
    def remedy(c, space, pod, fix):
        limits = yaml.safe_load(fix.split("\n(")[0])["resources"]["limits"]
        check(limits == {"nvidia.com/gpu": 8}, fix)
        again(c, space, pod, limits=limits)
    case(t, "never", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", gpus=16)], "not-enough-gpus", remedy, name="never-enough-gpus")


def test_the_gpus_are_taken(t):
    c = cluster()
    c.namespace("taken")
    c.create(kube.gpu_node("gpu-0"), kube.gpu_node("gpu-1"))
    c.create(kube.gpu_pod("other-0", gpus=6), kube.gpu_pod("other-1", gpus=6), space="taken")
    settled(c, "taken", "other-0", "other-1")
    c.create(kube.gpu_pod("train", gpus=4), space="taken")
    waits(c, "taken")
    conclusion, fix = doctor(t, c, "taken", "not-enough-gpus", "gpus-taken")
    check("at most 2 free together on one, 4 in all" in conclusion and "fragmented" in conclusion, conclusion)
    check(fix.startswith("wait for a job to end"), fix)
    c.request("DELETE", "/api/v1/namespaces/taken/pods/other-1?gracePeriodSeconds=0")
    c.until("the pod has a node once a job has ended", scheduled(c, "taken"))
    clean(c, "taken")


def test_the_name_of_the_resource_is_wrong(t):
    def remedy(c, space, pod, fix):
        limits = yaml.safe_load(fix)["resources"]["limits"]
        check(limits == {"nvidia.com/gpu": 2}, fix)
        again(c, space, pod, limits=limits)
    case(t, "name", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", gpus=2, resource="nvidia.com/gpus")], "no-gpu-resource",
         remedy, name="wrong-resource-name")


def test_no_device_plugin(t):
    def remedy(c, space, pod, fix):
        check("device-plugin" in fix and "sku=gpu:NoSchedule" in fix, fix)
        # What the plugin does once it runs.
        c.request("PATCH", "/api/v1/nodes/gpu-0/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}},
                  "application/merge-patch+json")
    case(t, "plugin", [kube.gpu_node("gpu-0", gpus=0)], [kube.gpu_pod("train")], "no-gpu-resource", remedy, name="no-device-plugin")


def test_a_selector_that_no_node_meets(t):
    def remedy(c, space, pod, fix):
        selector = yaml.safe_load(fix)["nodeSelector"]
        check(selector == {"agentpool": "h100"}, fix)
        again(c, space, pod, nodeSelector=selector)
    case(t, "selector", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", nodeSelector={"agentpool": "a100"})], "selector", remedy)


def test_an_affinity_that_no_node_meets(t):
    def affinity(*expressions):
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}

    def remedy(c, space, pod, fix):
        expressions = yaml.safe_load(fix)["matchExpressions"]
        check(expressions == [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}], fix)
        again(c, space, pod, affinity=affinity(*expressions))
    wanted = affinity({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB", "NVIDIA-H200"]})
    case(t, "affinity", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", affinity=wanted)], "selector", remedy, name="affinity")


def test_a_cordoned_node(t):
    c = cluster()
    node = kube.gpu_node("gpu-0")
    node["spec"]["unschedulable"] = True
    case(t, "cordoned", [node], [kube.gpu_pod("train")], "cordoned",
         lambda c, space, pod, fix: c.kubectl(*words_of(fix, "kubectl uncordon")), name="cordoned")


def test_too_little_memory(t):
    def remedy(c, space, pod, fix):
        check("resources.requests.memory" in fix, fix)
        again(c, space, pod, containers=[dict(pod["spec"]["containers"][0], resources={"limits": {"nvidia.com/gpu": "1"}, "requests": {"memory": "1Ti"}})])
    pod = kube.gpu_pod("train")
    pod["spec"]["containers"][0]["resources"]["requests"] = {"memory": "3Ti"}
    case(t, "memory", [kube.gpu_node("gpu-0")], [pod], "cpu-or-memory", remedy)


def test_a_container_that_prepares_asks_for_more(t):
    def remedy(c, space, pod, fix):
        check("resources.requests.cpu" in fix, fix)
        again(c, space, pod, initContainers=None)
    pod = kube.gpu_pod("train", initContainers=[{"name": "get", "image": "registry.example/get:1", "resources": {"requests": {"cpu": "200"}}}])
    conclusion, _ = case(t, "init", [kube.gpu_node("gpu-0")], [pod], "cpu-or-memory", remedy, name="init")
    check("too little cpu free for the 200" in conclusion, conclusion)


def test_other_pods_are_in_the_way(t):
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    first, second = kube.gpu_pod("other", affinity=alone), kube.gpu_pod("train", affinity=alone)
    for pod in (first, second):
        pod["metadata"]["labels"] = {"app": "train"}

    def remedy(c, space, pod, fix):
        check(fix.startswith("as many nodes as there are such pods"), fix)
        c.create(kube.gpu_node("gpu-1"))
    c = cluster()
    try:
        c.namespace("neighbours")
        c.create(kube.gpu_node("gpu-0"))
        c.create(first, space="neighbours")
        settled(c, "neighbours", "other")
        c.create(second, space="neighbours")
        waits(c, "neighbours")
        remedy(c, "neighbours", second, doctor(t, c, "neighbours", "other-pods")[1])
        c.until("the pod has a node", scheduled(c, "neighbours"))
    finally:
        clean(c, "neighbours")


def test_a_volume_in_another_zone(t):
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "zonal"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal", "hostPath": {"path": "/nowhere"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eastus2-3"]}]}]}}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal", "resources": {"requests": {"storage": "1Gi"}}}}
    pod = kube.gpu_pod("train", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])

    def remedy(c, space, pod, fix):
        check("GPU pool in the volume's zone" in fix, fix)
        c.create(kube.gpu_node("gpu-1", labels={"topology.kubernetes.io/zone": "eastus2-3"}))
    case(t, "zone", [kube.gpu_node("gpu-0")], [volume, claim, pod], "volume", remedy, name="zone", settle=lambda c, space:
         c.request("GET", f"/api/v1/namespaces/{space}/persistentvolumeclaims/data")[1]["status"]["phase"] == "Bound")


def test_a_claim_that_is_not_there(t):
    def remedy(c, space, pod, fix):
        # The volume that a provisioner would make.
        c.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk-0"},
                  "spec": {"capacity": {"storage": "200Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"},
                           "storageClassName": ""}})
        c.kubectl("create", "-n", space, "-f", "-", input=fix)
    pod = kube.gpu_pod("train", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}}])
    case(t, "claim", [kube.gpu_node("gpu-0")], [pod], "volume", remedy)


def job_case(t, space, pod, cause, begin, replace=("", ""), before=()):
    """The same for a Job that gets no pod; the remedy is a command."""
    try:
        return job_case_in(cluster(), t, space, pod, cause, begin, replace, before)
    finally:
        clean(cluster(), space)


def job_case_in(c, t, space, pod, cause, begin, replace, before):
    c.namespace(space)
    c.create(kube.gpu_node("gpu-0"))
    c.create(*before, space=space)
    settled(c, space, *[each["metadata"]["name"] for each in before if each["kind"] == "Pod"])
    # A quota counts pods that came before it a moment later, and lets others in meanwhile.
    c.until("the quota has counted", lambda: all(
        set(each.get("status", {}).get("used", {}).values()) - {"0"}
        for each in c.request("GET", f"/api/v1/namespaces/{space}/resourcequotas")[1]["items"]))
    c.create(kube.job("train", pod), space=space)
    c.until("the controller says why it makes no pod", lambda: any(
        each["reason"] == "FailedCreate" for each in c.request("GET", f"/api/v1/namespaces/{space}/events")[1]["items"]))
    conclusion, fix = doctor(t, c, space, cause, space)
    c.kubectl(*[each.replace(*replace) if replace[0] else each for each in words_of(fix, begin)])
    c.until(f"the Job's pod has a node after: {fix}", scheduled(c, space))
    return conclusion


def test_a_quota_in_a_job(t):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}
    conclusion = job_case(t, "quota", kube.gpu_pod("x", gpus=2), "quota", "kubectl patch resourcequota", ('"N"', '"8"'),
                          [quota, kube.gpu_pod("other", gpus=4)])
    check("Job quota/train gets no pod" in conclusion and "quota/gpus" in conclusion, conclusion)


def test_an_unknown_priority_class_in_a_job(t):
    conclusion = job_case(t, "priority", kube.gpu_pod("x", priorityClassName="nosuch"), "refused", "kubectl create priorityclass")
    check("PriorityClass nosuch" in conclusion, conclusion)


def test_an_unknown_service_account_in_a_job(t):
    job_case(t, "account", kube.gpu_pod("x", serviceAccountName="trainer"), "refused", "kubectl create serviceaccount")


def test_a_scheduling_gate(t):
    case(t, "gate", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])], "gate",
         lambda c, space, pod, fix: c.kubectl(*words_of(fix, "kubectl patch pod")))


def test_an_unknown_scheduler(t):
    def remedy(c, space, pod, fix):
        check("without spec.schedulerName" in fix, fix)
        again(c, space, pod, schedulerName=None)
    case(t, "scheduler", [kube.gpu_node("gpu-0")], [kube.gpu_pod("train", schedulerName="volcano")], "scheduler", remedy, pending=False)


def test_a_claim_on_devices(t):
    c = cluster()
    check(("resource.k8s.io/v1", "ResourceSlice") in c.kinds(), "DRA is part of 1.34 and newer")
    c.create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example"},
              "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example'"}}]}})
    pod = kube.gpu_pod("train", gpus=0, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "one-gpu"}])
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"},
                "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}]}}}}

    def remedy(c, space, pod, fix):
        check("resourceslices" in fix, fix)
        # What a driver of the devices does once it runs.
        c.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "gpu-0"},
                  "spec": {"driver": "gpu.example", "nodeName": "gpu-0", "pool": {"name": "gpu-0", "generation": 1, "resourceSliceCount": 1},
                           "devices": [{"name": "gpu-0"}]}})
    case(t, "devices", [kube.gpu_node("gpu-0", gpus=0)], [template, pod], "device-claim", remedy)


if __name__ == "__main__":
    run(dict(globals()))
