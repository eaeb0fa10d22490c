#!/usr/bin/env python3
"""A real Kubernetes (tests/kube) against stoker check: what the API server refuses is what the error rules say it refuses,
in the executed examples of all rule pages and in the planted cases; what it is said to schedule or not, it schedules or not.

Skipped where ./dev kube has not built it."""

import json
import os
import re
import subprocess
import sys

import yaml

import harness
import kube
from harness import check
from kube_cases import HERE, PAGES, WITH_PODS, answers, clean, cluster, complete, documents, examples, head, is_manifest, ready, run


# Words of the API server, and the rule that says so beforehand. Only about what the rules are about: accelerators.
REFUSALS = {
    "K8S004": r"Limit must be set for non overcommitable resources",
    # Not of percents such as nvidia.com/gpucores: the page says why the rule leaves them alone.
    "K8S005": r"must be equal to (nvidia\.com/(gpu|mig-\S+)|amd\.com/gpu|habana\.ai/gaudi|gpu\.intel\.com/\S+) limit",
    "K8S006": r"must be an integer|\.com/\S+\]: Invalid value: \"?-\d+\"?: must be greater than or equal to 0|quantities must match",
    "K8S029": r"unknown field \"[^\"]*(containers\[\d+\]\.(limits|requests|tolerations|nodeSelector|affinity|volumes|"
              r"runtimeClassName|hostIPC|hostNetwork|schedulerName|nvidia\.com/\S+|amd\.com/\S+)|"
              r"\.resources\.(nvidia\.com/\S+|amd\.com/\S+))\"|"
              # At the top of a pod: its indentation is lost.
              r"unknown field \"(containers|tolerations|limits)\"",
    "SYN002": r"already set in map|duplicate field",
}
RULES = ["K8S009", *REFUSALS]


# Group versions of the deprecation guide that this server once had; others (of operators) say nothing when they are not served.
def is_unserved(text):
    about = head(text)
    if about is None or cluster().resource_path(*about[:2]) is not None:
        return False
    group = about[0].split("/")[0] if "/" in about[0] else ""
    return any(version.startswith(group + "/") if group else "/" not in version for version, _ in cluster().kinds()) or \
        group in ("extensions", "settings.k8s.io", "auditregistration.k8s.io")


def refused_classes(text):
    """The rules that the server's refusals of one document are about."""
    found = set()
    for validation in ("Strict", "Ignore"):
        said = answers(text, validation)
        if said and said[0] >= 400:
            found |= {rule for rule, words in REFUSALS.items() if re.search(words, said[1])}
    return found


def findings(t, folder, *words):
    done = t.call("check", folder, "--format", "json", "--select", ",".join(RULES), *words, exit=None)
    check(done.returncode in (0, 1), done.stderr)
    return json.loads(done.stdout)["findings"]


# What the server takes although the rule calls it an error, and why the rule is right.
TAKEN = {
    # A quantity without a value is read as 0 (Quantity.UnmarshalJSON): the object is made and the pod gets no device.
    "K8S006": lambda finding: "has no value" in finding["message"],
    # Fields of the pod inside limits are refused as quantities, in words that do not name the place.
    "K8S029": lambda finding: "it is no quantity" in finding["message"],
}
PLACEHOLDER = r":\s*\"?(\$|<|[A-Z][A-Z_]{2,}\b)"


