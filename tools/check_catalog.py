#!/usr/bin/env python3
"""Check the catalogue: tools/check_catalog.py [--data data] [--verbose]

References resolve, keys are unique, rows are sorted, numbers are in range,
cells are ASCII, and every model's shape gives its published parameter count
to within 0.5 %. Prints each fault and exits 1 when there is one; warnings
(facts worth knowing that are not faults) never change the exit status.
"""
import argparse
import os
import re
import sys

import accelerator_laws as laws

FAULTS, WARNINGS = [], []
PRECISIONS = set("fp64 fp32 tf32 fp16 bf16 fp8 fp6 fp4 int8 int4".split())


def fault(*parts):
    FAULTS.append(" ".join(str(p) for p in parts))


def warn(*parts):
    WARNINGS.append(" ".join(str(p) for p in parts))


def read(root, name):
    path = os.path.join(root, name)
    with open(path, "rb") as f:
        raw = f.read()
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError as error:
        fault(name, "is not ASCII:", error)
        text = raw.decode("utf-8", "replace")
    if "\r" in text or '"' in text:
        fault(name, "holds a quote or a carriage return")
    if not text.endswith("\n"):
        fault(name, "does not end with a newline")
    lines = text.split("\n")[:-1]
    header = lines[0].split("\t")
    if len(set(header)) != len(header):
        fault(name, "repeats a column name")
    rows = []
    for i, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(header):
            fault("%s:%d: %d cells, header has %d" % (name, i, len(cells), len(header)))
            continue
        if any(c != c.strip() for c in cells):
            fault("%s:%d: blank at the edge of a cell" % (name, i))
        rows.append(dict(zip(header, cells), _at="%s:%d" % (name, i)))
    if "source" not in header and not name.endswith("sources.tsv"):
        fault(name, "has no source column")
    return rows


def order(text):
    return [(0, int(p), "") if p.isdigit() else (1, 0, p.lower())
            for p in re.split(r"(\d+)", text) if p]


def unique_sorted(rows, columns, natural=False):
    seen, last = set(), None
    for row in rows:
        key = tuple(row[c] for c in columns)
        if key in seen:
            fault(row["_at"], "repeats the key", key)
        seen.add(key)
        this = tuple(order(k) for k in key) if natural else key
        if last is not None and this < last:
            fault(row["_at"], "is out of order:", key)
        last = this


def number(row, column, low=None, high=None, need=False, zero=False):
    text = row.get(column, "")
    if text == "":
        if need:
            fault(row["_at"], "has no", column)
        return None
    try:
        value = float(text)
    except ValueError:
        fault(row["_at"], column, "is not a number:", text)
        return None
    if value < 0 or (value == 0 and not zero):
        fault(row["_at"], column, "must be positive:", text)
    if (low is not None and value < low) or (high is not None and value > high):
        fault(row["_at"], column, "outside %s..%s:" % (low, high), text)
    return value


def date(row, column, need=False):
    text = row.get(column, "")
    if not text and not need:
        return
    if not re.match(r"^\d{4}(-\d\d(-\d\d)?)?$", text):
        fault(row["_at"], column, "is not a date:", text)


# ------------------------------------------------------------------ models
def parameters(m):
    """Weights of a transformer from its shape; docs/reference/catalogue-data.md."""
    n = lambda c: int(m[c] or 0)
    h, f, heads, kv, d = n("hidden"), n("ffn"), n("heads"), n("kv_heads"), n("head_dim")
    gate = 3 if m["gated"] == "yes" else 2
    norm = h * (2 if m["norm"] == "layernorm" else 1)
    if m["attention"] == "mla":
        q, kvr = n("q_lora_rank"), n("kv_lora_rank")
        qk = n("nope_head_dim") + n("rope_head_dim")
        attn = (h * q + q + q * heads * qk) if q else h * heads * qk
        attn += h * (kvr + n("rope_head_dim")) + kvr
        attn += kvr * heads * (n("nope_head_dim") + n("v_head_dim"))
        attn += heads * n("v_head_dim") * h
    else:
        attn = h * heads * d + 2 * h * kv * d + heads * d * h
    if m["biases"] in ("yes", "qkv"):
        attn += heads * d + 2 * kv * d
    if m["biases"] == "yes":
        attn += h
    def mlp(width):
        weights = gate * h * width
        if m["biases"] in ("yes", "mlp"):
            weights += (gate - 1) * width + h
        return weights
    layers, dense = n("layers"), n("dense_layers")
    experts = n("experts")
    if experts:
        moe = experts * mlp(n("expert_ffn")) + h * experts
        if n("shared_expert_ffn"):
            moe += mlp(n("shared_expert_ffn"))
        active = n("active_experts") * mlp(n("expert_ffn")) + h * experts
        if n("shared_expert_ffn"):
            active += mlp(n("shared_expert_ffn"))
    else:
        moe = active = mlp(f)
        dense = 0
    def body(per_layer):
        return ((layers - dense) * (attn + per_layer + 2 * norm) +
                dense * (attn + mlp(f) + 2 * norm))
    total, used = body(moe), body(active)
    extra = norm + n("learned_positions") * h + n("extra_parameters")
    if n("encoder_layers"):
        extra += n("encoder_layers") * (attn + mlp(f) + 2 * norm) + norm
        extra += layers * (attn + norm)          # cross attention
    table = n("vocabulary") * h
    extra += table if m["tied_embeddings"] == "yes" else 2 * table
    return total + extra, used + extra


