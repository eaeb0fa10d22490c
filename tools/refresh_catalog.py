#!/usr/bin/env python3
"""Rebuild the generated catalogue files from a folder of vendor tables.

    tools/refresh_catalog.py --from DIR [--out data/catalog]

DIR holds accelerators.csv, azure_vm_sizes.csv, azure_retirements.csv,
azure_expected_node_perf.csv, cloud_prices.csv and cloud_prices.sources.csv.
Facts that no vendor table carries are kept by hand in OUT/curated/*.tsv and
are laid over the tables. The same input always gives the same bytes.
Files that are kept by hand in OUT itself (cpus, links, defaults, toolchains,
images, disks, spot_ratios, VERSION) are not touched. See
docs/reference/catalogue-data.md.
"""
import argparse
import collections
import csv
import os
import re
import sys

SIZE_COLUMNS = """name cloud family purpose status retirement_date quota_family
vcpus memory_gib accelerator accelerators accelerator_memory_gib_each
temp_disk_gib nvme_gib nics ethernet_gbps rdma rdma_gbps_per_vm
rdma_gbps_per_gpu infiniband gpu_link scale_up_domain generations
trusted_launch accelerated_networking secure_boot_note cpu cores cpu_ghz
cpu_flops_per_cycle_fp32 source as_of note series_class sku_api_gpus
memory_gib_sku_api recalled""".split()

ACCELERATOR_COLUMNS = """name vendor kind architecture year memory_gb
usable_memory_gib memory_type memory_bandwidth_gb_s fp64_tflops fp32_tflops
tf32_tflops fp16_tflops bf16_tflops fp8_tflops fp4_tflops int8_tops
measured_bf16_tflops measured_fp8_tflops scale_up scale_up_gb_s
scale_up_domain host_link host_gb_s power_w idle_power_w sm_count cuda_cores
tensor_cores supports aliases source as_of note driver_total_gib
recalled""".split()

# Cells filled from memory of a vendor page, not read while the file was made,
# are named in the column `recalled` of their row. The column `checked` of
# curated/accelerators.tsv names those of its cells that were read.
RECALLED_CPU = "cpu,cores,cpu_ghz,cpu_flops_per_cycle_fp32"
# nvidia-smi totals that were read (modal-labs/modal-client pull request 2797)
READ_DRIVER_TOTAL = {"T4", "A10", "L4", "L40S", "A100-SXM-40GB", "A100-SXM-80GB",
                     "H100-SXM"}

# column of accelerators.tsv -> column of the vendor table
VENDOR_ACCELERATOR = {
    "memory_gb": "mem_gb", "memory_type": "mem_type",
    "memory_bandwidth_gb_s": "mem_bw_gb_s", "fp32_tflops": "fp32_tflops",
    "tf32_tflops": "tf32_dense_tflops", "fp16_tflops": "fp16_dense_tflops",
    "bf16_tflops": "bf16_dense_tflops", "fp8_tflops": "fp8_dense_tflops",
    "fp4_tflops": "fp4_dense_tflops", "int8_tops": "int8_dense_tops",
    "scale_up": "scaleup_link", "scale_up_gb_s": "scaleup_gb_s_per_direction",
    "host_link": "host_link", "power_w": "power_w",
    "measured_bf16_tflops": "measured_matmul_bf16_tflops",
    "measured_fp8_tflops": "measured_matmul_fp8_tflops",
}

AS_OF = "2026-11-20"
SIZE_KEY = lambda row: [int(part) if part.isdigit() else part.lower()
                        for part in re.split(r"(\d+)", row["name"])]


def clean(value):
    """One cell: ASCII, no tabs, no quotes, no line breaks."""
    value = "" if value is None else str(value)
    value = value.replace('"', "").replace("\t", " ").replace("\n", " ")
    return value.encode("ascii", "replace").decode("ascii").strip()


