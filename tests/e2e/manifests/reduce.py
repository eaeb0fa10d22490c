#!/usr/bin/env python3
"""Takes the schemas of the kinds that are rendered out of the operators' CRDs and of a running API server, into schemas.json.

    go mod download MODULE@VERSION            for each of MODULES
    STOKER_KUBE=PROGRAM reduce.py FOLDER      the program of tests/kube; asks it for the kinds of Kubernetes itself. FOLDER has
                                              clones of REPOSITORIES, as OWNER+NAME/repo

Descriptions are left out, and what stands there several times (a pod's spec, above all) is kept once, below `shared`: test code puts
it back. All of it is under the Apache License 2.0, but for Azure's own kind, which is under the MIT License."""

import collections
import json
import pathlib
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
MODULES = {
    "sigs.k8s.io/jobset@v0.10.1": ["config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"],
    "sigs.k8s.io/kueue@v0.12.3": [f"config/components/crd/bases/kueue.x-k8s.io_{kind}.yaml"
                                  for kind in ("resourceflavors", "clusterqueues", "localqueues")],
    "github.com/ray-project/kuberay/ray-operator@v1.4.2": ["config/crd/bases/ray.io_rayjobs.yaml"],
    "github.com/kubeflow/training-operator@v1.9.3": ["manifests/base/crds/kubeflow.org_pytorchjobs.yaml"],
    "github.com/kubeflow/mpi-operator@v0.6.0": ["manifests/base/kubeflow.org_mpijobs.yaml"],
    "sigs.k8s.io/lws@v0.7.0": ["config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"],
    "github.com/kedacore/keda/v2@v2.18.1": [f"config/crd/bases/keda.sh_{kind}.yaml" for kind in ("scaledobjects", "triggerauthentications")],
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": ["example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"],
}
# In no module of Go.
REPOSITORIES = {
    "Azure/prometheus-collector@39583fd50b2f828f83cc18fc0cece9e3074f56db":
        "otelcollector/deploy/addon-chart/azure-monitor-metrics-addon/templates/ama-metrics-podmonitor-crd.yaml",
    "Mellanox/network-operator@b06827e085c59726b699faffcc526342d4d8e395": "config/crd/bases/mellanox.com_nicclusterpolicies.yaml",
}
CORE = {
    "api/v1": ["Namespace", "Service", "ConfigMap", "PersistentVolumeClaim", "ResourceQuota"],
    "apis/apps/v1": ["Deployment", "DaemonSet"], "apis/batch/v1": ["Job"], "apis/autoscaling/v2": ["HorizontalPodAutoscaler"],
    "apis/policy/v1": ["PodDisruptionBudget"], "apis/networking.k8s.io/v1": ["NetworkPolicy"],
    "apis/scheduling.k8s.io/v1": ["PriorityClass"], "apis/storage.k8s.io/v1": ["StorageClass"],
}
LEAST = 1500  # characters of a part that is kept once


def bare(value, inside=False):
    """Without descriptions; a property that is called description stays."""
    if isinstance(value, dict):
        return {k: bare(v, k == "properties") for k, v in value.items() if inside or k != "description" or not isinstance(v, str)}
    return [bare(v) for v in value] if isinstance(value, list) else value


def core_kinds():
    import kube
    out = {}
    with kube.Cluster(kube.program()) as cluster:
        for path, kinds in CORE.items():
            schemas = json.loads(cluster.kubectl("get", "--raw", f"/openapi/v3/{path}").stdout)["components"]["schemas"]

            def whole(value):
                if not isinstance(value, dict):
                    return [whole(v) for v in value] if isinstance(value, list) else value
                if "$ref" in value:
                    return whole(schemas[value["$ref"].rsplit("/", 1)[1]])
                if list(value.get("allOf", [{}])[0]) == ["$ref"]:
                    return whole(value["allOf"][0])
                return {k: whole(v) for k, v in value.items() if k not in ("default", "x-kubernetes-patch-strategy")}

            for schema in schemas.values():
                for group in schema.get("x-kubernetes-group-version-kind", []):
                    version = "/".join(filter(None, (group["group"], group["version"])))
                    if group["kind"] in kinds and path.endswith(version) and "spec" in schema["properties"] | {"spec": 0}:
                        out[f"{version} {group['kind']}"] = bare(whole(schema))
    return out


def main():
    out = {"crds": [], "core": core_kinds(), "source": sorted([*MODULES, *REPOSITORIES])}

    def take(text):
        crd = yaml.safe_load(text)
        crd["metadata"] = {"name": crd["metadata"]["name"], "annotations": crd["metadata"].get("annotations", {})}
        crd["spec"].pop("conversion", None)
        kept = [each for each in crd["spec"]["versions"] if each["storage"]]
        out["crds"].append({**crd, "spec": {**crd["spec"], "versions": bare(kept)}})
        out["crds"][-1].pop("status", None)

    for module, paths in MODULES.items():
        told = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, timeout=300, check=True)
        for path in paths:
            take((pathlib.Path(json.loads(told.stdout)["Dir"]) / path).read_text())
    for name, path in REPOSITORIES.items():
        repository, commit = name.split("@")
        folder = pathlib.Path(sys.argv[1]) / repository.replace("/", "+") / "repo"
        take(subprocess.run(["git", "-C", folder, "show", f"{commit}:{path}"], capture_output=True, text=True, check=True).stdout)
    count, parts = collections.Counter(), {}

    def look(value):
        if isinstance(value, dict):
            text = json.dumps(value, sort_keys=True)
            if len(text) >= LEAST:
                count[text] += 1
                if count[text] > 1:
                    return
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(out)

    def once(value, top=True):
        if isinstance(value, list):
            return [once(each) for each in value]
        if not isinstance(value, dict):
            return value
        text = json.dumps(value, sort_keys=True)
        if top and count[text] > 1:
            if text not in parts:
                parts[text] = str(len(parts))
                shared[parts[text]] = once(value, False)
            return {"shared": parts[text]}
        return {key: once(each) for key, each in value.items()}

    shared = {}
    out = once(out)
    out["shared"] = shared
    (HERE / "schemas.json").write_text(json.dumps(out, sort_keys=True, separators=(",", ":")).replace('{"shared":', '\n{"shared":') + "\n")


if __name__ == "__main__":
    main()
