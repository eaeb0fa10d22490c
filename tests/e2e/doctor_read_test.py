#!/usr/bin/env python3
"""stoker doctor --read: files as tools write them are recognised by their content, annotated with the line and concluded
together in the order network, device, model; a file that is cut off or nobody's is refused with its place."""
import json
import os
import subprocess

import harness
from harness import check

H100 = "Standard_ND96isr_H100_v5"

SMI = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.161.08             Driver Version: 535.161.08   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  Tesla T4                       Off | 00000001:00:00.0 Off |                    0 |
| N/A   31C    P8               9W /  70W |      2MiB / 15360MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""

IB = """\
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_3
 Number of qps   : 1\t\tTransport type : IB
 Mtu             : 4096[B]
 Link type       : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             94.20              94.11   \t\t   0.179500
---------------------------------------------------------------------------------------
"""

NCCL = """\
gpu-a:412:412 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
gpu-a:412:498 [0] NCCL INFO NET/IB : No device found.
gpu-a:412:498 [0] NCCL INFO Using network Socket
gpu-b:377:455 [0] NCCL INFO Using network Socket
gpu-a:412:498 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0
"""

PERF = """\
# nThread 1 nGpus 8 minBytes 17179869184 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
 17179869184    4294967296     float     sum      -1   250500   68.58  120.02      0   250400   68.61  120.07      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 120.045
"""


def pod(message, requests="1", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "namespace": "ml"},
            "spec": {"schedulerName": "default-scheduler",
                     "containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": requests}}}], **spec},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                                                           "reason": "Unschedulable", "message": message}]}}


def node(gpus, taints=(), **labels):
    resources = {"cpu": "64", "memory": "400Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "gpu-1", "labels": {"node.kubernetes.io/instance-type": "Standard_NC64as_T4_v3", **labels}},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": resources, "capacity": resources, "conditions": [{"type": "Ready", "status": "True"}]}}


def event(reason, message, kind="Pod", name="train-0"):
    return {"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": kind, "name": name, "namespace": "ml"},
            "reason": reason, "message": message, "metadata": {"name": f"{name}.1", "namespace": "ml"}}


def listed(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}, indent=2)


def test_the_node_is_of_its_size(t):
    t.write("what-i-saved.log", SMI)
    good = t.call("doctor", "--read", "what-i-saved.log", "--size", "Standard_NC4as_T4_v3")
    check("what-i-saved.log: nvidia-smi" in good.stdout, good.stdout)
    check("nothing failed" in good.stdout, good.stdout)
    other = t.call("doctor", "--read", "what-i-saved.log", "--size", "Standard_NC24ads_A100_v4", exit=1)
    check("8:1" in other.stdout and "FAIL" in other.stdout and "Tesla T4" in other.stdout, other.stdout)
    check(all(len(line) <= 100 for line in (good.stdout + other.stdout).splitlines()), other.stdout)


def test_network_comes_before_gpus(t):
    for name, text in (("perf", PERF), ("ib", IB)):
        t.write(name, text)
    answer = t.json("doctor", "--read", "perf", "ib", "--size", H100, exit=1)
    check(answer["conclusion"].startswith("the network is at fault: ib_write_bw 94.1 of 380 Gbit/s on mlx5_3"), answer["conclusion"])
    check("GPU figures are not judged until that is mended" in answer["conclusion"], answer["conclusion"])
    perf = {each["name"]: each for each in answer["files"][0]["checks"]}
    check(perf["nccl-bandwidth"]["verdict"] == "skipped", perf)
    ib = answer["files"][1]
    check(ib["tool"] == "ib_write_bw" and ib["checks"][0]["expected"] == 380e9 / 8, ib)
    check([note["line"] for note in ib["notes"]] == [8], ib["notes"])
    alone = t.json("doctor", "--read", "perf", "--size", H100, exit=1)
    check("120" in alone["conclusion"] and "460" in alone["conclusion"], alone["conclusion"])
    check(any("ib_write_bw" in each for each in alone["open"]), alone["open"])


def test_sockets_on_an_infiniband_node(t):
    t.write("n", NCCL)
    answer = t.json("doctor", "--read", "n", "--size", H100, exit=1)
    check("NET/Socket" in answer["conclusion"], answer["conclusion"])
    check(t.json("doctor", "--read", "n")["verdict"] == "warn", "without a size nobody knows of InfiniBand")


