#!/usr/bin/env python3
"""Takes the schemas of the resources that are rendered out of the packages of CDK for Terraform, into schemas.json beside this file.

    npm pack @cdktf/provider-azurerm@14.23.1 @cdktf/provider-aws@21.22.1 @cdktf/provider-google@16.12.1
    reduce.py FOLDER      where they were unpacked, each into a folder of its name: FOLDER/azurerm/package/lib ...

The packages are generated from the providers' own schemas, and say of each attribute its type and whether it is required,
optional or computed. They are under the MPL 2.0 (LICENSE), and so is schemas.json."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
WANTED = {
    "azurerm": """resource_group virtual_network subnet network_security_group subnet_network_security_group_association public_ip
        network_interface linux_virtual_machine managed_disk virtual_machine_data_disk_attachment virtual_machine_extension
        dev_test_global_vm_shutdown_schedule orchestrated_virtual_machine_scale_set linux_virtual_machine_scale_set
        kubernetes_cluster kubernetes_cluster_node_pool consumption_budget_resource_group firewall
        firewall_application_rule_collection route_table subnet_route_table_association nat_gateway
        nat_gateway_public_ip_association subnet_nat_gateway_association proximity_placement_group
        log_analytics_workspace monitor_diagnostic_setting monitor_autoscale_setting role_assignment user_assigned_identity
        private_endpoint private_dns_zone private_dns_zone_virtual_network_link""".split(),
    "aws": """key_pair placement_group security_group instance eks_addon eks_cluster eks_node_group iam_role iam_role_policy_attachment
        data:subnet""".split(),
    "google": """compute_network compute_firewall compute_resource_policy compute_instance compute_router
        compute_router_nat container_cluster container_node_pool""".split(),
}
FLAGS = re.compile(r"// (\w+) - computed: (\w+), optional: (\w+), required: (\w+)\n")
GETTER = re.compile(r"get (\w+)\(\) \{\n\s*return (?:cdktf\.\w+\.\w+\()?(?:cdktf\.Fn\.tolist\()?this\.(get\w+)\('(\w+)'\)")
ENTRY = re.compile(r"(\w+): \{\n\s*value: ([^\n]*),\n\s*isBlock: (\w+),\n\s*type: \"(\w+)\",\n\s*storageClassType: \"(\w+)\"")
GETTERS = {"getStringAttribute": "string", "getNumberAttribute": "number", "getBooleanAttribute": "bool", "getListAttribute": "stringList",
           "getStringMapAttribute": "stringMap", "getNumberListAttribute": "numberList", "getAnyMapAttribute": "anyMap"}


def classes(text):
    """{class: {attribute: (computed, optional, required, type of what is read)}}"""
    out = {}
    for part in re.split(r"\nclass ", text)[1:]:
        name = part.split(" ", 1)[0]
        rows = out.setdefault(name, {})
        for camel, getter, snake in GETTER.findall(part):  # what has a reset may be left out
            optional = f"reset{camel[0].upper()}{camel[1:]}()" in part
            rows[snake] = (False, optional, not optional, GETTERS.get(getter))
        for snake, computed, optional, required in FLAGS.findall(part):
            rows[snake] = (computed == "true", optional == "true", required == "true", rows.get(snake, (None,) * 4)[3])
    return out


def entries(text, begin):
    """The attributes that a mapper writes: [(name, mapper, block, kind, type)]."""
    at = text.index(begin)
    return ENTRY.findall(text[at:text.index("};", at)])


def block_of(text, known, rows, found):
    out = {"attributes": {}, "blocks": {}}
    for name, value, is_block, kind, stored in found:
        computed, optional, required, _ = rows.get(name, (False, True, False, None))
        mapper = re.search(r"(\w+)ToHclTerraform", value)
        if is_block != "true" or f"function {mapper.group(1)}ToHclTerraform(" not in text:
            kind_of = {"boolean": "bool"}.get(stored, stored)
            out["attributes"][name] = [kind_of, "required" if required else "optional" + ("+computed" if computed else "")]
            continue
        if name == "timeouts":
            continue
        inner = mapper.group(1)
        struct = inner[0].upper() + inner[1:]
        out["blocks"][name] = {
            "nesting": "set" if kind == "set" else "list", "min": int(required), "max": int(kind == "struct"),
            **block_of(text, known, known.get(struct + "OutputReference", {}), entries(text, f"function {inner}ToHclTerraform("))}
    for name, (_, _, _, getter) in rows.items():  # what only the provider writes
        if name not in out["attributes"] and name not in out["blocks"] and getter:
            out["attributes"][name] = [getter, "computed"]
    return out


def schema(folder, name, top=None):
    text = "\n".join(path.read_text() for path in [folder / name / "index.js", *sorted((folder / name).glob("index-structs/*.js"))])
    known = classes(text)
    top = top or next(each for each in known if each.lower() == name.replace("-", ""))
    return block_of(text, known, known[top], entries(text, "synthesizeHclAttributes() {"))


def main():
    out = {"source": {}}
    for provider, names in WANTED.items():
        package = pathlib.Path(sys.argv[1]) / provider / "package"
        version = re.search(rf"hashicorp/{provider}/([\d.]+)/docs", (package / "lib/provider/index.d.ts").read_text()).group(1)
        out["source"][provider] = f"{provider} {version}, from @cdktf/provider-{provider}@{json.loads((package / 'package.json').read_text())['version']}"
        part = out[provider] = {"provider": {}, "resources": {}, "data": {}}
        part["provider"] = schema(package / "lib", "provider", f"{provider.capitalize()}Provider")
        for name in names:
            kind, name = ("data", name[5:]) if name.startswith("data:") else ("resources", name)
            folder = ("data-" + provider + "-" if kind == "data" else "") + name.replace("_", "-")
            part[kind][f"{provider}_{name}"] = schema(package / "lib", folder)
    text = json.dumps(out, sort_keys=True, separators=(",", ":"))
    (HERE / "schemas.json").write_text(re.sub(r'("(?:aws|azurerm|google)_\w+":\{"attributes")', r"\n\1", text) + "\n")  # a line each


if __name__ == "__main__":
    main()
