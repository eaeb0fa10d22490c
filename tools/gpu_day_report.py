"""What came back from a day with a GPU, as docs/measurements/gpu.md: for gpu_day.py report. A figure that has a bar stands beside it, met or not.
What people wrote below "<!-- by hand -->" in a section of the page stays there when it is made again. A step that an earlier folder told already
is of a later visit: it has a section of its own, beside predictions of its own (bench/gpu/predicted/GPU-second-*.csv)."""
import csv
import json
import os
import re

BARS = (("scrape_ms_p50", "scrape, half of them within", "ms", 1, 1.0), ("scrape_ms_p99", "scrape, 99 of 100 within", "ms", 1, 5.0),
        ("cpu_share_at_1_hz", "processor at one reading a second", "% of a core", 100, 0.2), ("pss_kib", "memory (PSS)", "MiB", 1 / 1024, 16.0))
# What is measured, how it is called, its unit and scale, and which figure of the catalogue it is a part of.
RATES = (("h2d_bytes_per_s", "copy to the board, pinned", "GB/s", 1e9, "host_gb_s", 1), ("d2h_bytes_per_s", "copy from the board, pinned", "GB/s", 1e9, "host_gb_s", 1),
         ("d2d_bytes_per_s", "copy within its memory by the driver, read and written", "TB/s", 1e12, "memory_bandwidth_gb_s", 1e-3),
         ("copy_kernel_bytes_per_s", "the same by a kernel of ours", "TB/s", 1e12, "memory_bandwidth_gb_s", 1e-3),
         ("fma32_flops", "fp32 multiply-adds, a kernel of ours", "TFLOP/s", 1e12, "fp32_tflops", 1),
         ("mma_sync_bf16_flops", "bf16 products by `mma.sync`, a kernel of ours", "TFLOP/s", 1e12, "bf16_tflops", 1),
         ("matmul_4096_bf16_flops", "PyTorch 4096^3 bf16", "TFLOP/s", 1e12, "bf16_tflops", 1), ("matmul_8192_bf16_flops", "PyTorch 8192^3 bf16", "TFLOP/s", 1e12, "bf16_tflops", 1),
         ("matmul_4096_fp16_flops", "PyTorch 4096^3 fp16", "TFLOP/s", 1e12, "fp16_tflops", 1), ("matmul_8192_fp16_flops", "PyTorch 8192^3 fp16", "TFLOP/s", 1e12, "fp16_tflops", 1),
         ("matmul_4096_fp32_flops", "PyTorch 4096^3 fp32", "TFLOP/s", 1e12, "fp32_tflops", 1), ("matmul_8192_fp32_flops", "PyTorch 8192^3 fp32", "TFLOP/s", 1e12, "fp32_tflops", 1))


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def short(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def of_catalogue(root, gpu):
    """The catalogue's row of the board that calls itself so."""
    fold = lambda name: re.sub(r"[-_./ ]", "", name.lower()).removeprefix("nvidia")
    with open(os.path.join(root, "data", "catalog", "accelerators.tsv")) as file:
        for row in csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"):
            if fold(gpu) in [fold(name) for name in [row["name"]] + row["aliases"].split(",")]:
                return row
    return {}


def predictions(root, gpu, visit):
    found = {}
    for kind in ("training", "memory", "inference"):
        path = os.path.join(root, "bench", "gpu", "predicted", f"{gpu}-{visit + '-' if visit else ''}{kind}.csv")
        if os.path.exists(path):
            for row in csv.DictReader(open(path)):
                if row["predicted"]:
                    found[row["id"][2:], row["metric"]] = tuple(float(row[key]) for key in ("predicted", "low", "high"))
    return found


def beside(told, measured):
    """Predicted, the interval, measured over predicted, and whether it is inside."""
    if not told or not measured:
        return ["", "", "", ""]
    return [short(told[0]), f"{short(told[1])} - {short(told[2])}", f"{measured / told[0]:.2f}", "inside" if told[1] <= measured <= told[2] else "**outside**"]


def abi(found, _):
    text = found.get("text", "")
    head = text.split("\ncall ")[0].strip().splitlines()
    calls = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.startswith("nvmlDevice")]
    slow = sorted((row for row in calls if len(row) == 6 and float(row[5]) >= 1000), key=lambda row: -float(row[5]))
    lines = ["; ".join(line.strip() for line in head) + (f". {found['symbols']} symbols." if "symbols" in found else "."), ""]
    if slow:
        lines += ["Calls that took a millisecond or more at least once:", ""] + table(["call", "times", "returns", "p50 us", "p99 us", "most us"], slow[:8])
    return lines


