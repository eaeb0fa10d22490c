#!/usr/bin/env python3
"""The scripts for Azure run from end to end, and az's own parser reads every command that they call.

    python3 tests/e2e/render_az_test.py --stoker build/release/stoker [NAME...]

az, kubectl, helm and scontrol are one program that writes down its words (render/recorded_az.sh). azure-cli comes from PyPI into
build/az-venv, 392 MB, where STOKER_AZ=1 asks for it; without it the parser's part is skipped, and the scripts are run all the same.
Commands of extensions (az ml, az network firewall) are in no package, and are counted."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess

import yaml

import harness
import render_test as plans
from pythons import pinned_python
from harness import Skipped, check, main

every_target = plans.targets
SCRIPTS = ["az", "aks", "batch", "slurm-cloud", "cyclecloud", "azure-ml", "cloud-init"]
plans.targets = lambda t: SCRIPTS
HERE = pathlib.Path(__file__).resolve().parent
MORE = {
    "aks-gang": plans.PLANS["gang-run"] + "orchestrator: aks\n",
    "aks-spot": plans.PLANS["spot"] + "orchestrator: aks\n",
    "aks-guarded": plans.PLANS["serve"] + "orchestrator: aks\nsensitive: true\n",
    "guarded": plans.PLANS["gang-run"] + "sensitive: true\n",
    "guarded-pile": plans.PLANS["files"] + "sensitive: true\n",
    "guarded-notebook": plans.PLANS["notebook"] + "sensitive: true\n",
    "aks-scaled": plans.PLANS["serve-many"] + "orchestrator: aks\n",
    "aks-nodes": plans.PLANS["large"] + "orchestrator: aks\n",
    "neighbours": plans.TRAIN + "where: {sizes: [Standard_NC24ads_A100_v4], nodes: 2, regions: [eastus]}\n" + plans.COMMAND,
    "devices": plans.PLANS["pile"].replace("where: {", "where: {sizes: [Standard_ND96asr_v4], nodes: 1, ").replace("objective: {deadline: 12h}\n", ""),
}
plans.PLANS.update(MORE)
CALLS, APPLIED = {}, {}  # APPLIED: what kubectl was given on its standard input, by plan


def stand_ins(t):
    programs = os.path.join(t.base, "programs")
    os.makedirs(programs)
    for name in ("az", "kubectl", "helm", "scontrol", "sleep", "git", "cyclecloud"):
        os.symlink(HERE / "render" / "recorded_az.sh", os.path.join(programs, name))
    with open(os.path.join(t.base, "key.pub"), "w") as file:
        file.write("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBk1Qm0v9cJ0c7b8m3m8nYyN3n1d1Kp0y0e2x3Xk9Q2Q someone@somewhere\n")


def run(t, script, *words):
    """What it called, program first; it has to end well."""
    programs, record = os.path.join(t.base, "programs"), os.path.join(t.base, f"record-{script.parent.parent.name}-{script.parent.name}-{script.name}{len(words)}")
    key = os.path.join(t.base, "key.pub")
    open(record, "w").close()
    environment = dict(os.environ, PATH=programs + ":" + os.environ["PATH"], RECORD=record, FROM="20.42.0.0/24", SSH_KEY=key,
                       ACCOUNT="account", GROUP="group", CREDENTIALS="azure", BLOBS="account/weights", GRAFANA="/subscriptions/s/resourceGroups/g/providers/microsoft.dashboard/grafana/n", SUBNET="/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/"
                       "virtualNetworks/n/subnets/work")
    done = subprocess.run([script, *words], capture_output=True, text=True, timeout=harness.LIMIT_S, env=environment)
    check(done.returncode == 0, f"{script}: exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")
    if os.path.exists(record + ".applied"):
        with open(record + ".applied") as file:
            APPLIED[script.parent.parent.name] = file.read()
    with open(record) as file:
        return [call.split("\x1f")[:-1] for call in file.read().split("\x1e")[:-1]]


def calls(t):
    """{(plan, target, script): what it called}, of all scripts; each is run once."""
    if not CALLS:
        def one(each):
            plan, target, path = each
            found = {(plan, target, path.name): run(t, path, *(["node-[0,11]"] if path.name in ("resume.sh", "suspend.sh") else []))}
            if path.name.endswith("-az.sh"):
                found[plan, target, path.name + " clean"] = run(t, path, "clean")
            return found

        stand_ins(t)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for found in pool.map(one, plans.files(t, "-az.sh", "-batch.sh", "-nodes.sh", "resume.sh", "suspend.sh", "-cyclecloud.sh",
                                                          "-workspace.sh", "private-link.sh", "-image.sh")):
                CALLS.update(found)
    return CALLS


# A script that stops half way leaves machines that are paid for.
def test_every_script_runs_to_its_end(t):
    check(len(calls(t)) > 40, f"{len(calls(t))} scripts")
    for (plan, target, name), called in calls(t).items():
        check(called, f"{plan}, {target}: {name} calls nothing")
        if name.endswith("clean"):
            check([each[:3] for each in called] == [["az", "group", "delete"]], f"{plan}: {called}")
        # Files that a command is given lie where the script looks for them.
        for each in called:
            for flag, word in zip(each, each[1:]):
                if flag in ("-f", "-k", "--custom-data", "--json-file", "--ssh-key-values"):
                    check(word == "-" or word.startswith("https://") or os.path.exists(word), f"{plan}, {target}: {name}: there is no {word}")


# Without the feature nodes may land on different networks; without the operator pods wait for a device that no node has.
def test_a_gang_on_aks_gets_its_infiniband(t):
    called = [" ".join(each) for each in calls(t)["aks-gang", "aks", "train-az.sh"]]
    order = [next(i for i, each in enumerate(called) if each.startswith(words)) for words in
             ("az feature register", "az feature show", "az provider register", "az aks create", "az aks nodepool add", "helm upgrade")]
    check(order == sorted(order), called)
    check(any(each.startswith("kubectl apply") and each.endswith("infiniband.yaml") for each in called), called)


# An autoscaler that hears nothing leaves the replicas as they are, for whatever load; a kind that no controller reads is never applied.
def test_what_the_bundle_stands_on_comes_before_it(t):
    called = [" ".join(each) for each in calls(t)["aks-scaled", "aks", "serve-az.sh"]]
    order = [next(i for i, each in enumerate(called) if each.startswith(words)) for words in
             ("az monitor account create", "az aks create", "az identity create", "az identity federated-credential create",
              "az role assignment create --role Monitoring Data Reader", "kubectl -n kube-system rollout restart deployment keda-operator",
              "kubectl apply -f -")]
    check(order == sorted(order), called)
    made = next(each for each in called if each.startswith("az aks create"))
    check(all(flag in made for flag in ("--enable-keda", "--enable-oidc-issuer", "--enable-workload-identity")), made)
    text = APPLIED["aks-scaled"]
    check("serverAddress: https://work.eastus.prometheus.monitor.azure.com\n" in text and "identityId: 00000000-0000-0000-0000-000000000001" in text and
          not re.search(r": [A-Z]+_[A-Z]+\b", text), text)
    # One by processors (of a front) is fed by the cluster's own metrics server.
    scalers = [each for _, target, path in plans.files(t, ".yaml") if target == "aks" for each in path.read_text().split("\n---") if re.search(r"^kind: HorizontalPodAutoscaler", each, re.M)]
    check(all("type: Resource" in each and not re.search(r"type: (Pods|Object|External)", each) for each in scalers),
          "the bundle has an autoscaler that nobody feeds")
    called = [" ".join(each) for each in calls(t)["aks-nodes", "aks", "serve-az.sh"]]
    sets = [i for i, each in enumerate(called) if "kubernetes-sigs/lws" in each]
    check(len(sets) == 1 and sets[0] < next(i for i, each in enumerate(called) if each.startswith("kubectl apply -k")), called)


# Data of people on a machine with an address in the internet is what the file forbids, whichever target is asked.
def test_no_machine_of_sensitive_data_is_in_the_internet(t):
    seen = set()
    for plan, target, path in plans.files(t, ""):
        if not plan.startswith("guarded") or target not in ("batch", "azure-ml", "cyclecloud", "az"):
            continue
        text = path.read_text()
        if path.name == "pool.json":
            [said] = [json.loads(text)["networkConfiguration"]]
            check(said["publicIPAddressConfiguration"] == {"provision": "NoPublicIPAddresses"}, said)
            seen.add("pool")
        if "amlcompute" in text or "computeinstance" in text:
            check("enable_node_public_ip: false" in text, text)
            seen.add("compute")
        if path.name == "workspace.yaml":
            said = yaml.safe_load(text)
            check(said["public_network_access"] == "Disabled" and said["managed_network"]["isolation_mode"] == "allow_only_approved_outbound" and
                  "pypi.org" in [rule["destination"] for rule in said["managed_network"]["outbound_rules"]], text)
            seen.add("workspace")
        if path.name == "parameters.json":
            check((json.loads(text)["UsePublicNetwork"], json.loads(text)["ExecuteNodesPublic"]) == (False, False), text)
            seen.add("cyclecloud")
    check(seen == {"pool", "compute", "workspace", "cyclecloud"}, seen)
    linked = [" ".join(each) for each in calls(t)["guarded-pile", "batch", "files-batch.sh"]]
    check(sum(each.startswith("az network private-endpoint create") for each in linked) == 2, linked)
    sent = json.loads(pathlib.Path(plans.rendered(t)["guarded-pile", "batch"], "pool-here.json").read_text())
    check(sent["networkConfiguration"]["subnetId"].endswith("/subnets/work"), sent)


# What a parser refuses costs a quarter of an hour of machines that were made before.
def test_az_reads_every_command(t):
    if not os.environ.get("STOKER_AZ") and not (HERE.parents[1] / "build" / "az-venv").exists():
        raise Skipped("no azure-cli in build/az-venv: STOKER_AZ=1 fetches it")
    python = pinned_python(HERE / "requirements_az.txt", "az-venv")
    told = {}
    for place, called in calls(t).items():
        for each in called:
            if each[0] == "az":
                # Once of each shape: names and numbers of a plan are values of the same kind.
                shape = json.dumps([word if word.startswith("-") or word.isalpha() else "" for word in each[1:]])
                told.setdefault(shape, (place, each[1:]))
    words = [each for _, each in told.values()]
    parts = [words[i::2] for i in range(2)]

    def parse(number):
        folder = os.path.join(t.base, f"azure-{number}")
        done = subprocess.run([python, HERE / "render" / "az_parse.py"], input=json.dumps(parts[number]), capture_output=True, text=True,
                              timeout=900, env=dict(os.environ, HOME=t.base, AZURE_CONFIG_DIR=folder, AZURE_CORE_COLLECT_TELEMETRY="0", AZURE_BATCH_ACCOUNT="account",
                                       AZURE_BATCH_ACCESS_KEY="a2V5", AZURE_BATCH_ENDPOINT="https://account.eastus.batch.azure.com"))
        check(done.returncode == 0, done.stderr[-600:])
        return list(zip(parts[number], json.loads(done.stdout)))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [each for part in pool.map(parse, range(2)) for each in part]
    unread = [each for each, said in answers if said == "of an extension"]
    refused = [f"az {' '.join(each)}\n  {said}" for each, said in answers if said not in (None, "of an extension")]
    check(refused == [], "\n".join(refused))
    print(f"   {len(answers) - len(unread)} commands read, {len(unread)} of extensions")
    check(len(answers) - len(unread) > 40, f"{len(answers)} commands")


def test_the_parser_refuses_what_is_wrong(t):
    if not (HERE.parents[1] / "build" / "az-venv").exists():
        raise Skipped("no azure-cli in build/az-venv")
    wrong = [["aks", "create", "-g", "g", "-n", "n", "--network-data-plane", "cilium"], ["vmss", "create", "-g", "g"],
             ["vm", "creat"], ["vmss", "create", "-g", "g", "-n", "n", "--image", "i", "--orchestration-mode", "Tight"]]
    done = subprocess.run([HERE.parents[1] / "build" / "az-venv" / "bin" / "python", HERE / "render" / "az_parse.py"], input=json.dumps(wrong),
                          capture_output=True, text=True, timeout=300, env=dict(os.environ, AZURE_CONFIG_DIR=os.path.join(t.base, "azure")))
    check(all(json.loads(done.stdout)), done.stdout)


if __name__ == "__main__":
    main(globals())
