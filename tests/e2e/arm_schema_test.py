"""ARM templates by two judges: the schemas of azure-resource-manager-schemas with ajv, and stoker check. A schema knows types
and names, the rules know what GPUs need: each must find its own mistakes, and neither may find one in a template that is right.

arm/schemas.json holds the definitions that are needed here (arm/reduce.py made it; MIT, arm/LICENSE)."""

import copy
import json
import os
import pathlib
import subprocess

from harness import check, main

HERE = pathlib.Path(__file__).resolve().parent
AJV = HERE.parent.parent / "build" / "arm-ajv"


def ajv(resources):
    package = json.loads((HERE / "arm" / "package.json").read_text())
    if not (AJV / "node_modules/ajv-draft-04").exists():
        AJV.mkdir(parents=True, exist_ok=True)
        words = [f"{name}@{version}" for name, version in package["dependencies"].items()]
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix",
                        AJV, *words], check=True, timeout=300, stdin=subprocess.DEVNULL)
    done = subprocess.run(["node", HERE / "arm/validate.cjs"], input=json.dumps(resources), capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, NODE_PATH=str(AJV / "node_modules")))
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


IMAGE = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "latest"}
MACHINE = {
    "type": "Microsoft.Compute/virtualMachines", "apiVersion": "2024-11-01", "name": "trainer", "location": "eastus",
    "tags": {"owner": "team", "project": "p", "environment": "dev"},
    "properties": {
        "hardwareProfile": {"vmSize": "Standard_NC24ads_A100_v4"},
        "securityProfile": {"securityType": "TrustedLaunch", "uefiSettings": {"secureBootEnabled": False}},
        "storageProfile": {"imageReference": IMAGE},
        "osProfile": {"computerName": "trainer", "adminUsername": "azureuser",
                      "linuxConfiguration": {"disablePasswordAuthentication": True}},
        "networkProfile": {"networkInterfaces": [{"id": "[resourceId('Microsoft.Network/networkInterfaces', 'nic')]"}]}}}
NIC = {
    "type": "Microsoft.Network/networkInterfaces", "apiVersion": "2025-05-01", "name": "nic", "location": "eastus",
    "properties": {"enableAcceleratedNetworking": True,
                   "ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": "[parameters('subnet')]"}}}]}}
SCHEDULE = {
    "type": "Microsoft.DevTestLab/schedules", "apiVersion": "2018-09-15", "name": "shutdown-computevm-trainer", "location": "eastus",
    "properties": {"status": "Enabled", "taskType": "ComputeVmShutdownTask", "dailyRecurrence": {"time": "1900"}, "timeZoneId": "UTC",
                   "targetResourceId": "[resourceId('Microsoft.Compute/virtualMachines', 'trainer')]"}}
WORKERS = {
    "type": "Microsoft.Compute/virtualMachineScaleSets", "apiVersion": "2024-11-01", "name": "workers", "location": "eastus",
    "sku": {"name": "Standard_ND96isr_H100_v5", "tier": "Standard", "capacity": 4},
    "properties": {
        "orchestrationMode": "Uniform", "singlePlacementGroup": True, "overprovision": False,
        "upgradePolicy": {"mode": "Manual"},
        "virtualMachineProfile": {
            "storageProfile": {"imageReference": IMAGE},
            "osProfile": {"computerNamePrefix": "w", "adminUsername": "azureuser",
                          "linuxConfiguration": {"disablePasswordAuthentication": True}},
            "networkProfile": {"networkInterfaceConfigurations": [
                {"name": "nic", "properties": {"primary": True, "enableAcceleratedNetworking": True, "ipConfigurations": [
                    {"name": "ip", "properties": {"subnet": {"id": "[parameters('subnet')]"}}}]}}]}}}}
POOL = {
    "type": "Microsoft.ContainerService/managedClusters/agentPools", "apiVersion": "2025-10-01", "name": "aks/gpu",
    "properties": {"vmSize": "Standard_NC24ads_A100_v4", "mode": "User", "osType": "Linux", "enableAutoScaling": True, "minCount": 0,
                   "maxCount": 4, "nodeTaints": ["sku=gpu:NoSchedule"]}}
BATCH = {
    "type": "Microsoft.Batch/batchAccounts/pools", "apiVersion": "2025-06-01", "name": "account/gpu",
    "properties": {"vmSize": "Standard_NC24ads_A100_v4",
                   "deploymentConfiguration": {"virtualMachineConfiguration": {"imageReference": IMAGE, "nodeAgentSkuId": "batch.node.ubuntu 22.04"}},
                   "scaleSettings": {"autoScale": {"formula": "$TargetDedicatedNodes = $PendingTasks.GetSample(1)"}}}}