def three_readers(found, _):
    rows = [[r[1], r[2], "" if r[3] is None else round(r[3], 1) if isinstance(r[3], float) else r[3], "" if r[4] else "**differs**"] for r in found["rows"]]
    lines = [f"{found['equal']} of {found['of']} figures agree with nvidia-smi of the same second.", ""] + table(["figure", "nvidia-smi", "stoker", ""], rows)
    if isinstance(found.get("pynvml"), dict):
        lines += ["The third, nvidia-ml-py: " + ", ".join(f"{key} {value}" for key, value in found["pynvml"].items() if key != "uuid") + ".", ""]
    return lines


def scrapes(found, _):
    rows = [[name, f"{short(found[key] * scale)} {unit}", f"{short(bar)} {unit}", "met" if found[key] * scale <= bar else "**not met**"] for key, name, unit, scale, bar in BARS if key in found]
    lines = table([f"{found.get('gpus', 1)} board{'s' if found.get('gpus', 1) != 1 else ''}, 1,000 scrapes", "measured", "bar", ""], rows)
    if "memory_kib_of_each" in found:
        mib = lambda one, key: f"{one.get(key, 0) / 1024:.1f}"
        share = lambda name, key: f"{100 * max(found.get('cpu_share_of_each', {}).get(name, {}).get(key, 0), 0):.2f} %"
        lines += table(["process", "MiB (PSS)", "of it the driver's library", "heap", "other anonymous memory", "Stoker", "of a core, user", "kernel"],
                       [[name, mib(one, "pss"), mib(one, "nvidia_pss"), mib(one, "heap_pss"), mib(one, "anonymous_pss"), mib(one, "stoker_pss"), share(name, "user"), share(name, "kernel")]
                        for name, one in found["memory_kib_of_each"].items()])
    if found.get("config_read_us"):
        lines += ["A read of the board's PCI configuration space, by bytes: " + "; ".join(f"{what.split(': ')[-1]} {short(us)} us" for what, us in found["config_read_us"].items()) + ".", ""]
    return lines + [found.get("page_check", ""), ""]


def record(found, context):
    """What each question costs on the board, and how often it is asked because of that; nothing where a recording does not say."""
    rows = [[one["question"], short(one["us"]), one["wanted_every"], one["every"], short(one["us_per_s"])]
            for board in context["recording"].get("boards", []) for one in sorted(board.get("paced", []), key=lambda each: -each["us"]) if one["us"] >= 100]
    whole = sum(one["us_per_s"] for board in context["recording"].get("boards", []) for one in board.get("paced", []))
    return table(["question", "us", "wanted every, readings", "asked every, readings", "us a second at 1 Hz"], rows) + [f"All questions together: {whole / 1000:.2f} ms a second.", ""] if rows else []


def overhead(found, _):
    rows = []
    for hertz, key in (("1", "slower_at_1_hz"), ("10", "slower_at_10_hz")):
        one = found[key]
        rows.append([f"{hertz} a second", f"{100 * one['mean']:+.2f} %", f"{100 * one['low']:+.2f} to {100 * one['high']:+.2f} %", "nothing found" if one["low"] <= 0 else "**slower**"])
    return table(["readings", "products are slower by", "95 % interval, four pairs", ""], rows)


def planned(found, _):
    """Trainings as runs of their own plans, by what was said at their ends."""
    rows = []
    for name, one in found["runs"].items():
        if not isinstance(one, dict):
            continue
        step = re.search(r"step (\S+ \S+) \((\S+ \S+) predicted, ([^)]*)\)", one["told"])
        memory = re.search(r"GPU memory (\S+ GiB) of \S+ GiB \((\S+ GiB) predicted, ([^)]*)\)", one["told"])
        interval = re.search(r"^plan .*: step \S+ \S+ \(([^)]*)\)", one["told"], re.M)
        rows.append([name + (", calibrated" if "calibrated on" in one["told"] else "")] + (list(step.groups()[:2]) + [interval[1] if interval else "", step[3]] if step else [""] * 4) +
                    (list(memory.groups()) if memory else [""] * 3) + [", ".join(one["causes"]) or "nothing"])
    lines = table(["model", "a step", "planned", "80 % interval", "", "memory", "planned", "", "what `stoker explain` found"], rows)
    if isinstance(found["runs"].get("calibrate"), str):
        lines += ["What the runs before the last taught:", "", "```", found["runs"]["calibrate"].strip(), "```", ""]
    return lines