def check_requests(root):
    rows = read(root, "models/requests.tsv")
    unique_sorted(rows, ["model"])
    models = {m["name"]: m for m in read(root, "models/models.tsv")}
    asked = {r["model"] for r in rows}
    for name, m in models.items():
        # A sibling that nobody listed would be asked for tokens, and its encoders would cost nothing.
        if name not in asked and (m["kind"] == "diffusion" or m["sample_unit"] == "30 s audio"):
            fault(m["_at"], "models/requests.tsv does not say what a request is of", name)
    for r in rows:
        if r["model"] not in models:
            fault(r["_at"], "no model", r["model"])
        if not r["source"]:
            fault(r["_at"], "has no source")
        date(r, "as_of", need=True)
        if not r["steps"] and not r["window_s"]:
            fault(r["_at"], "has neither steps nor a window")
        number(r, "steps", 1, 1000)
        number(r, "once_flops", 1e9, 1e15)


def check_batches(root):
    """Batches of published runs: by class of model, ascending, each with its source."""
    rows = read(root, "models/batches.tsv")
    below = {}
    for r in rows:
        date(r, "as_of", need=True)
        if not r["source"]:
            fault(r["_at"], "has no source")
        number(r, "sequences", 1, 1e6, need=True)
        number(r, "sequence", 128, 1e6, need=True)
        number(r, "gpus", 1, 1e6)
        here = number(r, "parameters_below", 1e6, 1e15)
        if here is not None and here <= below.get(r["mixture"], 0):
            fault(r["_at"], "classes do not ascend")
        below[r["mixture"]] = here or below.get(r["mixture"], 0)


def check_hf_types(root):
    """What a model_type of Hugging Face implies: either a shape that can be read, or why it cannot."""
    rows = read(root, "models/hf_types.tsv")
    unique_sorted(rows, ["model_type"])
    for t in rows:
        date(t, "as_of", need=True)
        if not t["source"]:
            fault(t["_at"], "has no source")
        if t["unsupported"]:
            if t["kind"] or t["defaults"]:
                fault(t["_at"], "is unsupported, and has a kind or defaults")
            continue
        if t["kind"] not in ("decoder", "encoder", "encoder-decoder", "vit"):
            fault(t["_at"], "kind", t["kind"])
        for pair in t["defaults"].split():
            if not re.fullmatch(r"[a-z_]+=(\d{1,9}|yes|no)", pair):
                fault(t["_at"], "default", pair)