def test_the_six_causes_of_pending(t):
    taint = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
    short = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate"
    busy = dict(pod(""), metadata={"name": "other", "namespace": "ml"}, status={"phase": "Running"})
    busy["spec"] = dict(busy["spec"], nodeName="gpu-1", containers=[{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "4"}}}])
    cases = {
        "taint": [pod("0/1 nodes are available: 1 node(s) had untolerated taint(s)."), node(4, [taint])],
        "no-gpu-resource": [pod(short), node(0)],
        "not-enough-gpus": [pod(short), node(4), busy],
        "quota": [event("FailedCreate", 'Error creating: pods "x" is forbidden: exceeded quota: gpus, requested: '
                        "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8",
                        "Job", "train")],
        "autoscaler": [pod(short), node(4), busy,
                       event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")],
        "selector": [pod("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
                         nodeSelector={"pool": "gpus"}), node(4, pool="gpu")],
    }
    for cause, objects in cases.items():
        t.write("cluster.json", listed(*objects))
        answer = t.json("doctor", "--read", "cluster.json", exit=1)
        check(f"[{cause}]" in answer["conclusion"], f"{cause}: {answer['conclusion']}")
        failed = [each for each in answer["files"][0]["checks"] if each["name"] == "pod-pending"]
        check(len(failed) == 1 and failed[0]["fix"], f"{cause}: {failed}")
    # Nodes in a file of their own, as kubectl is usually called twice.
    t.write("pods.json", listed(cases["taint"][0]))
    t.write("nodes.json", listed(cases["taint"][1]))
    text = t.call("doctor", "--read", "pods.json", "nodes.json", exit=1).stdout
    check("- key: sku\n" in text and 'value: "gpu"' in text, text)


def test_what_a_real_cluster_said(t):
    """As kubectl get -o yaml printed it (tests/kube/recorded): every cause with a remedy; two outputs in one file."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kube", "recorded")
    texts = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            texts[name] = t.write(name, file.read())
        answer = t.json("doctor", "--read", name, exit=1)
        waits = [each for each in answer["files"][0]["checks"] if each["name"] == "pod-pending" and each["verdict"] == "fail"]
        check(waits and all(each["fix"] for each in waits), f"{name}: {answer['conclusion']}")
    check(len(texts) >= 6, f"{len(texts)} recordings")
    both = "---\n".join(open(path).read() for path in (texts["taint.yaml"], texts["quota.yaml"]))
    t.write("both.yaml", both)
    checks = t.json("doctor", "--read", "both.yaml", exit=1)["files"][0]["checks"]
    check(len([each for each in checks if each["name"] == "pod-pending" and each["verdict"] == "fail"]) == 2, checks)


def test_the_json_of_measuring_tools(t):
    t.write("ib.json", json.dumps({
        "test_info": {"test": "RDMA_Write_BW_Test", "Device": "mlx5_3", "Mtu": 4096, "Link_type": "IB"},
        "results": {"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 94.2, "BW_average": 94.11, "MsgRate": 0.1795}}, indent=0))
    answer = t.json("doctor", "--read", "ib.json", "--size", H100, exit=1)
    check(answer["conclusion"] == "the network is at fault: ib_write_bw 94.1 of 380 Gbit/s on mlx5_3", answer["conclusion"])
    half = {"time": 250500.0, "alg_bw": 68.58, "bus_bw": 120.02, "nwrong": 0.0}
    t.write("nccl.json", json.dumps({
        "version": 3, "args": ["./build/all_reduce_perf"], "nccl_version": 22807, "config": {
            "nthreads": 1, "ngpus": 8, "devices": [{"rank": 0, "hostname": "gpu-a", "device_info": "NVIDIA H100 80GB HBM3"}]},
        "results": [{"size": 17179869184, "redop": "sum", "out_of_place": half, "in_place": half}],
        "average_bus_bandwidth": {"bandwidth": 120.02, "okay": "unchecked"}, "errors": []}))
    answer = t.json("doctor", "--read", "nccl.json", "--size", H100, exit=1)
    check("bus bandwidth 120 of 460 GB/s at 16 GiB" in answer["conclusion"], answer["conclusion"])


def test_an_image_that_needs_a_newer_driver(t):
    t.write("smi", SMI.replace("535.161.08   CUDA Version: 12.2", "470.182.03   CUDA Version: 11.4"))
    runs = pod("", nodeName="gpu-1")
    runs["spec"]["containers"][0]["image"] = "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime"
    runs["status"] = {"phase": "Running"}
    t.write("pod", listed(runs))
    answer = t.json("doctor", "--read", "smi", "pod", "--size", "Standard_NC4as_T4_v3", exit=1)
    check("CUDA 12.4, which needs driver 525 or newer; smi has 470.182.03" in answer["conclusion"], answer["conclusion"])
    t.write("smi", SMI)
    t.json("doctor", "--read", "smi", "pod", "--size", "Standard_NC4as_T4_v3")


def test_what_is_not_recognised_or_breaks_off(t):
    t.write("a.txt", "hello\n")
    t.write("b.txt", IB[: IB.index(" 65536")])
    refused = t.call("doctor", "--read", "a.txt", "b.txt", exit=2)
    check("a.txt:1:1" in refused.stderr and "b.txt:" in refused.stderr and "ib_write_bw" in refused.stderr, refused.stderr)
    missing = t.call("doctor", "--read", "missing.txt", "a.txt", exit=2)
    check("missing.txt" in missing.stderr, missing.stderr)
    t.write("ib", IB)
    check("--size" in t.call("doctor", "--read", "ib", exit=3).stdout, "a figure without a line is not judged")
    t.call("doctor", "--read", "ib", "--full", exit=2)
    t.call("doctor", "--read", "ib", "--size", "Standard_Nothing", exit=2)


def test_standard_input(t):
    done = subprocess.run([t.binary, "doctor", "--read", "-", "--size", "Standard_NC4as_T4_v3"], input=SMI, text=True,
                          capture_output=True, env=t.environment, cwd=t.work, timeout=60)
    check(done.returncode == 0 and done.stdout.startswith("stdin: nvidia-smi"), done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main(dict(globals()))