def compare(t, name, files):
    """Where the rules and the server differ, document by document."""
    folder = os.path.join(t.work, name)
    manifests = {file: text for file, text in files.items() if is_manifest(file, text)}
    for file, text in manifests.items():
        path = os.path.join(folder, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
    if not manifests:
        return [], 0
    differ, looked = [], 0
    told = findings(t, folder)
    for file, text in manifests.items():
        all_documents = documents(text)
        for i, (first, document) in enumerate(all_documents):
            last = all_documents[i + 1][0] if i + 1 < len(all_documents) else 1 << 30
            # The target of K8S009 is older than this server, and what this one no longer has the rule may still allow.
            ours = [each for each in told if os.path.basename(each["path"]) == os.path.basename(file)
                    and first <= each["line"] < last]
            if any(each["rule"] == "K8S009" for each in ours):
                looked += 1
                if not is_unserved(document):
                    differ.append(f"{name}/{file}:{first}: K8S009 says that {head(document)} is gone, and the server serves it")
                continue
            if head(document) is None or cluster().resource_path(*head(document)[:2]) is None:
                continue  # of an operator, or of no object
            looked += 1
            theirs = refused_classes(document)
            rules = {each["rule"] for each in ours if not TAKEN.get(each["rule"], lambda _: False)(each)}
            excused = {each["rule"] for each in ours} - rules
            if re.search(PLACEHOLDER, document):
                excused.add("K8S006")  # filled in before the object is applied
            for rule in sorted(rules - theirs):
                differ.append(f"{name}/{file}:{first}: {rule} fires and the server has nothing against it: "
                              f"{answers(document, 'Strict')}")
            for rule in sorted(theirs - rules - excused):
                differ.append(f"{name}/{file}:{first}: the server refuses it as {rule} would, which is silent: "
                              f"{answers(document, 'Strict')}")
    return differ, looked


def test_the_examples_of_the_rules(t):
    differ, looked = [], 0
    for page in sorted(os.listdir(PAGES)):
        if not page.endswith(".md"):
            continue
        with open(os.path.join(PAGES, page)) as file:
            for number, (_, title, files) in enumerate(examples(file.read())):
                found, count = compare(t, f"{page[:-3]}-{number}", files)
                differ += [f"{each}   [{title}]" for each in found]
                looked += count
    print(f"   {looked} objects of the rule pages compared")
    check(looked >= 150, f"only {looked} objects were compared")
    check(not differ, "\n".join(differ))


def test_the_planted_cases(t):
    import check_planted_test
    differ, looked = [], 0
    for path, _, text, _ in check_planted_test.CASES:
        found, count = compare(t, "planted-" + path.replace("/", "-"), {os.path.basename(path): text})
        differ += found
        looked += count
    print(f"   {looked} planted objects compared")
    check(not differ, "\n".join(differ))


def test_good_examples_are_taken(t):
    """Of all rules: what a page holds up as good is an object that can be made."""
    taken, differ = 0, []
    for page in sorted(os.listdir(PAGES)):
        if not page.endswith(".md"):
            continue
        rule = page[:-3]
        with open(os.path.join(PAGES, page)) as file:
            for verdict, title, files in examples(file.read()):
                for name, text in files.items():
                    if verdict != "good" or not is_manifest(name, text) or "gpucores" in text:
                        continue
                    for _, document in documents(text):
                        about = head(document)
                        if about is None or about[1] not in WITH_PODS or cluster().resource_path(*about[:2]) is None:
                            continue
                        loaded = yaml.safe_load(document)
                        if re.search(PLACEHOLDER, document):
                            continue
                        said = answers(yaml.safe_dump(complete(loaded)), "Strict")
                        taken += said[0] == 201
                        if said[0] != 201:
                            differ.append(f"{rule} [{title}]: {said}")
    print(f"   {taken} good objects were taken")
    check(not differ and taken >= 50, f"{taken} taken\n" + "\n".join(differ))


def test_fixes_are_taken(t):
    """What --fix and --unsafe-fixes make of the bad examples, the server has nothing against that the rule was about."""
    mended, differ = 0, []
    for rule in RULES:
        with open(os.path.join(PAGES, rule + ".md")) as file:
            for number, (verdict, title, files) in enumerate(examples(file.read())):
                if verdict != "bad" or rule == "SYN002":
                    continue
                for name, text in files.items():
                    if not is_manifest(name, text):
                        continue
                    path = t.write(f"fix-{rule}-{number}-{os.path.basename(name)}", text)
                    t.call("check", path, "--fix", "--unsafe-fixes", "--select", rule, exit=None)
                    with open(path) as changed:
                        after = changed.read()
                    if after == text:
                        continue
                    mended += 1
                    for _, document in documents(after):
                        if rule in refused_classes(document) or (rule == "K8S009" and is_unserved(document)):
                            differ.append(f"{rule} [{title}]: {answers(document, 'Strict')}\n{after}")
    print(f"   {mended} examples were mended")
    check(not differ and mended >= 5, f"{mended} mended\n" + "\n".join(differ))


def test_api_versions_that_are_gone(t):
    """Every row of K8S009's table up to the version of this server, which serves all that it has."""
    with open(os.path.join(HERE, "..", "..", "src", "lint", "rules", "k8s009_removed_api_version.cpp")) as file:
        rows = re.findall(r'\{"([a-z0-9./]+)", "(\w*)", (\d+), "([a-z0-9./]*)"', file.read())
    check(len(rows) >= 40, rows)
    served = cluster().kinds()
    versions = {version for version, _ in served}
    wrong = [f"{version} {kind}" for version, kind, minor, _ in rows if int(minor) <= 36 and
             ((version, kind) in served if kind else version in versions)]
    check(not wrong, f"the server still serves {wrong}")
    # What they are replaced by is there; a Subject Access Review or an eviction is no stored object and has no list.
    missing = [f"{instead} {kind}" for _, kind, _, instead in rows if instead and instead not in versions]
    check(not missing, f"the server does not serve {missing}")


def test_a_field_one_level_off(t):
    """K8S029 as its page says: kubectl is refused; a client that does not ask for strictness gets a pod without GPU."""
    pod = kube.gpu_pod("off")
    pod["spec"]["containers"][0]["limits"] = pod["spec"]["containers"][0].pop("resources")["limits"]
    text = yaml.safe_dump(pod)
    refused = cluster().kubectl("create", "--dry-run=server", "-f", "-", input=text, exit=1)
    check("unknown field \"spec.containers[0].limits\"" in refused.stderr, refused.stderr)
    loose = cluster().kubectl("create", "--dry-run=server", "--validate=warn", "-o", "json", "-f", "-", input=text)
    check(json.loads(loose.stdout)["spec"]["containers"][0]["resources"] == {}, loose.stdout)
    check("Warning: unknown field" in loose.stderr, loose.stderr)
    status, made = cluster().request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    check(status == 201 and made["spec"]["containers"][0]["resources"] == {}, made)


def test_refusals_without_a_rule(t):
    """Mistakes that the server refuses and that are no rule of ours: nothing is said in their place that is wrong."""
    pod = kube.gpu_pod("a")

    def said(change):
        changed = json.loads(json.dumps(pod))
        change(changed["spec"])
        status, message = answers(json.dumps(changed), "Strict")
        check(status in (400, 422), f"{status} {message}")
        t.write("one.yaml", yaml.safe_dump(changed))
        return message
    check("value must be empty" in said(lambda spec: spec.update(tolerations=[{"key": "sku", "operator": "Exists", "value": "gpu"}])), "")
    check("Unsupported value" in said(lambda spec: spec.update(tolerations=[{"key": "sku", "operator": "Exists", "effect": "NoSchedul"}])), "")
    job = kube.job("j", pod)
    job["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    status, message = answers(json.dumps(job), "Strict")
    check(status == 422 and "restartPolicy" in message, message)


def test_a_quota_on_limits_is_never_enforced(t):
    """K8S038: accepted, without `used`, and eight GPUs run under a quota of one; requests.* is enforced."""
    c = cluster()
    space = c.namespace("quota-keys")
    c.create(kube.gpu_node("quota-0"))

    def quota(name, *keys):
        return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": space},
                "spec": {"hard": {key: "1" for key in keys}}}
    c.create(quota("dead", "limits.nvidia.com/gpu", "nvidia.com/gpu"))
    pods = f"/api/v1/namespaces/{space}/pods"
    status, answer = c.request("POST", pods, kube.gpu_pod("eight", gpus=8))
    check(status == 201, answer)
    c.until("eight GPUs run under a quota of one", lambda: c.pod("eight", space)["status"]["phase"] == "Running")
    dead = c.request("GET", f"/api/v1/namespaces/{space}/resourcequotas/dead")[1]
    check(not dead.get("status", {}).get("used"), dead)
    c.create(quota("live", "requests.nvidia.com/gpu"))
    c.until("the quota knows what is used", lambda: c.request("GET", f"/api/v1/namespaces/{space}/resourcequotas/live")[1]
            .get("status", {}).get("used", {}).get("requests.nvidia.com/gpu") == "8")
    status, answer = c.request("POST", pods, kube.gpu_pod("one-more"))
    check(status == 403 and "exceeded quota: live" in answer["message"], answer)
    t.write("quota.yaml", c.kubectl("get", "resourcequotas", "-n", space, "-o", "yaml").stdout)
    quotas = t.json("doctor", "--read", "quota.yaml")["files"][0]["checks"]
    check(len([each for each in quotas if each["name"] == "quota-enforced"]) == 2, quotas)
    t.write("dead.yaml", yaml.safe_dump(quota("dead", "limits.nvidia.com/gpu")))
    told = json.loads(t.call("check", "dead.yaml", "--format", "json", "--select", "K8S038", exit=None).stdout)["findings"]
    check([each["rule"] for each in told] == ["K8S038"], told)
    clean(c, space)


def test_nothing_is_left_of_a_test_that_was_killed(t):
    script = ("import sys, time; sys.path.insert(0, sys.argv[1]); import kube\n"
              "with kube.Cluster(kube.program()) as c:\n"
              "    print(c.folder, *[each.pid for each in c.parts.values()], flush=True); time.sleep(600)")
    killed = subprocess.Popen([sys.executable, "-c", script, HERE], stdout=subprocess.PIPE, text=True)
    try:
        folder, *pids = killed.stdout.readline().split()
        check(len(pids) == 5, pids)
    finally:
        killed.kill()
        killed.wait()

    def runs(pid):
        try:
            return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("kube")
        except OSError:
            return False
    harness.wait_for("all five are gone", lambda: not any(runs(pid) for pid in pids))
    check(os.path.exists(folder), "the folder of a killed test stays until the next one")
    kube.remove_leftovers()
    check(not os.path.exists(folder), folder)


def pools_of(objects):
    """Nodes of the pools that a bundle declares (Cluster API's and Karpenter's; others are no YAML)."""
    nodes = []
    for each in objects:
        name, spec = each.get("metadata", {}).get("name"), each.get("spec", {})
        if each.get("kind") not in ("AzureManagedMachinePool", "NodePool"):
            continue
        taints = [f"{taint['key']}={taint['value']}:{taint['effect']}" if taint.get("value") else f"{taint['key']}:{taint['effect']}"
                  for taint in spec.get("taints") or spec.get("template", {}).get("spec", {}).get("taints") or []]
        nodes.append(kube.gpu_node(f"{name}-0", pool=name, size=spec.get("sku", "Standard_NC24ads_A100_v4"), taints=taints,
                                   spot=spec.get("scaleSetPriority") == "Spot", labels={"karpenter.sh/nodepool": name}))
    return nodes


def placed(c, space, objects):
    """{name of each object with pods: whether one of its pods gets a node}, after the scheduler has said so of all."""
    found = {}
    for each in objects:
        if each.get("kind") not in WITH_PODS:
            continue
        made = complete(json.loads(json.dumps(each)))
        made["metadata"].pop("namespace", None)
        kind, name = made["kind"], made["metadata"]["name"]
        if kind == "DaemonSet":
            c.create(made, space=space)
            path = f"/apis/apps/v1/namespaces/{space}/daemonsets/{name}"
            status = c.until(f"{name} is looked at", lambda: (lambda now: now if now.get("observedGeneration") else None)(
                c.request("GET", path)[1]["status"]))
            found[name] = status["desiredNumberScheduled"] > 0
            c.request("DELETE", path)
            continue
        pod = made if kind == "Pod" else {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": made["spec"]["template"]["spec"]}
        c.create(pod, space=space)

        def judged():
            now = c.pod(name, space)
            return now["spec"].get("nodeName") or [each for each in now["status"].get("conditions", []) if each["type"] == "PodScheduled"
                                                   and each["status"] == "False" and "untolerated taint" in each["message"]]
        c.until(f"the scheduler has judged {name}", judged)
        found[name] = "nodeName" in c.pod(name, space)["spec"]
        c.request("DELETE", f"/api/v1/namespaces/{space}/pods/{name}?gracePeriodSeconds=0")
    return found


def test_the_scheduler_agrees_about_tolerations(t):
    """K8S001, K8S002, K8S012, NPL011: what a bad example declares does not get onto the pools that it declares, and does
    once it is mended; what a good one declares does at once."""
    c, looked = cluster(), 0
    for rule in ("K8S001", "K8S002", "K8S012", "NPL011"):
        with open(os.path.join(PAGES, rule + ".md")) as file:
            pages = list(examples(file.read()))
        for number, (verdict, title, files) in enumerate(pages):
            folder = f"pools-{rule}-{number}"
            os.makedirs(os.path.join(t.work, folder))
            for name, text in files.items():
                t.write(os.path.join(folder, name), text)

            def objects():
                return [each for name in files for each in yaml.safe_load_all(open(os.path.join(t.work, folder, name))) if each]
            if not all(is_manifest(name, text) for name, text in files.items()) or not pools_of(objects()):
                continue
            if any(each.get("kind") in ("Application", "HelmRelease") for each in objects()):
                continue  # its pods come out of a chart that is not here
            space = f"{rule.lower()}-{number}"
            c.namespace(space)
            try:
                nodes = pools_of(objects())
                c.create(*nodes)
                ready(c)
                before = placed(c, space, objects())
                looked += len(before)
                if verdict == "good":
                    check(before and all(before.values()), f"{rule} [{title}]: {before}")
                    continue
                check(not all(before.values()), f"{rule} [{title}] says that it waits, and it runs: {before}")
                t.call("check", folder, "--fix", "--select", rule, exit=None)
                after = placed(c, space, objects())
                check(all(after.values()), f"{rule} [{title}], mended: {after}")
            finally:
                clean(c, space)
    print(f"   {looked} objects with pods placed on the pools of their bundles")
    check(looked >= 8, looked)


if __name__ == "__main__":
    run(dict(globals()))