def check_models(root, verbose):
    rows = read(root, "models/models.tsv")
    unique_sorted(rows, ["name"])
    if len(rows) < 36:
        fault("models: only", len(rows), "rows, 36 wanted")
    worst = (0.0, "")
    aliases = {}
    for m in rows:
        published = number(m, "parameters", 1e6, 2e12, need=True)
        for name in [m["name"]] + [a for a in m["aliases"].split(",") if a]:
            if aliases.setdefault(name.lower(), m["name"]) != m["name"]:
                fault(m["_at"], "alias", name, "also names", aliases[name.lower()])
        date(m, "as_of", need=True)
        if not m["source"]:
            fault(m["_at"], "has no source")
        if m["kind"] in ("cnn", "diffusion"):
            number(m, "forward_flops_per_sample", 1e6, 1e17, need=True)
            continue
        for column in "layers hidden heads kv_heads head_dim ffn".split():
            number(m, column, need=True)
        if m["attention"] not in ("mha", "gqa", "mla"):
            fault(m["_at"], "attention", m["attention"])
        if int(m["heads"]) % int(m["kv_heads"]):
            fault(m["_at"], "kv_heads does not divide heads")
        total, active = parameters(m)
        error = total / published - 1
        worst = max(worst, (abs(error), m["name"]))
        if abs(error) > 0.005:
            fault(m["_at"], m["name"], "shape gives %d, published %d: %+.2f %%"
                  % (total, published, 100 * error))
        claimed = number(m, "active_parameters")
        table = int(m["vocabulary"]) * int(m["hidden"])
        # some publishers leave the input table out of the active count
        if claimed and min(abs(active / claimed - 1),
                           abs((active - table) / claimed - 1)) > 0.05:
            fault(m["_at"], m["name"], "active %d, published %d" % (active, claimed))
        if verbose:
            print("%-24s %16d %16d %+.4f %%" % (m["name"], published, total, 100 * error))
    print("models: %d, worst parameter error %.3f %% (%s)"
          % (len(rows), 100 * worst[0], worst[1]))
    return rows


# --------------------------------------------------------------- catalogue
def check_accelerators(root):
    rows = read(root, "catalog/accelerators.tsv")
    unique_sorted(rows, ["name"])
    toolchains = read(root, "catalog/toolchains.tsv")
    unique_sorted(toolchains, ["architecture"])
    known_toolchains = {t["architecture"] for t in toolchains}
    aliases = {}
    for r in rows:
        memory = number(r, "memory_gb", 4, 1024, need=True)
        usable = number(r, "usable_memory_gib", 4, 1024)
        if usable and usable * 2**30 > float(r["memory_gb"]) * 1.08e9:
            fault(r["_at"], "usable memory above the nominal memory")
        if usable and usable < 0.85 * memory:
            fault(r["_at"], "usable memory far below the nominal memory")
        bandwidth = number(r, "memory_bandwidth_gb_s", 20, 30000, need=True)
        low, high = laws.BANDWIDTH.get(r["memory_type"], (1, 0))
        if low > high:
            fault(r["_at"], "memory type", r["memory_type"])
        elif bandwidth and not low <= bandwidth <= high:
            fault(r["_at"], r["memory_type"], "at %g GB/s; %g to %g is possible" % (bandwidth, low, high))
        laws.check_peaks(r, number, fault, warn)
        for measured, peak in (("measured_bf16_tflops", "bf16_tflops"),
                               ("measured_fp8_tflops", "fp8_tflops")):
            a, b = number(r, measured), number(r, peak) or number(r, "fp16_tflops")
            # Boards clock higher than their data sheets say.
            if a and (not b or not 0.3 * b <= a <= 1.2 * b):
                fault(r["_at"], measured, "outside 0.3 to 1.2 of the peak")
        if "AMD" in r["vendor"] and r["kind"] == "gpu" and not r["sm_count"]:
            fault(r["_at"], "has no count of compute units")
        rate = number(r, "scale_up_gb_s", 1, 2000)
        if r["scale_up"] in laws.NVLINK and rate != laws.NVLINK[r["scale_up"]]:
            fault(r["_at"], r["scale_up"], "is", laws.NVLINK[r["scale_up"]], "GB/s in one direction")
        if r["kind"] == "gpu" and (r["scale_up"] == "none") == bool(rate):
            fault(r["_at"], "scale_up and scale_up_gb_s disagree")
        domain = number(r, "scale_up_domain", 1, 10000)
        if r["scale_up"] == "none" and domain and domain > 1:
            fault(r["_at"], "a domain of", domain, "without a link")
        host = number(r, "host_gb_s", 1, 1000, need=r["kind"] == "gpu")
        if r["host_link"] in laws.PCIE and host and host != laws.PCIE[r["host_link"]]:
            fault(r["_at"], r["host_link"], "is", laws.PCIE[r["host_link"]], "GB/s")
        number(r, "power_w", 20, 3000, need=r["kind"] == "gpu")
        if r["kind"] not in ("gpu", "tpu", "asic", "fpga"):
            fault(r["_at"], "kind", r["kind"])
        if r["kind"] != "gpu" and r["architecture"] not in known_toolchains:
            fault(r["_at"], r["architecture"], "has no row in toolchains.tsv")
        for p in r["supports"].split(","):
            if p not in PRECISIONS:
                fault(r["_at"], "unknown precision", p)
        for name in [r["name"]] + [a for a in r["aliases"].split(",") if a]:
            if aliases.setdefault(name.lower(), r["name"]) != r["name"]:
                fault(r["_at"], "alias", name, "also names", aliases[name.lower()])
        if not r["source"]:
            fault(r["_at"], "has no source")
        date(r, "as_of", need=True)
    for t in toolchains:
        if t["architecture"] not in {r["architecture"] for r in rows}:
            fault(t["_at"], "no accelerator is of architecture", t["architecture"])
        for column in ("toolchain", "lock_in", "source"):
            if not t[column]:
                fault(t["_at"], "has no", column)
    return rows


