#!/usr/bin/env python3
"""Machines without GPUs of AWS and GCP, with their prices, from the lists that the prices of their GPU machines are from.

    tools/processor_sizes.py --aws zz_generated.pricing_aws.go --gcp initial-prices.json [--data data/catalog]

What data/catalog/sources.tsv names as aws-via-karpenter and gcp-via-karpenter, at the commits written there. Which families,
and what no price list says of them, is in curated/processor_families.tsv. Rows of other machines stay as they are;
tools/refresh_catalog.py writes those alone, so this runs after it. The same input always gives the same bytes.
"""
import argparse
import csv
import json
import os
import re
import sys

SIZE_KEY = lambda row: [int(part) if part.isdigit() else part.lower() for part in re.split(r"(\d+)", row["name"])]
FLOPS = "cpu,cores,cpu_ghz,cpu_flops_per_cycle_fp32"
SOURCES = {"aws": "aws-via-karpenter", "gcp": "gcp-via-karpenter"}


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return rows.fieldnames, list(rows)


def write(path, columns, rows):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for row in rows:
            file.write("\t".join(row.get(column) or "" for column in columns) + "\n")


def number(value):
    return ("%.6f" % value).rstrip("0").rstrip(".")


def prices_of_aws(path):
    """{(size, region, pricing): dollars an hour}"""
    out, region = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            head = re.match(r'\t"([a-z]+-[a-z-]+-\d)": \{', line)
            region = head[1] if head else region
            for name, usd in re.findall(r'"([a-z0-9-]+\.[a-z0-9-]+)": ([\d.]+)', line):
                out[name, region, "on-demand"] = float(usd)
    return out


def prices_of_gcp(path):
    with open(path, encoding="utf-8") as file:
        regions = json.load(file)["prices"]
    return {(name, region, pricing): usd
            for region, kinds in regions.items()
            for key, pricing in (("on_demand", "on-demand"), ("spot", "spot"))
            for name, usd in kinds.get(key, {}).items()}


def sizes_of(family):
    """Name, vCPUs, and the rate of its network."""
    rates = dict(pair.split(":") for pair in family["ethernet_gbps"].split())
    for size in family["sizes"].split():
        word, _, count = size.partition(":")
        yield f"{family['family']}{'.' if count else '-'}{word}", int(count or word), rates[word]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--aws", required=True)
    parser.add_argument("--gcp", required=True)
    parser.add_argument("--data", default=os.path.join(top, "data", "catalog"))
    args = parser.parse_args()
    _, families = read(os.path.join(args.data, "curated", "processor_families.tsv"))
    cpus = {row["name"]: row for row in read(os.path.join(args.data, "cpus.tsv"))[1]}
    as_of = {row["key"]: row["as_of"] for row in read(os.path.join(args.data, "sources.tsv"))[1]}
    for cloud, prices in (("aws", prices_of_aws(args.aws)), ("gcp", prices_of_gcp(args.gcp))):
        path = os.path.join(args.data, cloud, "sizes.tsv")
        columns, sizes = read(path)
        known = {row["name"] for row in sizes if row["accelerator"]}
        sizes = [row for row in sizes if row["accelerator"]]
        added = set()
        for family in families:
            if family["cloud"] != cloud:
                continue
            cpu = cpus[family["cpu"]]
            for name, vcpus, rate in sizes_of(family):
                if not any(key[0] == name for key in prices):
                    sys.exit(f"error: {name} has no price in the list of {cloud}")
                added.add(name)
                sizes.append(dict(
                    name=name, cloud=cloud, family=family["family"], purpose=family["purpose"], status="current",
                    vcpus=str(vcpus), memory_gib=number(vcpus * float(family["gib_per_vcpu"])), accelerators="0",
                    ethernet_gbps=rate, rdma="none", rdma_gbps_per_vm="0", infiniband="none", gpu_link="none",
                    scale_up_domain="1", cpu=family["cpu"], cores=str(vcpus // int(family["threads_per_core"])),
                    cpu_ghz=cpu["ghz"], cpu_flops_per_cycle_fp32=cpu["fp32_flop_per_cycle"], source=family["source"],
                    as_of="2026-11-28", note=family["note"], recalled="ethernet_gbps,vcpus,memory_gib," + FLOPS))
        assert not added & known
        write(path, columns, sorted(sizes, key=SIZE_KEY))
        path = os.path.join(args.data, "prices", cloud + ".tsv")
        columns, rows = read(path)
        rows = {(r["size"], r["region"], r["pricing"], r["zone"]): r for r in rows if r["size"] in known}
        for (name, region, pricing), usd in prices.items():
            if name in added and usd > 0:
                rows[name, region, pricing, ""] = dict(
                    size=name, region=region, os="linux", pricing=pricing, usd_per_hour=number(usd),
                    as_of=as_of[SOURCES[cloud]], source=SOURCES[cloud], zone="")
        write(path, columns, [rows[key] for key in sorted(rows)])


if __name__ == "__main__":
    main()
