#!/usr/bin/env python3
"""Makes the small catalogue that golden cases plan with, so that a new price or size moves no case.

usage: tools/freeze_golden_catalog.py [--data data] [--out tests/golden/catalog]

It is run by hand, and rarely: after a change of columns. The diff of tests/golden is then the review.
"""
import argparse
import pathlib
import shutil

SIZES = {
    "Standard_NC4as_T4_v3", "Standard_NC16as_T4_v3", "Standard_NC64as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_NC96ads_A100_v4",
    "Standard_NC40ads_H100_v5", "Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4", "Standard_ND96isr_H100_v5", "Standard_ND96is_H100_v5",
    "Standard_ND96isr_H200_v5", "Standard_NV6ads_A10_v5", "Standard_NV18ads_A10_v5", "Standard_NV36ads_A10_v5", "Standard_NC24s_v3",
    "Standard_NV12s_v3", "Standard_D16s_v5", "Standard_D4s_v5", "Standard_F8s_v2", "Standard_F8as_v6", "Standard_E16s_v5", "Standard_M64s",
    "p4d.24xlarge", "p5.48xlarge", "a3-highgpu-8g", "g2-standard-4",
}
REGIONS = {"eastus", "eastus2", "westeurope", "us-east-1", "us-central1"}
KEEP = {"sizes.tsv": lambda r: r["name"] in SIZES, "prices": lambda r: r["size"] in SIZES and r["region"] in REGIONS}


def rows_of(path):
    lines = path.read_text().splitlines()
    head = lines[0].split("\t")
    return lines[0], [(line, dict(zip(head, line.split("\t")))) for line in lines[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", type=pathlib.Path)
    parser.add_argument("--out", default="tests/golden/catalog", type=pathlib.Path)
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    for path in sorted([*args.data.glob("catalog/**/*"), *args.data.glob("models/*")]):
        if not path.is_file() or "curated" in path.parts:
            continue
        target = args.out / path.relative_to(args.data)
        target.parent.mkdir(parents=True, exist_ok=True)
        keep = KEEP.get(path.name) or KEEP.get(path.parent.name)
        if keep is None:
            shutil.copyfile(path, target)
            continue
        head, rows = rows_of(path)
        target.write_text("\n".join([head, *[line for line, row in rows if keep(row)]]) + "\n")


if __name__ == "__main__":
    main()