def check_sizes(root, clouds, gpus, cpus):
    known = {g["name"] for g in gpus}
    cards = {g["name"]: float(g["memory_gb"]) for g in gpus}
    processors = {c["name"] for c in cpus}
    sizes = {}
    for cloud in clouds:
        rows = read(root, "catalog/%s/sizes.tsv" % cloud)
        unique_sorted(rows, ["name"], natural=True)
        sizes[cloud] = rows
        for r in rows:
            number(r, "vcpus", 1, 2000, need=cloud == "azure")
            number(r, "memory_gib", 0.5, 40000)
            count = number(r, "accelerators", 0, 72, zero=True)
            if r["accelerator"] and r["accelerator"] not in known:
                fault(r["_at"], "unknown accelerator", r["accelerator"])
            if not r["accelerator"] and count != 0:
                fault(r["_at"], "accelerators without an accelerator")
            if r["accelerator"] and count == 0:
                fault(r["_at"], "accelerator with a count of 0")
            if r["accelerator"] and count is None:
                warn(r["_at"], r["name"], "accelerator count unknown")
            # one GPU, or the part, has no more memory than the card; a whole one not much less
            if r["accelerator"] in cards and count and r["accelerator_memory_gib_each"]:
                each, card = float(r["accelerator_memory_gib_each"]), cards[r["accelerator"]]
                if each > 1.08 * card * min(1.0, count) or (count >= 1 and each < 0.75 * card):
                    fault(r["_at"], "%g GiB for each of %g %s of %g GB" % (each, count, r["accelerator"], card))
            if r["cpu"] and r["cpu"] not in processors:
                fault(r["_at"], "unknown cpu", r["cpu"])
            number(r, "accelerator_memory_gib_each", 1, 400)
            if r["status"] not in ("current", "announced", "retired", "preview"):
                fault(r["_at"], "status", r["status"])
            if r["purpose"] not in ("training inference visualisation hpc general "
                                    "compute memory").split():
                fault(r["_at"], "purpose", r["purpose"])
            if r["status"] == "retired" and not r["retirement_date"]:
                fault(r["_at"], "retired without a date")
            if r["rdma"] not in ("infiniband", "efa", "roce", "none"):
                fault(r["_at"], "rdma", r["rdma"])
            per_vm = number(r, "rdma_gbps_per_vm", 0, 20000, zero=True)
            per_gpu = number(r, "rdma_gbps_per_gpu", 0, 2000, zero=True)
            if (r["rdma"] == "none") != (per_vm == 0):
                fault(r["_at"], "rdma and rdma_gbps_per_vm disagree")
            if per_vm and per_gpu and count and abs(per_gpu * count - per_vm) > 1:
                fault(r["_at"], "rdma per GPU times GPUs is not rdma per VM")
            number(r, "ethernet_gbps", 0.1, 20000)
            number(r, "scale_up_domain", 1, 72, need=cloud == "azure")
            date(r, "retirement_date")
            date(r, "as_of", need=True)
            if not r["source"]:
                fault(r["_at"], "has no source")
    return sizes


