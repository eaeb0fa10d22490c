#!/usr/bin/env python3
"""What ships holds together: examples and templates plan, their words are explained, data comes as JSON and YAML, and
what the documents show is what the binary prints.

usage: tests/shipped_test.py STOKER SOURCE_DIR [--update]
In README.md and docs/guides/*.md a block ```yaml NAME or ```json NAME is a file that later commands of the page use; below
`$ stoker ...` stands its output, in which a line `...` is any number of lines; a line that begins with `stoker ` is run and
must succeed. Blocks ```sh are not run. --update writes what is printed into the blocks that show a whole output.
"""
import concurrent.futures
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import jsonschema
import yaml

ENV = {"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "STOKER_NOW": "2026-11-21", "LANG": "C.UTF-8", "COLUMNS": "100",
       "TERM": "dumb", "TZ": "UTC"}
ENV |= {key: value for key, value in os.environ.items() if key.endswith("_OPTIONS")}  # of the sanitizers


def run(words, cwd="."):
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=ENV, cwd=cwd, stdin=subprocess.DEVNULL)


# A template that no longer plans, or a plan that breaks its own schema, meets everybody who starts from it.
def plans(stoker, source):
    files = [f for f in sorted(glob.glob(source + "/examples/**/*.yaml", recursive=True) + glob.glob(source + "/data/templates/*.yaml"))
             if not f.endswith(("-nodes.yaml", "/prices.yaml", "/server.yaml"))]  # lists, no workloads
    schema = jsonschema.Draft202012Validator(json.loads(run([stoker, "schema", "plan"]).stdout))
    failures, printed = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, done in zip(files, pool.map(lambda f: run([stoker, "plan", f, "-o", "json", "--no-what-if"]), files)):
            name = os.path.relpath(path, source)
            if done.returncode != 0:
                failures.append(f"{name}: exit {done.returncode}: {done.stderr.strip()[:200]}")
                continue
            plan = json.loads(done.stdout)
            printed.append(plan)
            failures += [f"{name}: {list(e.absolute_path)}: {e.message[:160]}" for e in schema.iter_errors(plan)]
    return failures, printed


# A word in a plan that nobody explains sends its reader to a search engine.
def words_of(plan):
    for advice in plan["advice"]:
        yield advice["id"]
    for refused in plan["rejected"]:
        yield refused["reason"]
    for candidate in plan["candidates"] + plan["pareto"]:
        prediction = candidate["prediction"]
        yield from (candidate["framework"], candidate["orchestrator"], candidate["pricing"], prediction["bottleneck"], prediction["unit"])
        for term in prediction["step_terms"] + prediction["memory_terms"]:
            yield term["term"]
        if "latency" in prediction:
            yield prediction["latency"]["prefill_bound"]
        if candidate.get("layout", {}).get("recompute", "none") != "none":
            yield "recompute"
    for reason in plan["reasons"]:
        yield from re.findall(r"\((too-[a-z-]+)\)", reason)


# Traps that every guide to GPU machines warns of, and what catches each here.
TRAPS = {"retired sizes": "SKU001", "what a region offers": "SKU020", "what the quota holds": "SKU019", "a taint's key": "K8S001 K8S002",
         "managed GPU pools": "SKU027", "placement and zones": "NET001 NET002 NET003 NET006 NET007", "network before GPU": "ib_write_bw",
         "a weekend's cost": "COST001 COST002 COST008", "GPU metrics": "NPL015", "InfiniBand for serving": "SKU005",
         "spot without checkpoint": "K8S021 RUN011", "drivers by hand": "SKU015 SKU026"}


# The words of the glossary's two columns, and names that a plan's sentences drop.
def words_of_the_glossary(source):
    for line in open(os.path.join(source, "data/explain/glossary.txt")):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and not cells[0].startswith(("-", "infrastructure")):
            yield from (word.strip() for cell in cells[:2] for word in cell.split(",") if not word.strip().startswith("stoker "))


def explained(stoker, printed, source):
    words = {word for plan in printed for word in words_of(plan) if word and word != "none"}
    words |= set(words_of_the_glossary(source)) | {"Kueue", "Volcano", "MPI", "global batch", "MIG", "CUDA memory hierarchy", "driver ecosystem", "multi-gpu"}
    words = sorted(words | {word for caught_by in TRAPS.values() for word in caught_by.split()})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        known = list(pool.map(lambda word: run([stoker, "explain", word]).returncode == 0, words))
    return [f"stoker explain does not know '{word}'" for word, is_known in zip(words, known) if not is_known], len(words)