def number(value):
    """12.0 -> 12; keeps a text that is not a number as it is."""
    value = clean(value)
    try:
        parsed = float(value)
    except ValueError:
        return value
    if parsed == int(parsed) and abs(parsed) < 1e15:
        return str(int(parsed))
    return repr(round(parsed, 6)).rstrip("0")


def read_csv(folder, name):
    with open(os.path.join(folder, name), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def read_tsv(path):
    with open(path, encoding="ascii") as f:
        lines = f.read().split("\n")
    header = lines[0].split("\t")
    rows = []
    for line in lines[1:]:
        if line and not line.startswith("#"):
            cells = line.split("\t")
            rows.append(dict(zip(header, cells + [""] * (len(header) - len(cells)))))
    return rows


def write_tsv(path, columns, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii", newline="\n") as f:
        f.write("\t".join(columns) + "\n")
        for row in rows:
            f.write("\t".join(clean(row.get(c, "")) for c in columns) + "\n")
    print("%6d rows  %s" % (len(rows), path))


def date_in(text, fallback):
    found = re.findall(r"20\d\d-\d\d(?:-\d\d)?", text or "")
    return max(found) if found else fallback


# ------------------------------------------------------------ accelerators
def accelerators(source, curated):
    vendor = {r["accelerator"]: r for r in read_csv(source, "accelerators.csv")}
    rows = []
    for own in curated:
        base = vendor.get(own["vendor_row"], {})
        if own["vendor_row"] and not base:
            raise SystemExit("vendor row not found: " + own["vendor_row"])
        row = {}
        for column in ACCELERATOR_COLUMNS:
            value = own.get(column, "")
            if not value and column in VENDOR_ACCELERATOR:
                value = base.get(VENDOR_ACCELERATOR[column], "")
            # "-": the vendor table has a value that is wrong for this device
            row[column] = "" if value == "-" else number(value)
        if row["scale_up"].startswith("none"):
            row["scale_up"] = "none"
        row["recalled"] = ",".join(
            c for c in ACCELERATOR_COLUMNS if own.get(c, "") not in ("", "-") and
            c not in own["checked"].split(",") and c not in
            ("name", "vendor", "kind", "aliases", "source", "note", "as_of",
             "architecture", "supports", "scale_up_domain") and
            not (c == "driver_total_gib" and own["name"] in READ_DRIVER_TOTAL))
        own_note, base_note = own.get("note", ""), base.get("notes", "")
        row["note"] = own_note or base_note
        parts = [own.get("source", ""), base.get("source", "")]
        row["source"] = "; ".join(p for p in parts if p)
        row["as_of"] = date_in(row["source"], AS_OF)
        rows.append(row)
    return sorted(rows, key=lambda r: r["name"])


# ------------------------------------------------------------- azure sizes
AZURE_ACCELERATOR = {
    "NVIDIA T4": "T4", "NVIDIA A100 PCIe 80GB": "A100-PCIe-80GB",
    "NVIDIA H100 NVL 94GB": "H100-NVL", "NVIDIA A100 SXM 40GB": "A100-SXM-40GB",
    "NVIDIA A100 SXM 80GB": "A100-SXM-80GB", "NVIDIA H100 SXM 80GB": "H100-SXM",
    "NVIDIA H200 SXM 141GB": "H200-SXM", "AMD Instinct MI300X 192GB": "MI300X",
    "NVIDIA GB200 (Blackwell) 192GB": "GB200",
    "NVIDIA GB300 (Blackwell Ultra) 288GB": "GB300", "NVIDIA A10 24GB": "A10",
    "AMD Radeon PRO V710 24GB": "V710", "AMD Radeon PRO V620 32GB": "V620",
    "NVIDIA RTX PRO 6000 BSE 96GB": "RTX-PRO-6000",
    "NVIDIA V100 16GB": "V100-PCIe-16GB",
    "NVIDIA V100 32GB NVLink": "V100-SXM2-32GB", "NVIDIA M60": "M60",
    "AMD Radeon Instinct MI25": "MI25", "": "",
}


def fraction(text):
    found = re.match(r"^(\d+)(?:/(\d+))?", text or "")
    if not found:
        return None
    return float(found.group(1)) / float(found.group(2) or 1)


def gib(total, disks):
    total = total or ""
    found = re.match(r"([\d.]+)\s*(TiB|TB|GiB)(\s*each)?", total)
    if not found:
        return ""
    value = float(found.group(1))
    value *= {"TiB": 1024.0, "TB": 1e12 / 2**30, "GiB": 1.0}[found.group(2)]
    if found.group(3):
        value *= float(disks)
    return str(int(round(value)))


def azure_sizes(source, curated_dir):
    families = {r["family"]: r for r in
                read_tsv(os.path.join(curated_dir, "azure_families.tsv"))}
    cpus = {r["name"]: r for r in
            read_tsv(os.path.join(curated_dir, "..", "cpus.tsv"))}
    patches = read_tsv(os.path.join(curated_dir, "azure_size_patches.tsv"))
    perf = {r["size_lower"].lower(): r for r in
            read_csv(source, "azure_expected_node_perf.csv")}
    rows, last = [], {}
    for r in read_csv(source, "azure_vm_sizes.csv"):
        name, series = r["size"], re.sub(r" \(.*", "", r["series"])
        fact = families[series]
        for rule in patches:                 # per-size override of family facts
            if rule["size"] == name and rule["column"] in fact:
                fact = dict(fact, **{rule["column"]: rule["value"]})
        notes = [r["note"]]
        status = r["status"]
        if status.startswith("retirement announced"):
            status = "announced"
        elif status.startswith("retirement page exists"):
            status = "announced"
            notes.append("a retirement page exists, its date was not found")
        elif status.startswith("no retirement date"):
            status = "current"
            notes.append("old generation without a retirement date in any list read")
        elif status.startswith("preview"):
            status = "preview"
        dates = re.findall(r"\d{4}-\d\d-\d\d", r["retirement_date"])
        if len(dates) > 1:
            notes.append("two dates published (%s), the earlier is kept"
                         % " and ".join(sorted(dates)))
        accelerator = AZURE_ACCELERATOR[r["accelerator"]]
        count, each = "", r["accel_mem_gb_each"]
        part = fraction(r["accel_fraction"])
        if not accelerator:
            count = "0"
        elif part is not None:
            count = number(part)
            if part < 1:
                each = r["accel_mem_gb_total"]
                if not each and accelerator == "MI25":
                    each = number(16 * part)
            elif not each:
                each = r["accel_mem_gb_total"] or ("16" if accelerator == "MI25" else "")
        elif r["accel_fraction"]:
            each = ""
            notes.append("GPU fraction unknown: not counted as a whole GPU")
        elif r["accel_count"] and r["accel_mem_gb_total"]:
            count = number(r["accel_count"])
        elif accelerator:
            notes.append("GPU count only from the SKU API, which rounds fractions up: left empty")
        # InfiniBand
        generation = r["ib_generation"]
        node = perf.get(name.lower(), {})
        ib, vm, gpu = "none", "0", ""
        if re.match(r"none|^$", generation) and r["ib_gbps_per_vm"] in ("", "0"):
            pass
        else:
            found = re.match(r"(EDR|HDR|NDR)", generation)
            ib = found.group(1) if found else ""
            vm = number(r["ib_gbps_per_vm"])
            if not vm and node.get("ib_link_gbps"):
                vm = number(float(node["ib_ports"]) * float(node["ib_link_gbps"]))
            if not vm:
                vm = number(fact["infiniband_gbps"])
            ib = ib or fact["infiniband"]
            gpu = number(r["ib_gbps_per_gpu"])
            if not gpu and count not in ("", "0") and vm:
                gpu = number(float(vm) / float(count))
        rdma = "none" if ib == "none" else "infiniband"
        if rdma == "none" and accelerator:
            gpu = "0"
        # link between the GPUs of one VM
        whole = float(count) if count else 0.0
        link, domain = "none", "1"
        if whole > 1:
            link = fact["gpu_link"] or "pcie"
            domain = fact["scale_up_domain"] or "1"
        # trusted launch, Secure Boot
        trusted, boot = r["trusted_launch"], ""
        nvidia = r["accelerator"].startswith("NVIDIA")
        if trusted.upper() == "NOT SUPPORTED":
            trusted, boot = "no", "Trusted Launch is not supported on this size"
        elif trusted.startswith("Secure Boot"):
            trusted, boot = "", "Secure Boot and vTPM have to be off for the GRID driver"
        elif trusted.startswith("yes"):
            trusted = "yes"
        if trusted == "yes" and nvidia:
            boot = ("the NVIDIA driver extension needs Secure Boot off; "
                    "use security type Standard or an image with a signed driver")
        if trusted == "confidential":
            boot = "confidential VM: Secure Boot is part of the attestation"
        cpu = cpus.get(fact["cpu"], {})
        vcpus = number(r["vcpus"])
        cores = ""
        if fact["threads_per_core"] and vcpus:
            cores = number(int(vcpus) / float(fact["threads_per_core"]))
        constrained = re.search(r"(?:HB|HC|HX)\d+-(\d+)rs", name)
        if constrained:
            cores = constrained.group(1)
            notes.append("constrained-core size: %s cores are usable" % cores)
        text = r["source"] or last.get(series, "")
        last[series] = text
        rows.append(dict(
            name=name, cloud="azure", family=series, purpose=fact["purpose"],
            status=status, retirement_date=min(dates) if dates else "",
            quota_family=r["quota_family"], vcpus=vcpus,
            memory_gib=number(r["memory_gib"]),
            memory_gib_sku_api=number(r["memory_gib_sku_api"]),
            accelerator=accelerator, accelerators=count,
            accelerator_memory_gib_each=number(each),
            sku_api_gpus=number(r["sku_api_gpus"]),
            temp_disk_gib=number(r["temp_disk_gib"]),
            nvme_gib=gib(r["nvme_total"], r["nvme_disks"]),
            nics=number(r["max_nics"]),
            ethernet_gbps=number(float(r["net_mbps"]) / 1000) if r["net_mbps"] else "",
            rdma=rdma, rdma_gbps_per_vm=vm, rdma_gbps_per_gpu=gpu, infiniband=ib,
            gpu_link=link, scale_up_domain=domain,
            generations=r["generations"], trusted_launch=trusted,
            accelerated_networking=r["accelerated_networking"].lower(),
            secure_boot_note=boot, cpu=fact["cpu"], cores=cores,
            cpu_ghz=cpu.get("ghz", ""),
            cpu_flops_per_cycle_fp32=cpu.get("fp32_flop_per_cycle", ""),
            recalled=RECALLED_CPU if fact["cpu"] else "",
            series_class=fact["series_class"], source=text,
            as_of=date_in(text, AS_OF),
            note="; ".join(n for n in notes + [fact["note"]] if n)))
    by_name = {r["name"]: r for r in rows}
    for extra in read_tsv(os.path.join(curated_dir, "azure_extra_sizes.tsv")):
        row = dict(by_name[extra["like"]])
        row.update({k: v for k, v in extra.items() if v and k != "like"})
        rows.append(row)
    for rule in patches:
        if rule["column"] in SIZE_COLUMNS:
            for row in rows:
                if row["name"] == rule["size"]:
                    row[rule["column"]] = rule["value"]
    return sorted(rows, key=SIZE_KEY)


# -------------------------------------------------------- sizes elsewhere
OTHER_ACCELERATOR = {
    "NVIDIA T4": "T4", "NVIDIA T4G": "T4G", "NVIDIA A10G": "A10G",
    "NVIDIA L4": "L4", "NVIDIA L4 (fraction)": "L4", "NVIDIA L40S": "L40S",
    "NVIDIA RTX PRO 6000": "RTX-PRO-6000", "AMD Radeon Pro V520": "V520",
    "AWS Inferentia": "Inferentia1", "AWS Inferentia2": "Inferentia2",
    "AWS Trainium": "Trainium1", "NVIDIA V100 16GB": "V100-SXM2-16GB",
    "NVIDIA V100 32GB": "V100-SXM2-32GB", "NVIDIA A100 40GB": "A100-SXM-40GB",
    "NVIDIA A100 80GB": "A100-SXM-80GB", "NVIDIA H100 80GB": "H100-SXM",
    "NVIDIA H100": "H100-SXM", "NVIDIA H200": "H200-SXM",
    "NVIDIA B200": "B200-SXM", "NVIDIA B300": "B300-SXM",
    "NVIDIA A6000": "RTX-A6000", "NVIDIA GH200 96GB": "GH200",
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB",
}


def other_sizes(prices, folder, groups):
    """groups: cloud -> output file. Shapes and networks come from
    curated/other_sizes.tsv where the price table does not carry them."""
    facts = {(r["cloud"], r["name"]): r for r in
             read_tsv(os.path.join(folder, "other_sizes.tsv"))}
    cpus = {r["name"]: r for r in read_tsv(os.path.join(folder, "..", "cpus.tsv"))}
    gpus = {r["name"]: r for r in groups.pop("accelerators")}
    seen, out = set(), collections.defaultdict(list)
    entries = [(p["cloud"], p["instance_type"], p) for p in prices
               if p["cloud"] != "azure"]
    entries += [(c, n, None) for c, n in facts]
    for cloud, name, p in entries:
        if (cloud, name) in seen:
            continue
        seen.add((cloud, name))
        fact = facts.get((cloud, name), {})
        get = lambda key: fact.get(key, "")
        accelerator = get("accelerator")
        if not accelerator and p and p["accelerator"]:
            accelerator = OTHER_ACCELERATOR[p["accelerator"]]
        if not accelerator:
            continue                       # accelerator not known: not listed
        count = get("accelerators")
        if not count and p:
            part = fraction(p["count"])
            count = number(part) if part else ""
        licensed = p is not None and cloud in ("aws", "gcp")
        vcpus = get("vcpus") or (number(p["vcpus"]) if licensed else "")
        memory = get("memory_gib") or (number(p["memory_gib"]) if licensed else "")
        each = ""
        if count:
            each = number(float(gpus[accelerator]["memory_gb"]) * min(1.0, float(count)))
        whole = float(count) if count else 0
        link = domain = ""
        if whole > 1:
            link = get("gpu_link") or "pcie"
            domain = get("scale_up_domain") or ("1" if link == "pcie" else str(int(whole)))
        elif whole or not count:
            link, domain = "none", "1"
        rdma = get("rdma") or "none"
        per_vm = get("rdma_gbps_per_vm") or ("0" if rdma == "none" else "")
        per_gpu = ""
        if per_vm and whole:
            per_gpu = number(float(per_vm) / max(1.0, whole))
        cpu = cpus.get(get("cpu"), {})
        threads = get("threads_per_core")
        cores = number(int(vcpus) / float(threads)) if threads and vcpus else ""
        text = get("source") or (
            "aws/karpenter-provider-aws price list and kubernetes/autoscaler EC2 list"
            if cloud == "aws" else "cloudpilot-ai/karpenter-provider-gcp price list")
        out[groups.get(cloud, "other")].append(dict(
            name=name, cloud=cloud, family=re.split(r"[.\-_]", name)[0],
            purpose=get("purpose") or "inference", status="current",
            vcpus=vcpus, memory_gib=memory, accelerator=accelerator,
            accelerators=count, accelerator_memory_gib_each=each,
            ethernet_gbps=get("ethernet_gbps"), nvme_gib=get("nvme_gib"),
            rdma=rdma, rdma_gbps_per_vm=per_vm, rdma_gbps_per_gpu=per_gpu,
            infiniband=get("infiniband") or ("none" if rdma != "infiniband" else ""),
            gpu_link=link, scale_up_domain=domain, cpu=get("cpu"), cores=cores,
            cpu_ghz=cpu.get("ghz", ""),
            cpu_flops_per_cycle_fp32=cpu.get("fp32_flop_per_cycle", ""),
            recalled=",".join(
                ["ethernet_gbps"] * bool(get("ethernet_gbps")) +
                ["nvme_gib"] * bool(get("nvme_gib")) +
                ["rdma_gbps_per_vm"] * (rdma != "none") +
                ["accelerators"] * bool(licensed and get("accelerators")) +
                ["vcpus,memory_gib"] * bool(cloud == "gcp" or
                                            name == "p6-b300.48xlarge") +
                [RECALLED_CPU] * bool(get("cpu"))),
            series_class="", source=text, as_of=date_in(text, AS_OF),
            note=get("note")))
    return {k: sorted(v, key=SIZE_KEY) for k, v in out.items()}


# ------------------------------------------------------------------ prices
PRICE_COLUMNS = "size region os pricing usd_per_hour as_of source zone".split()
# key of the vendor table -> key of data/catalog/sources.tsv
SOURCE_KEY = {"A": "azure-retail-via-karpenter", "W": "aws-via-karpenter",
              "G": "gcp-via-karpenter", "S": "skypilot-azure",
              "L": "skypilot-lambda", "R": "skypilot-runpod",
              "N": "skypilot-nebius"}


def price_rows(prices, sources, report):
    shipped = {k for k, s in sources.items() if "not seen" not in s["licence"]}
    files = collections.defaultdict(dict)
    for p in prices:
        keys = p["source_key"].split("+")
        # the first key is the on-demand price, the last one the spot price
        for pricing, column, key in (("on-demand", "price_usd_hour", keys[0]),
                                     ("spot", "spot_usd_hour", keys[-1])):
            value = number(p[column])
            if not value:
                continue
            if key not in shipped:
                report["dropped %s %s: licence not seen" % (key, pricing)] += 1
                continue
            if float(value) <= 0:
                report["dropped %s %s: not positive" % (key, pricing)] += 1
                continue
            report["kept %s %s" % (key, pricing)] += 1
            file = p["cloud"] if p["cloud"] in ("azure", "aws", "gcp") else "other"
            row = dict(size=p["instance_type"], region=p["region"], os="linux",
                       pricing=pricing, usd_per_hour=value,
                       as_of=date_in(sources[key]["as_of"], AS_OF),
                       source=SOURCE_KEY[key], zone=p["zone"])
            ident = (row["size"], row["region"], row["pricing"], row["zone"])
            if ident in files[file]:
                raise SystemExit("two prices for one key: %s" % (ident,))
            files[file][ident] = row
    return {f: [rows[k] for k in sorted(rows)] for f, rows in files.items()}


# ------------------------------------------------------------- retirements
def series(prefix, numbers, suffix=""):
    return ["Standard_%s%s%s" % (prefix, n, suffix) for n in numbers]


# families that the vendor table only names by pattern
EXPANDED = {
    "HB": ["Standard_HB60rs", "Standard_HB60-15rs", "Standard_HB60-30rs",
           "Standard_HB60-45rs"],
    "HBv2": ["Standard_HB120rs_v2"] + series("HB120-", [16, 32, 64, 96], "rs_v2"),
    "Av1": series("A", range(0, 12)) + ["Basic_A%d" % n for n in range(0, 5)],
    "D, Ds, Dv2, Dsv2, Ls":
        series("D", [1, 2, 3, 4, 11, 12, 13, 14]) +
        series("DS", [1, 2, 3, 4, 11, 12, 13, 14]) +
        series("D", [1, 2, 3, 4, 5, 11, 12, 13, 14, 15], "_v2") +
        series("DS", [1, 2, 3, 4, 5, 11, 12, 13, 14, 15], "_v2") +
        series("L", [4, 8, 16, 32], "s"),
    "F, Fs, Fsv2, Lsv2, G, Gs, Av2, Amv2, B":
        series("F", [1, 2, 4, 8, 16]) + series("F", [1, 2, 4, 8, 16], "s") +
        series("F", [2, 4, 8, 16, 32, 48, 64, 72], "s_v2") +
        series("L", [8, 16, 32, 48, 64, 80], "s_v2") +
        series("G", range(1, 6)) + series("GS", range(1, 6)) +
        series("A", [1, 2, 4, 8], "_v2") + series("A", [2, 4, 8], "m_v2") +
        series("B", ["1ls", "1s", "1ms", "2s", "2ms", "4ms", "8ms", "12ms",
                     "16ms", "20ms"]),
    "DCsv2": series("DC", ["1s_v2", "2s_v2", "4s_v2", "8_v2"]),
}
FEATURES = {"Azure Batch low-priority VMs", "Azure ML low-priority",
            "Batch NCv3 pools", "Default outbound access for VMs",
            "AKS --skip-gpu-driver-install tag", "AKS GPU VHD image (preview)",
            "AKS Azure Linux 2.0",
            "AKS Flatcar (preview), Windows Annual Channel",
            "Azure ML SDK v1 / CLI v1"}
RETIREMENT_COLUMNS = ("what kind size date status target source as_of note "
                      "accelerator").split()


def retirements(source, curated_dir):
    rows = [dict(r, as_of=date_in(r["source"], AS_OF)) for r in
            read_tsv(os.path.join(curated_dir, "azure_extra_retirements.tsv"))]
    for r in read_csv(source, "azure_retirements.csv"):
        what = r["what"]
        text = r["status_on_2026_11_20"]
        status = ("retired" if text.startswith("retired") else
                  "announced" if text.startswith(("announced", "retirement page"))
                  else "unknown")
        dates = re.findall(r"\d{4}-\d\d-\d\d", r["retirement_date"])
        notes = [r["note"]]
        if not dates:
            notes.append("date not found" if status != "unknown" else text)
        elif len(dates) > 1 and what in FEATURES and "SDK" not in what:
            notes.append("published as: " + r["retirement_date"])
        base = dict(what=what, date=dates[0] if dates else "", status=status,
                    target=r["migration_target"], source=r["source"],
                    as_of=AS_OF, accelerator=r["accelerator"].strip("-"),
                    note="; ".join(n for n in notes if n))
        if what == "Azure ML SDK v1 / CLI v1":
            rows.append(dict(base, what="Azure ML SDK v1", kind="feature", size="",
                             date=dates[0], note="package azureml-core"))
            rows.append(dict(base, what="Azure ML CLI v1", kind="feature", size="",
                             date=dates[1], note="extension azure-cli-ml"))
            continue
        if what in FEATURES:
            base["note"] = "; ".join(x for x in (r["sizes_or_feature"], base["note"]) if x)
            rows.append(dict(base, kind="feature", size=""))
            continue
        if what in EXPANDED:
            names = EXPANDED[what]
        else:
            names = []
            for token in r["sizes_or_feature"].split():
                if re.match(r"^(Standard_)?[A-Z]+\d", token):
                    token = token if token.startswith("Standard_") else "Standard_" + token
                    names.append(token)
            if "Promo" in what or "Promo" in r["sizes_or_feature"]:
                names += [n + "_Promo" for n in names]
        if not names:
            raise SystemExit("no size name in retirement row: " + what)
        for name in names:
            rows.append(dict(base, kind="size", size=name))
    return sorted(rows, key=lambda x: (x["kind"], x["size"], x["what"]))


# -------------------------------------------------------------------- main
NODE_COLUMNS = """size sockets cores physical_memory gpus ib_ports ib_link_gbps
ib_gpudirect_min_gbps ib_bandwidth_min_gbps h2d_d2h_min_gb_s gpu_p2p_min_gb_s
nccl_allreduce_min_gb_s nccl_message nccl_ib_loopback_min_gb_s
stream_triad_min_mb_s nvme_disks source as_of""".split()
NODE_FROM = """size_lower sockets cores physmem gpu_count ib_ports ib_link_gbps
ib_gdr_bw_min_gbps ib_bw_min_gbps gpu_h2d_d2h_min_gbs gpu_p2p_min_gbs
nccl_allreduce_min_gbs nccl_msg nccl_ib_loopback_min_gbs stream_triad_min_mbs
nvme_count""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--from", dest="source", required=True, metavar="DIR",
                        help="folder with the vendor tables")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--out", default=os.path.join(root, "data", "catalog"))
    args = parser.parse_args()
    out, curated = args.out, os.path.join(args.out, "curated")
    path = lambda *parts: os.path.join(out, *parts)

    gpus = accelerators(args.source, read_tsv(os.path.join(curated, "accelerators.tsv")))
    write_tsv(path("accelerators.tsv"), ACCELERATOR_COLUMNS, gpus)
    sizes = azure_sizes(args.source, curated)
    write_tsv(path("azure", "sizes.tsv"), SIZE_COLUMNS, sizes)

    prices = read_csv(args.source, "cloud_prices.csv")
    sources = {s["source_key"]: s for s in
               read_csv(args.source, "cloud_prices.sources.csv")}
    report = collections.Counter()
    priced = price_rows(prices, sources, report)
    for cloud in ("azure", "aws", "gcp", "other"):
        write_tsv(path("prices", cloud + ".tsv"), PRICE_COLUMNS, priced.get(cloud, []))
    groups = {"aws": "aws", "gcp": "gcp", "accelerators": gpus}
    elsewhere = other_sizes(prices, curated, groups)
    for cloud in ("aws", "gcp", "other"):
        write_tsv(path(cloud, "sizes.tsv"), SIZE_COLUMNS, elsewhere.get(cloud, []))

    rows = [dict(key=SOURCE_KEY[k], title=s["repo"], where=s["path"],
                 revision=s["commit"], as_of=date_in(s["as_of"], ""),
                 licence=s["licence"] if "not seen" not in s["licence"] else "",
                 shipped="no" if "not seen" in s["licence"] else "yes",
                 note=s["note"]) for k, s in sources.items()]
    write_tsv(path("sources.tsv"), "key title where as_of licence revision shipped note".split(),
              sorted(rows, key=lambda r: r["key"]))
    write_tsv(path("azure", "retirements.tsv"), RETIREMENT_COLUMNS,
              retirements(args.source, curated))

    names = {s["name"].lower(): s["name"] for s in sizes}
    nodes = []
    for r in read_csv(args.source, "azure_expected_node_perf.csv"):
        row = {a: number(r[b]) for a, b in zip(NODE_COLUMNS, NODE_FROM)}
        row["size"] = names.get(r["size_lower"].lower(), r["size_lower"])
        row.update(source="Azure/azurehpc-health-checks@0e0a1ac", as_of="2026-05-01")
        nodes.append(row)
    write_tsv(path("azure", "node_checks.tsv"), NODE_COLUMNS,
              sorted(nodes, key=lambda r: r["size"].lower()))

    regions = {r["region"]: r for r in read_tsv(os.path.join(curated, "azure_regions.tsv"))}
    used = sorted({p["region"] for p in prices if p["cloud"] == "azure"})
    write_tsv(path("azure", "regions.tsv"),
              "region name geography co2_kg_per_kwh source as_of".split(),
              [dict(regions.get(r, {}), region=r,
                    source=regions.get(r, {}).get("source") or "azure-retail-via-karpenter",
                    as_of=date_in(sources["A"]["as_of"], AS_OF)) for r in used])
    for line in sorted(report):
        print("%6d %s" % (report[line], line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