def check_prices(root, sizes, sources):
    keys = {s["key"] for s in sources if s["shipped"] == "yes"}
    for file in ("azure", "aws", "gcp", "other"):
        rows = read(root, "catalog/prices/%s.tsv" % file)
        unique_sorted(rows, ["size", "region", "pricing", "zone"])
        names = {r["name"] for r in sizes[file]}
        missing, listed = set(), {}
        for r in rows:
            number(r, "usd_per_hour", 0.001, 2000, need=True)
            if r["source"] not in keys:
                fault(r["_at"], "source not shipped or unknown:", r["source"])
            if r["os"] not in ("linux", "windows"):
                fault(r["_at"], "os", r["os"])
            date(r, "as_of", need=True)
            if r["size"] not in names:
                missing.add(r["size"])
            price = float(r["usd_per_hour"])
            if r["pricing"] == "on-demand":
                listed[r["size"], r["region"], r["zone"]] = price
        for r in rows:
            if r["pricing"] == "spot":
                full = listed.get((r["size"], r["region"], r["zone"]))
                if full and float(r["usd_per_hour"]) > full:
                    warn(r["_at"], "spot above on-demand")
        if missing:
            warn("prices/%s.tsv: %d priced sizes have no row in sizes.tsv" % (file, len(missing)))
        unpriced = sorted(names - {r["size"] for r in rows})
        if unpriced:
            warn("prices/%s.tsv: %d sizes have no price: %s" % (file, len(unpriced),
                 " ".join(unpriced[:6]) + (" ..." if len(unpriced) > 6 else "")))
    return None


def check_rest(root, sizes, gpus, regions):
    known = {g["name"] for g in gpus}
    azure = {r["name"]: r for r in sizes["azure"]}
    rows = read(root, "catalog/azure/retirements.tsv")
    unique_sorted(rows, ["kind", "size", "what"])
    gone = {}
    for r in rows:
        date(r, "date")
        if r["kind"] not in ("size", "feature"):
            fault(r["_at"], "kind", r["kind"])
        if (r["kind"] == "size") != bool(r["size"]):
            fault(r["_at"], "size missing or unexpected")
        if r["status"] not in ("retired", "announced", "unknown"):
            fault(r["_at"], "status", r["status"])
        if r["kind"] == "size":
            if not re.match(r"^(Standard|Basic)_[A-Za-z0-9_-]+$", r["size"]):
                fault(r["_at"], "is not a size name:", r["size"])
            if r["size"] in gone:
                fault(r["_at"], "size listed twice:", r["size"])
            gone[r["size"]] = r
            own = azure.get(r["size"])
            if own and own["retirement_date"] != r["date"]:
                fault(r["_at"], "date differs from sizes.tsv:", own["retirement_date"])
            if own and r["status"] in ("retired", "announced") and own["status"] != r["status"]:
                fault(r["_at"], "status differs from sizes.tsv:", own["status"])
    for name, own in azure.items():
        if own["status"] in ("retired", "announced") and name not in gone:
            fault(own["_at"], name, own["status"], "but not in retirements.tsv")
    for r in read(root, "catalog/azure/node_checks.tsv"):
        if r["size"] not in azure:
            warn(r["_at"], "node check for a size without a row:", r["size"])
    for r in read(root, "catalog/azure/spot_ratios.tsv"):
        low, high = number(r, "low_ratio", 0, 1), number(r, "high_ratio", 0, 1)
        if r["accelerator"] and r["accelerator"] not in known:
            fault(r["_at"], "unknown accelerator", r["accelerator"])
        if low and high and low > high:
            fault(r["_at"], "low above high")
    unique_sorted(regions, ["region"])
    names = {r["region"] for r in regions}
    for r in read(root, "catalog/prices/azure.tsv"):
        if r["region"] not in names:
            fault(r["_at"], "unknown region", r["region"])
    for name, key in (("links", "name"), ("defaults", "name"), ("cpus", "name"),
                      ("sources", "key"), ("azure/images", "name")):
        unique_sorted(read(root, "catalog/%s.tsv" % name), [key])
    rows = read(root, "catalog/azure/disks.tsv")
    unique_sorted(rows, ["name"], natural=True)
    for r in rows:
        number(r, "gib", 1, 70000, need=True)
        number(r, "iops", need=True)
        number(r, "mb_s", need=True)
        usd = number(r, "usd_per_month", 0.1, 5000)
        if bool(usd) != bool(r["price_source"]) or bool(usd) != bool(r["price_region"]):
            fault(r["_at"], "a price needs its region and source, and they a price")
        # list prices of one GiB and month, whatever the tier
        low, high = {"premium-ssd": (0.06, 0.25), "standard-ssd": (0.05, 0.12),
                     "standard-hdd": (0.02, 0.06)}.get(r["kind"], (1, 0))
        if low > high:
            fault(r["_at"], "kind", r["kind"])
        elif usd and not low <= usd / float(r["gib"]) <= high:
            fault(r["_at"], "%.3f USD per GiB; %g to %g is usual" % (usd / float(r["gib"]), low, high))
    words = {"contains": "nvidia-driver amd-driver cuda cudnn rocm nccl rccl ofed mpi monitoring container-runtime "
                         "pytorch tensorflow scikit-learn jupyter vscode azure-cli pyspark cyclecloud",
             "orchestrators": "local vmss cyclecloud-slurm slurm batch aks azure-ml",
             "extend": "cloud-init cluster-init custom-image start-task custom-script container daemonset"}
    for r in read(root, "catalog/azure/images.tsv"):
        for column, known in words.items():
            for word in r[column].split(","):
                if word and word not in known.split():
                    fault(r["_at"], "unknown word in", column + ":", word)
        for column in ("orchestrators", "extend"):
            if not r[column]:
                fault(r["_at"], "has no", column)
        if r["terms"] not in ("yes", "no", ""):
            fault(r["_at"], "terms", r["terms"])
        if r["urn"] and not re.match(r"^[^:]+:[^:]+:[^:]+:[^:]+$", r["urn"]):
            fault(r["_at"], "urn", r["urn"])
        if "ofed" in r["contains"].split(",") and "mpi" not in r["contains"].split(","):
            fault(r["_at"], "InfiniBand drivers without MPI: not an HPC image?")
    for r in read(root, "catalog/links.tsv"):
        number(r, "bandwidth_gb_s", 0.1, 2000, need=True)
        number(r, "latency_us", 0.1, 1000)
        number(r, "half_size_bytes", 100, 1e10)
    for r in read(root, "catalog/defaults.tsv"):
        value = number(r, "value", need=True, zero=True)
        low, high = number(r, "low", zero=True), number(r, "high", zero=True)
        if value is not None and low is not None and value < low:
            fault(r["_at"], r["name"], "below its range")
        if value is not None and high is not None and value > high:
            fault(r["_at"], r["name"], "above its range")
        if not r["unit"] or not r["source"]:
            fault(r["_at"], r["name"], "needs a unit and a source")