def rates(found, context):
    rows = []
    for key, name, unit, scale, column, factor in RATES:
        if not isinstance(found.get(key), dict):
            continue
        one, whole = found[key], context["catalogue"].get(column)
        whole = float(whole) * factor if whole else None
        share = f"{one['median'] / scale / whole:.2f} of {short(whole)}" if whole else ""
        rows.append([name, f"{short(one['median'] / scale)} {unit}", f"{short(one['low'] / scale)} - {short(one['high'] / scale)}", share])
    return table(["what", "median of 7", "range", "of the catalogue's"], rows)


def phases(found, _):
    percent = lambda one, key: f"{100 * one[key]:.1f} %" if key in one else ""
    rows = [[name.replace("_", " ")] + [percent(one, key) for key in ("utilization", "sm_active", "tensor_active", "dram_active")] +
            [short(one.get("power_instant")), short(one.get("clock_sm", 0) / 1e6, 4), short(one.get("pcie_received_rate", 0) / 1e9)]
            for name, one in found["phases"].items() if isinstance(one, dict)]
    return table(["phase", "utilisation", "multiprocessors", "tensor cores", "memory", "W", "MHz", "PCIe in, GB/s"], rows) + [
        "Told apart: " + "; ".join(f"{name}{'' if held else ' **(not held)**'}" for name, held in found["verdicts"].items()) + ".", ""]


def energy_and_owners(found, _):
    lines = []
    if "integral_j" in found:
        lines += [f"Power summed over time says {short(found['integral_j'])} J, the board's own counter {short(found['counter_j'])} J: {100 * found['difference']:.1f} % apart.", ""]
    if "started" in found:
        lines += [f"Owners: {len(found['started'])} processes of runs and {len(found.get('owners', {})) - len(found['started'])} of nobody's; wrong: {len(found.get('wrong', {}))}.", ""]
    return lines


def burn_in(found, _):
    rows = [[each["name"], f"{short(each.get('measured'), 4)} {each.get('unit', '')}", short(each.get("expected"), 4), each["verdict"], each.get("detail", "")] for each in found["checks"]]
    return table(["check", "measured", "line", "verdict", "what"], rows)


def models(found, context):
    lines, told = [f"{found.get('gpu')}, PyTorch {found.get('torch')}, transformers {found.get('transformers')}. Predicted: `bench/gpu/predicted`, committed before anything was measured.", ""], context["predicted"]
    rows, memory, failed = [], [], []
    for name, one in found.get("trainings", {}).items():
        if "step_s" not in one:
            failed.append(f"{name}: {one.get('failed') or one.get('skipped', '?')}")
            continue
        rows.append([name, f"{one['step_s'] * 1e3:.1f}"] + beside(tuple(1e3 * v for v in told[name, "step_s"]) if (name, "step_s") in told else None, one["step_s"] * 1e3))
        if "peak_allocated_bytes" in one:
            memory.append([name, f"{one['peak_allocated_bytes'] / 1e9:.1f}"] + beside(told.get((name, "peak_mem_gb")), one["peak_allocated_bytes"] / 1e9) + [f"{one['peak_reserved_bytes'] / 1e9:.1f}"])
    lines += table(["training", "ms a step", "predicted", "80 % interval", "measured / predicted", ""], rows)
    lines += table(["training", "peak allocated, GB", "predicted", "80 % interval", "measured / predicted", "", "held by the allocator, GB"], memory)
    rows = []
    for name, one in found.get("generations", {}).items():
        if (name, "tpot_ms") in told:
            rows.append([name, f"{one['tpot_s'] * 1e3:.1f} ms a token"] + beside(told[name, "tpot_ms"], one["tpot_s"] * 1e3))
        elif (name, "samples_per_s") in told:
            rows.append([name, f"{one['out_tokens_per_s']:.0f} tokens/s"] + beside(tuple(64 * v for v in told[name, "samples_per_s"]), one["out_tokens_per_s"]))
    lines += table(["generation", "measured", "predicted", "80 % interval", "measured / predicted", ""], rows)
    return lines + ([f"Not measured: {'; '.join(failed)}.", ""] if failed else [])


