#!/usr/bin/env python3
"""Takes out of azure-resource-manager-schemas what tests/e2e/arm_schema_test.py needs, into schemas.json beside this file.

    reduce.py FOLDER      the `schemas` folder of a checkout

Descriptions are left out: only what a validator reads is kept. The licence of the schemas (MIT) is kept in LICENSE."""

import json
import pathlib
import sys

WANTED = {
    "2024-11-01/Microsoft.Compute.json": ["virtualMachines", "virtualMachineScaleSets", "proximityPlacementGroups"],
    "2025-10-01/Microsoft.ContainerService.Aks.json": ["managedClusters", "managedClusters_agentPools"],
    "2025-05-01/Microsoft.Network.NRP.json": ["networkInterfaces", "networkSecurityGroups", "virtualNetworks", "publicIPAddresses", "azureFirewalls",
                                              "routeTables", "natGateways", "privateEndpoints", "privateEndpoints_privateDnsZoneGroups"],
    "2024-06-01/Microsoft.Network.privateDns.json": ["privateDnsZones", "privateDnsZones_virtualNetworkLinks"],
    "2023-01-31/Microsoft.ManagedIdentity.json": ["userAssignedIdentities"],
    "2022-10-01/Microsoft.Insights.json": ["autoscalesettings"],
    "2022-04-01/Microsoft.Authorization.json": ["roleAssignments"],
    "2025-06-01/Microsoft.Batch.json": ["batchAccounts_pools"],
    "2018-09-15/Microsoft.DevTestLab.json": ["schedules"],
    "2024-08-01/Microsoft.Consumption.json": ["budgets"],
}
COMMON = "common/definitions.json"
HOST = "https://schema.management.azure.com/schemas/"


def bare(value):
    """Without descriptions of schemas; a property that is called description stays."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if not (k == "description" and isinstance(v, str))}
    return [bare(v) for v in value] if isinstance(value, list) else value


def references(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


class Reducer:
    def __init__(self, folder):
        self.folder, self.loaded, self.kept = pathlib.Path(folder), {}, {}

    def load(self, name):
        if name not in self.loaded:
            self.loaded[name] = json.loads((self.folder / name).read_text())
        return self.loaded[name]

    def keep(self, name, section, key):
        place = self.kept.setdefault(name, {}).setdefault(section, {})
        if key in place:
            return
        if not (self.folder / name).exists():  # of another provider: anything
            place[key] = {}
            return
        definition = bare(self.load(name)[section][key])
        # Child resources bring half of a provider with them, and no template of the tests nests them.
        properties = definition.get("properties", {})
        properties.pop("resources", None)
        if section.endswith("resourceDefinitions"):
            properties["name"] = {"type": "string"}  # the pattern is of a child's own name; here it stands behind its parent's
        if "vmSize" in properties:
            properties["vmSize"] = {"type": "string"}  # the list ends in 2018 and is open in the service
        place[key] = definition
        for reference in references(definition):
            where, _, pointer = reference.partition("#")
            target = where[len(HOST):] if where.startswith(HOST) else name if not where else None
            if target is None or not pointer.startswith("/"):
                raise SystemExit(f"{name}: {reference} leads elsewhere")
            _, part, inner = pointer.split("/")
            self.keep(target, part, inner)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    reducer = Reducer(sys.argv[1])
    for name, types in WANTED.items():
        for each in types:
            # What is put on another resource stands in a section of its own.
            section = next(s for s in ("resourceDefinitions", "extension_resourceDefinitions") if each in reducer.load(name).get(s, {}))
            reducer.keep(name, section, each)
    schemas = [{"id": f"{HOST}{name}#", "$schema": "http://json-schema.org/draft-04/schema#", **sections}
               for name, sections in sorted(reducer.kept.items())]
    text = "[\n" + ",\n".join(json.dumps(schema, separators=(",", ":"), sort_keys=True) for schema in schemas) + "\n]\n"
    (pathlib.Path(__file__).parent / "schemas.json").write_text(text)
    print(f"schemas.json: {len(text)} bytes, {sum(len(s) for n in reducer.kept.values() for s in n.values())} definitions")


if __name__ == "__main__":
    main()