def check_places(root, regions):
    unique_sorted(read(root, "catalog/places.tsv"), ["part"])
    rows = read(root, "catalog/region_access.tsv")
    unique_sorted(rows, ["cloud", "region"])
    known = {r["region"] for r in regions}
    for r in rows:
        if r["access"] not in ("well-known", "restricted"):
            fault(r["_at"], "access is", r["access"])
        if r["cloud"] == "azure" and r["region"] not in known:
            fault(r["_at"], r["region"], "is no region of Azure")
    ratios = read(root, "catalog/region_price_ratios.tsv")
    unique_sorted(ratios, ["cloud", "region"])
    for r in ratios:
        low, high = number(r, "low", 0.5, 3, need=True), number(r, "high", 0.5, 3, need=True)
        if low is not None and high is not None and high < low:
            fault(r["_at"], "high is below low")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--data", default=os.path.join(top, "data"))
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    root = args.data
    with open(os.path.join(root, "catalog", "VERSION")) as f:
        version = f.read().split()
    if len(version) != 2 or not re.match(r"^\d{4}-\d\d$", version[0]) \
            or not re.match(r"^\d{4}-\d\d-\d\d$", version[1]):
        fault("VERSION needs two lines: release and date")
    check_models(root, args.verbose)
    check_requests(root)
    check_batches(root)
    check_hf_types(root)
    gpus = check_accelerators(root)
    cpus = read(root, "catalog/cpus.tsv")
    sizes = check_sizes(root, ("azure", "aws", "gcp", "other"), gpus, cpus)
    check_prices(root, sizes, read_sources(root))
    regions = read(root, "catalog/azure/regions.tsv")
    check_rest(root, sizes, gpus, regions)
    check_places(root, regions)
    for text in WARNINGS:
        print("warning:", text)
    for text in FAULTS:
        print("fault:", text)
    print("accelerators: %d, sizes: %s; %d faults, %d warnings"
          % (len(gpus), " ".join("%s %d" % (c, len(r)) for c, r in sizes.items()),
             len(FAULTS), len(WARNINGS)))
    return 1 if FAULTS else 0


def read_sources(root):
    path = os.path.join(root, "catalog", "sources.tsv")
    with open(path) as f:
        lines = f.read().split("\n")[:-1]
    header = lines[0].split("\t")
    return [dict(zip(header, line.split("\t"))) for line in lines[1:]]


if __name__ == "__main__":
    sys.exit(main())