def runs(found, _):
    rows = []
    for name, one in found["runs"].items():
        last = one.get("log", "").strip().splitlines()
        rows.append([name, last[-1].split(": ", 1)[-1] if last else "", ", ".join(one["causes"]) or "nothing"])
    return table(["run", "what it said of itself", "what `stoker explain` found"], rows)


SECTIONS = {"abi": ("The driver's library", abi), "three_readers": ("Three readers of one board", three_readers), "scrapes": ("What reading costs", scrapes), "rates": ("Rates", rates),
            "phases": ("Kinds of work, told apart", phases), "energy_and_owners": ("Energy and owners", energy_and_owners), "burn_in": ("A burn-in", burn_in),
            "models": ("Trainings and generations, and what was predicted", models), "runs": ("Runs", runs), "planned": ("Runs of plans", planned), "record": ("What each question costs", record),
            "overhead": ("What reading costs the work", overhead)}
SILENT = ("raw",)  # its texts are fixtures
VISITS = ("", "second", "third", "fourth", "fifth", "sixth")  # one more fails, and asks for a page of its own


BY_HAND = "<!-- by hand -->"


def kept_words(page):
    """By the title of the section; "" for what stands above the first."""
    if not os.path.exists(page):
        return {}
    kept = {}
    for section in re.split(r"^## ", "## \n" + open(page).read(), flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        if BY_HAND in text:
            kept[title.strip()] = text.split(BY_HAND, 1)[1].strip()
    return kept


def page_of(parts, root, rehearsal, kept=None):
    """Lines. `parts`: (folder, part-N.json) in order. Steps that are not known here are told as they are."""
    kept = kept or {}
    words = lambda title: [BY_HAND, "", kept[title], ""] if title in kept else []
    gpu = next((part["steps"]["models"]["found"].get("gpu") for _, part in parts if "found" in part["steps"].get("models", {})), "")
    catalogue = of_catalogue(root, gpu) if gpu else {}
    name = catalogue.get("name", "").lower()
    recordings = {folder: json.load(open(os.path.join(folder, "recording.json"))) for folder, _ in parts if os.path.exists(os.path.join(folder, "recording.json"))}
    boards = {board["uuid"] for recording in recordings.values() for board in recording["boards"]}
    lines = ["# GPUs, measured on a real board", ""]
    if rehearsal:
        lines += ["**A rehearsal on the double: no figure here is of a GPU.**", ""]
    lines += [f"By `tools/gpu_day.py` ([how](../contributing.md#a-day-with-a-real-gpu)){f', {len(boards) or 1} ' + gpu if gpu else ''}:", ""]
    lines += [f"- {', '.join(part['steps'])}: {part['machine']['when']}, {part['machine']['stoker'].replace('stoker ', 'Stoker ')}" for _, part in parts] + [""] + words("")
    told = {}  # step: times
    for folder, part in parts:
        for step_name, step in part["steps"].items():
            visit = VISITS[told.get(step_name, 0)]
            title, write = SECTIONS.get(step_name, (step_name.replace("_", " ").capitalize(), None))
            title += f", {visit} visit" if visit else ""
            context = {"catalogue": catalogue, "predicted": predictions(root, name.removesuffix("-sxm"), visit) or predictions(root, name, visit), "recording": recordings.get(folder, {})}
            if "found" not in step:
                lines += [f"## {title}", "", f"Failed: {step['failed']}" if step.get("failed") else f"Not done: {step['skipped']} is not there.", ""]
            elif step_name not in SILENT:
                found = step["found"]
                text = write(found, context) if write else ["```", json.dumps(found, indent=1), "```", ""]
                if not text:
                    continue  # a recording of before costs were kept
                lines += [f"## {title}", ""] + text + words(title)
            told[step_name] = told.get(step_name, 0) + 1
    return lines