# A script that asks for JSON must get JSON and nothing else, from every command that prints data.
def formats(stoker, source):
    failures = []
    for words in (["plan", "examples/notebook.yaml"], ["estimate", "examples/story/gpu.yaml"], ["compare", "T4", "H100-SXM"],
                  ["compare", "examples/story/cpu.yaml", "examples/story/gpu.yaml"], ["compare", "cloud", "on-prem"],
                  ["compare", "bf16", "fp8", "--workload", "examples/llama-3-70b-serve.yaml"],
                  ["cost", "Standard_NC4as_T4_v3", "--hours", "48"], ["cost", "Standard_NC4as_T4_v3", "--os", "windows"],
                  ["catalog", "gpus"], ["catalog", "gpus", "T4"], ["catalog", "sizes"], ["catalog", "sizes", "Standard_NC4as_T4_v3"],
                  ["catalog", "prices"], ["catalog", "retirements"], ["catalog", "models"], ["catalog", "images"],
                  ["explain"], ["explain", "quota"], ["explain", "SYN004"], ["check", "--list"], ["check", "examples"], ["template", "list"], ["template", "show", "chatbot"]):
        as_json, as_yaml = (run([stoker, *words, "-o", form], source) for form in ("json", "yaml"))
        try:
            value = json.loads(as_json.stdout)
            if yaml.safe_load(as_yaml.stdout) != value:
                failures.append(f"stoker {' '.join(words)}: -o yaml and -o json differ")
        except (ValueError, yaml.YAMLError) as error:
            failures.append(f"stoker {' '.join(words)}: {error}")
        if as_json.stderr:
            failures.append(f"stoker {' '.join(words)} -o json: stderr: {as_json.stderr[:100]}")
    return failures


# A completion that does not parse breaks every new shell of the person who installed it.
def completions(stoker):
    failures = []
    for shell in ("bash", "zsh", "fish"):
        script = run([stoker, "completion", shell]).stdout
        for word in ("Standard_ND96isr_H100_v5", "medical-imaging", "infiniband", "H100-SXM"):
            if word not in script:
                failures.append(f"completion {shell} does not offer {word}")
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, text=True, timeout=60)
            if done.returncode:
                failures.append(f"completion {shell}: {done.stderr[:200]}")
    for command in ("", "plan", "compare", "cost"):
        page = run([stoker, "completion", "man", *command.split()]).stdout
        if not page.startswith(".TH STOKER") or ".SH EXIT STATUS" not in page:
            failures.append(f"completion man {command}: no page")
    return failures


def fits(expected, got):
    """`...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ ]*\n" for line in expected)
    return re.fullmatch(pattern + r"\n*", got.rstrip("\n") + "\n") is not None


# A newcomer types what the page says: it must run, and print what the page shows.
def documents(stoker, source, update):
    failures, count = [], 0
    for page in [source + "/README.md", *sorted(glob.glob(source + "/docs/guides/*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(source + "/examples", folder + "/examples")
            text = pathlib.Path(page).read_text()
            for info, block in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
                if info == "sh":  # needs a server, a terminal or PyTorch: tests/e2e runs the like
                    continue
                kind, _, name = info.partition(" ")
                if kind in ("yaml", "json") and name:
                    (pathlib.Path(folder) / name).write_text(block)
                    continue
                for command, expected in commands_of(block):
                    if command == "stoker plan":
                        continue  # asks its questions on a terminal
                    count += 1
                    done = subprocess.run(["bash", "-c", re.sub(r"\bstoker\b", shlex.quote(stoker), command, count=1)], cwd=folder,
                                          capture_output=True, text=True, timeout=300, env=ENV, stdin=subprocess.DEVNULL)
                    where = f"{os.path.relpath(page, source)}: {command}"
                    if done.returncode not in (0, 1) or (expected is None and done.returncode):
                        failures.append(f"{where}: exit {done.returncode}: {done.stderr.strip()[:200]}")
                    elif expected and not fits(expected, done.stdout):
                        if update and "..." not in (line.strip() for line in expected):
                            shown = [f"$ {command}"]
                            now = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")]
                            text = text.replace("\n".join(shown + expected) + "\n", "\n".join(shown + now) + "\n")
                        else:
                            failures.append(f"{where}: prints something else:\n{done.stdout[:3000]}")
            if update:
                pathlib.Path(page).write_text(text)
    return failures, count


def commands_of(block):
    lines = block.rstrip("\n").split("\n")
    for at, line in enumerate(lines):
        if line.startswith("$ stoker "):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("$ ")), len(lines))
            yield line[2:], lines[at + 1:end]
        elif line.startswith("stoker "):
            yield line.split(" #")[0].strip(), None


# Whoever searches for a rule finds its page in the repository: it must be the one that the binary prints.
def rule_pages(stoker, source):
    with tempfile.TemporaryDirectory() as folder:
        run([stoker, "schema", "rules-reference", folder])
        fresh, kept = pathlib.Path(folder), pathlib.Path(source) / "docs/reference"
        names = {str(path.relative_to(fresh)) for path in fresh.rglob("*.md")}
        names |= {str(path.relative_to(kept)) for path in kept.glob("rules/*.md")}
        stale = [name for name in sorted(names) if not (fresh / name).exists() or not (kept / name).exists()
                 or (fresh / name).read_text() != (kept / name).read_text()]
    return [f"docs/reference/{name} is not what the rules say: stoker schema rules-reference docs/reference" for name in stale]


def main():
    stoker, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    failures, printed = plans(stoker, source)
    unknown, words = explained(stoker, printed, source)
    failures += unknown + formats(stoker, source) + completions(stoker) + rule_pages(stoker, source)
    wrong, commands = documents(stoker, source, "--update" in sys.argv)
    failures += wrong
    print("\n".join(failures[:40]))
    print(f"{len(printed)} plans, {words} words, {commands} commands of documents, {len(failures)} failures")
    sys.exit(1 if failures or len(printed) < 30 or words < 60 or commands < 10 else 0)


if __name__ == "__main__":
    main()