GOOD = [MACHINE, NIC, SCHEDULE, WORKERS, POOL, BATCH]

# What GPUs need and a schema cannot know: the value is of the right type. (rule, index into GOOD, path, value)
SEMANTIC = [
    ("SKU001", 0, "properties.hardwareProfile.vmSize", "Standard_NC6"),
    ("SKU003", 0, "properties.hardwareProfile.vmSize", "Standard_NC6_v3"),
    ("SKU010", 0, "properties.storageProfile.imageReference",
     {"publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS", "version": "latest"}),
    ("SKU017", 1, "properties.enableAcceleratedNetworking", False),
    ("NET001", 3, "properties.singlePlacementGroup", False),
    ("NET001", 3, "properties.orchestrationMode", "Flexible"),
    ("NET003", 3, "zones", ["1", "2"]),
    ("NET019", 3, "properties.overprovision", True),
    ("NPL001", 4, "properties.nodeTaints", []),
    ("NPL002", 4, "properties.mode", "System"),
    ("NPL003", 4, "properties.enableAutoScaling", False),
    ("COST006", 5, "properties.scaleSettings", {"fixedScale": {"targetDedicatedNodes": 4}}),
]
# What a schema refuses: types, names of a fixed list, what must be there. (index into GOOD, path, value)
REFUSED = [
    (0, "properties.securityProfile.uefiSettings.secureBootEnabled", "off"),
    (0, "properties.osProfile.linuxConfiguration.disablePasswordAuthentication", 1),
    (0, "properties.priority", "Cheap"),
    (1, "properties.enableAcceleratedNetworking", 0),
    (2, "properties.status", "Sometimes"),
    (3, "sku.capacity", 2.5),
    (3, "properties.orchestrationMode", "Tight"),
    (3, "properties.singlePlacementGroup", "perhaps"),
    (4, "properties.minCount", "none"),
    (4, "properties.nodeTaints", "sku=gpu:NoSchedule"),
    (5, "properties.scaleSettings.fixedScale", {"targetDedicatedNodes": "many"}),
]


def with_value(index, path, value):
    resources = copy.deepcopy(GOOD)
    at = resources[index]
    *steps, last = path.split(".")
    for step in steps:
        at = at.setdefault(step, {})
    at[last] = value
    return resources


def findings(t, resources, name="azuredeploy.json"):
    template = {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0",
                "parameters": {"subnet": {"type": "string"}}, "resources": resources}
    path = os.path.join(t.work, name)
    with open(path, "w") as file:
        json.dump(template, file, indent=2)
    done = t.call("check", "--format", "json", "--profile", "prod", path, exit=None)
    return json.loads(done.stdout)["findings"]


def told(found, *severities):
    return sorted({f["rule"] for f in found if f["severity"] in severities})


def test_both_accept_a_template_that_is_right(t):
    for resource, places in zip(GOOD, ajv(GOOD)):
        check(places == [], f"{resource['type']}: {places}")
    check(told(findings(t, GOOD), "error", "warning") == [], str(findings(t, GOOD)))


def test_the_rules_find_what_a_schema_cannot_know(t):
    cases = [with_value(index, path, value) for _, index, path, value in SEMANTIC]
    for (rule, index, path, _), case, places in zip(SEMANTIC, cases, ajv([c[s[1]] for s, c in zip(SEMANTIC, cases)])):
        check(places == [], f"{rule} {path}: the schema refuses {places}")
        found = findings(t, case)
        check(rule in told(found, "error", "warning", "info"), f"{rule} {path}: {told(found, 'error', 'warning', 'info')}")
        check(not [f for f in found if f["rule"].startswith("SYN")], str(found))


def test_what_a_schema_refuses_is_no_mistake_of_another_kind(t):
    cases = [with_value(*each) for each in REFUSED]
    for (index, path, value), case, places in zip(REFUSED, cases, ajv([c[r[0]] for r, c in zip(REFUSED, cases)])):
        check(places, f"{GOOD[index]['type']} {path} = {value!r}: the schema takes it")
        where = "/" + path.replace(".", "/")
        check(any(p.startswith(where) or where.startswith(p) for p in places), f"{path}: {places}")
        check(told(findings(t, case), "error") == [], f"{path} = {value!r}: {told(findings(t, case), 'error')}")


def test_what_cannot_be_parsed_is_told_as_that(t):
    path = os.path.join(t.work, "azuredeploy.json")
    with open(path, "w") as file:
        file.write(json.dumps({"resources": [MACHINE]})[:-3])
    found = json.loads(t.call("check", "--format", "json", path, exit=1).stdout)["findings"]
    check("SYN001" in told(found, "error"), str(found))


if __name__ == "__main__":
    main(globals())
