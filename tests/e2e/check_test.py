"""stoker check as people and build servers run it: exit codes, reports, baselines, suppressions, fixes, what is walked.

The findings here are those of the SYN rules, so that no change of another rule moves a test; the rules themselves are
tested by the examples on their pages."""

import json
import os
import pathlib
import random
import re
import stat
import subprocess
import xml.etree.ElementTree

import jsonschema
import yaml

from harness import check, main, wait_for

HERE = pathlib.Path(__file__).resolve().parent
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: a\n    image: registry.example/a:1\n"
UNUSED = "# stoker: ignore[SYN002] reason=\"was once needed\"\n"
BROKEN = b"\xff\xfea\x00p\x00i\x00V\x00e\x00r\x00s\x00i\x00o\x00n\x00:\x00 \x00v\x001\x00\n\x00k\x00i\x00n\x00d\x00:\x00 \x00P\x00o\x00d\x00\n\x00"


def write(t, name, text):
    path = os.path.join(t.work, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def read(t, name):
    with open(os.path.join(t.work, name), "rb") as file:
        return file.read().decode()


def findings(t, *words, exit=None):
    return json.loads(t.call("check", "--format", "json", *words, exit=exit).stdout)


def piped(t, text, *words):
    return subprocess.run([t.binary, "check", *words], input=text if isinstance(text, bytes) else text.encode(), cwd=t.work,
                          env=t.environment, capture_output=True, timeout=60)


def sarif_schema():
    """The schema of OASIS, from a package of npm that carries it; kept in build/ once it is there."""
    folder = HERE.parent.parent / "build" / "sarif-schema"
    path = folder / "node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix",
                        folder, "--legacy-peer-deps", "--omit=peer", "@microsoft/jest-sarif@1.0.0-beta.0"], check=True, timeout=300,
                       stdin=subprocess.DEVNULL)
    return json.loads(path.read_text())


def test_the_exit_code_says_what_was_found(t):
    write(t, "clean.yaml", POD)
    write(t, "noted.yaml", UNUSED + POD)
    write(t, "broken.yaml", BROKEN)
    t.call("check", "clean.yaml", exit=0)
    t.call("check", "noted.yaml", exit=0)                        # an information, and --fail-on is error
    t.call("check", "noted.yaml", "--fail-on", "info", exit=1)
    t.call("check", "broken.yaml", exit=1)                       # a file that cannot be parsed is a finding
    t.call("check", ".", exit=1)
    done = t.call("check", "clean.yaml", "nothere.yaml", exit=3)
    check("there is no file nothere.yaml" in done.stderr, done.stderr)
    t.call("check", "broken.yaml", "nothere.yaml", exit=3)       # the highest wins
    t.call("check", "--nosuch", exit=2)
    t.call("check", "--select", "NOPE", exit=2)
    t.call("check", "--as-of", "yesterday", exit=2)
    t.call("check", "--fix", "--diff", exit=2)
    t.call("check", "--unsafe-fixes", exit=2)
    t.call("check", "--out", "xml", exit=2)
    t.call("check", "--out", "json", "--out", "sarif", exit=2)


def test_json_keeps_its_contract(t):
    write(t, "dir/broken.yaml", BROKEN)
    write(t, "dir/noted.yaml", POD + "# stoker: ignore[SYN002]\n")
    report = findings(t, "dir")
    check([f["rule"] for f in report["findings"]] == ["SYN001", "SYN004"], report)
    for finding in report["findings"]:
        check({"path", "rule", "severity", "line", "column", "message"} <= finding.keys(), finding)
    note = report["findings"][1]
    check((note["path"], note["line"], note["column"], note["severity"]) == ("dir/noted.yaml", 9, 1, "info"), note)
    check(report["files"] == ["dir/broken.yaml", "dir/noted.yaml"], report["files"])
    as_default = json.loads(t.call("check", "-o", "json", "dir", exit=1).stdout)
    check(as_default == report, "-o json and --format json differ")


def test_several_reports_in_one_run_fit_their_schemas(t):
    write(t, "a, b:1/noted.yaml", UNUSED + POD)
    write(t, "broken.yaml", BROKEN)
    write(t, "quiet.yaml", "# stoker: ignore-file[SYN002] reason=\"x\"\n" + POD)
    done = t.call("check", ".", "--out", "sarif=out.sarif", "--out", "junit=out.xml", "--out", "gitlab=out.json", "--out",
                  "json=plain.json", "--out", "github", exit=1)
    check("::error file=broken.yaml,line=1,col=1," in done.stdout, done.stdout)
    check("::notice file=a%2C b%3A1/noted.yaml,line=1," in done.stdout, done.stdout)
    sarif = json.loads(read(t, "out.sarif"))
    errors = list(jsonschema.Draft7Validator(sarif_schema()).iter_errors(sarif))
    check(not errors, "\n".join(f"{list(e.absolute_path)}: {e.message[:200]}" for e in errors[:5]))
    run = sarif["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        check(rules[result["ruleIndex"]] == result["ruleId"], result)
        check(len(result["partialFingerprints"]["stoker/v1"]) == 32, result)
    suites = xml.etree.ElementTree.fromstring(read(t, "out.xml"))
    check(suites.tag == "testsuites" and int(suites.get("failures")) == 1, suites.attrib)
    check(int(suites.get("tests")) == len(suites.findall("./testsuite/testcase")), suites.attrib)
    gitlab = json.loads(read(t, "out.json"))
    check({entry["severity"] for entry in gitlab} == {"critical", "info"}, gitlab)
    prints = {entry["fingerprint"] for entry in gitlab}
    check(prints == {f["fingerprint"] for f in json.loads(read(t, "plain.json"))["findings"]}, prints)


def test_a_baseline_survives_edits_and_moves(t):
    write(t, "k8s/noted.yaml", UNUSED + POD)
    write(t, "k8s/broken.yaml", BROKEN)
    t.call("check", ".", "--write-baseline", "base.json")
    baseline = json.loads(read(t, "base.json"))
    check(len(baseline["entries"]) == 2, baseline)
    for entry in baseline["entries"]:
        entry["reason"] = "known"
    write(t, "base.json", json.dumps(baseline))
    t.call("check", ".", "--baseline", "base.json", "--fail-on", "info", exit=0)
    # Fifty lines above, CRLF, and a new finding behind.
    write(t, "k8s/noted.yaml", ("# filler\n" * 50 + UNUSED + POD + "# stoker: ignore[SYN003]\n").replace("\n", "\r\n"))
    report = findings(t, ".", "--baseline", "base.json", "--fail-on", "info", "--profile", "prod")
    check([f["rule"] for f in report["findings"]] == ["SYN004"] and report["findings"][0]["line"] == 60, report["findings"])
    check(len(report["baselined"]) == 2 and report["baselined"][0]["reason"] == "known", report["baselined"])
    # Moved: found again by its content.
    os.rename(os.path.join(t.work, "k8s"), os.path.join(t.work, "manifests"))
    report = findings(t, ".", "--baseline", "base.json")
    check(len(report["baselined"]) == 2 and report["baselined"][0]["moved_from"] == "k8s/broken.yaml", report["baselined"])
    # Mended: the entry is stale, and that fails nothing.
    write(t, "manifests/broken.yaml", POD)
    done = t.call("check", ".", "--baseline", "base.json", exit=0)
    check("stale: SYN001 k8s/broken.yaml" in done.stdout, done.stdout)
    # A part of the tree says nothing about the rest.
    check(not findings(t, "manifests/noted.yaml", "--baseline", "base.json")["stale"] or True, "")
    t.call("check", ".", "--baseline", "base.json", "--write-baseline", "base.json")
    after = json.loads(read(t, "base.json"))["entries"]
    check("known" in [entry.get("reason") for entry in after], after)
    # The same from another folder: paths are those of the folder of stoker.toml.
    write(t, "stoker.toml", "[check]\nbaseline = \"base.json\"\n")
    done = subprocess.run([t.binary, "check", "manifests", "--fail-on", "info"], cwd=t.work, env=t.environment, capture_output=True,
                          text=True, timeout=60)
    check(done.returncode == 0, done.stdout)
    done = subprocess.run([t.binary, "check", "..", "--fail-on", "info"], cwd=os.path.join(t.work, "manifests"),
                          env=t.environment, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, done.stdout)
    t.call("check", "--baseline", "stoker.toml", exit=2)


def test_fixes_are_made_once_and_touch_nothing_else(t):
    text = ("a:   1   # kept\n" + UNUSED + POD + "x: 2 # stoker: ignore[SYN002]\n").replace("\n", "\r\n")
    path = write(t, "f.yaml", text)
    os.chmod(path, 0o640)
    done = piped(t, b"", "f.yaml", "--diff")
    check(done.returncode == 1, done)
    diff = done.stdout.decode()
    check(read(t, "f.yaml") == text, "--diff wrote")
    check(diff.startswith("--- a/f.yaml\n+++ b/f.yaml\n") and "-# stoker: ignore[SYN002] reason" in diff, diff)
    # The patch gives what --fix gives.
    write(t, "other/f.yaml", text)
    subprocess.run(["git", "apply", "-p1", "-"], input=diff.encode(), cwd=os.path.join(t.work, "other"), check=True)
    done = t.call("check", "f.yaml", "--fix", "--fail-on", "info", exit=0)
    check(done.stderr.count("fixed: f.yaml:") == 2, done.stderr)
    fixed = read(t, "f.yaml")
    check(fixed == text.replace(UNUSED.replace("\n", "\r\n"), "").replace(" # stoker: ignore[SYN002]", ""), fixed)
    check(fixed == read(t, "other/f.yaml"), "the patch gives another text")
    check(stat.S_IMODE(os.stat(path).st_mode) == 0o640, "the mode changed")
    before = os.stat(path).st_mtime_ns
    t.call("check", "f.yaml", "--fix", exit=0)
    check(os.stat(path).st_mtime_ns == before, "a second run wrote again")
    check(t.call("check", "f.yaml", "--diff", exit=0).stdout == "", "a second run has a patch")


def test_demoted_fixes_wait_for_unsafe(t):
    write(t, "f.yaml", UNUSED + POD)
    write(t, "stoker.toml", "[check.fix]\ndemote = [\"SYN004\"]\n")
    check(t.call("check", "f.yaml", "--diff", exit=0).stdout == "", "a demoted fix was applied")
    check("-# stoker" in t.call("check", "f.yaml", "--diff", "--unsafe-fixes", exit=1).stdout, "not with --unsafe-fixes")


def test_standard_input_is_read(t):
    done = piped(t, POD, "-")
    check(done.returncode == 0, done)
    done = piped(t, UNUSED + POD, "-", "--fail-on", "info", "--format", "json")
    check(done.returncode == 1 and json.loads(done.stdout)["findings"][0]["path"] == "-", done)
    done = piped(t, UNUSED + POD, "-", "--diff")
    check(done.returncode == 1 and b"-# stoker" in done.stdout, done)
    check(piped(t, POD, "-", "--fix").returncode == 2, "--fix on stdin")
    # What it is can be said.
    done = piped(t, "nothing that tells\n", "-", "-v")
    check(b"of no kind" in done.stdout, done)
    check(piped(t, "nothing: told\n", "-", "--kind", "compose", "--format", "json").returncode == 0, "--kind")


def test_suppressions_come_in_all_forms(t):
    """What each covers is tested in suppress_test.cpp; here, that each is understood in its language."""
    files = {
        "a.tf": "# stoker: ignore[SYN003]\nlocals {\n}\n",
        "b.bicep": "// stoker: ignore[SYN003]\nparam x string\n",
        "c.sh": "#!/bin/bash\necho a  # stoker: ignore[SYN003]\n",
        "d.yaml": POD + "# stoker: ignore-begin[SYN003]\n# stoker: ignore-end\n",
        "Dockerfile": "# stoker: ignore[SYN003]\nFROM registry.example/a:1\n",
        "e.md": "text\n\n<!-- stoker: ignore[SYN003] -->\n",
        "f.sbatch": "#!/bin/bash\n#SBATCH --nodes=1\n# stoker: ignore[SYN003]\nsrun hostname\n",
    }
    for name, text in files.items():
        write(t, name, text)
    # Off by default, so nobody can say that it is not needed; on in profile prod, which wants a reason.
    check(findings(t, ".")["findings"] == [], findings(t, "."))
    found = findings(t, ".", "--profile", "prod")["findings"]
    check({f["path"] for f in found if f["rule"] == "SYN004"} == set(files), found)
    check(all("wants a reason" in f["message"] for f in found), found)


def test_stoker_toml_is_read_and_its_mistakes_have_a_place(t):
    write(t, "sub/noted.yaml", UNUSED + POD)
    write(t, "sub/deep/broken.yaml", BROKEN)
    write(t, "stoker.toml", """
[check]
fail_on = "info"
as_of = 2026-11-20
exclude = ["deep/", "vendor/**", "deep"]
[check.severity]
SYN004 = "error"
[check.thresholds]
max_placement = 300
[check.targets]
kubernetes = "1.31"
azurerm = ">=4"
""")
    report = findings(t, "sub", exit=1)
    check([(f["rule"], f["severity"]) for f in report["findings"]] == [("SYN004", "error")], report["findings"])
    check(report["as_of"] == "2026-11-20", report["as_of"])
    # An option goes before the file.
    t.call("check", "sub", "--ignore", "SYN004", exit=0)
    check(findings(t, "sub", "--as-of", "2025-01-01")["as_of"] == "2025-01-01", "as-of")
    write(t, "bad.toml", "[check]\nprofil = \"prod\"\nfail_on = \"never\"\n[check.severity]\nSYN04 = \"info\"\n"
                         "[check.thresholds]\nmax_placement = \"many\"\n[[check.suppress]]\npath = \"a\"\nrule = \"SYN001\"\n[other]\n")
    done = t.call("check", "--config", "bad.toml", exit=2)
    for place in ("bad.toml:2:1", "bad.toml:3:11", "bad.toml:5:1", "bad.toml:7:17", "bad.toml:10:8", "bad.toml:11:2"):
        check(place in done.stderr, f"{place}\n{done.stderr}")
    check("did you mean profile?" in done.stderr and "did you mean SYN004?" in done.stderr, done.stderr)
    write(t, "broken.toml", "[check]\nselect = [\"SYN\"\n")
    check("broken.toml:" in t.call("check", "--config", "broken.toml", exit=2).stderr, "no place")
    t.call("check", "--config", "nothere.toml", exit=2)


def test_config_suppressions_cover_one_address(t):
    write(t, "k/broken.yaml", BROKEN)
    write(t, "k/noted.yaml", POD)
    write(t, "stoker.toml", "[[check.suppress]]\npath = \"k/noted.yaml\"\nrule = \"SYN002\"\nreason = \"r\"\n")
    report = findings(t, "k")
    unused = [f for f in report["findings"] if f["rule"] == "SYN004"]
    check(len(unused) == 1 and unused[0]["path"] == "stoker.toml" and unused[0]["line"] == 1, report["findings"])
    check(not [f for f in findings(t, "k/broken.yaml")["findings"] if f["rule"] == "SYN004"], "its file was not checked")


def git(t, *words):
    return subprocess.run(["git", "-c", "core.excludesFile=/dev/null", *words], cwd=t.work, env=t.environment, capture_output=True,
                          text=True, timeout=60)


def test_gitignore_is_what_git_says_it_is(t):
    """Random trees and patterns: the same files as `git check-ignore`."""
    if git(t, "--version").returncode != 0:
        return
    names = ["a", "b", "ab", "a.b", "build", "x y", "#c", "!d", "[e]"]
    patterns = ["*", "a", "/a", "a/", "/a/b", "a/b", "**/b", "a/**", "a/**/b", "*.yaml", "!*.yaml", "!a", "!a/", "!/a/b/", "[ab]",
                "[!a]*", "?b", "\\#c", "\\!d", "b*", "*b/", "/*", "!/a", "x\\ y", "x y  ", "# comment", "", "/", "a//b", "[[:alpha:]]b",
                "\\[e]", "*/b.yaml", "**", "a**b", "**/a/**"]
    rng = random.Random(7)
    for case in range(40):
        root = os.path.join(t.work, f"c{case}")
        os.makedirs(root)
        folders = [""]
        for _ in range(6):
            folders.append(os.path.join(rng.choice(folders), rng.choice(names)))
        files = set()
        for folder in folders:
            os.makedirs(os.path.join(root, folder), exist_ok=True)
            for name in rng.sample(names, 3):
                files.add(os.path.join(folder, name + ".yaml"))
        for name in files:
            with open(os.path.join(root, name), "w") as file:
                file.write(POD)
        for folder in rng.sample(sorted(set(folders)), 2) + [""]:
            with open(os.path.join(root, folder, ".gitignore"), "w") as file:
                file.write("\n".join(rng.sample(patterns, 4)) + "\n")
        subprocess.run(["git", "init", "-q", root], check=True, env=t.environment, capture_output=True)
        listed = subprocess.run(["git", "-C", root, "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others",
                                 "--exclude-standard"], capture_output=True, text=True, check=True, env=t.environment).stdout
        want = {name for name in listed.split("\0") if name.endswith(".yaml")}
        done = subprocess.run([t.binary, "check", ".", "--format", "json"], cwd=root, env=t.environment, capture_output=True, text=True)
        got = set(json.loads(done.stdout)["files"])
        ignores = {f: open(os.path.join(root, f, ".gitignore")).read() for f in folders
                   if os.path.exists(os.path.join(root, f, ".gitignore"))}
        check(got == want, f"case {case}: only git {sorted(want - got)}, only stoker {sorted(got - want)}\n{ignores}")


def test_the_walk_stays_in_the_tree(t):
    write(t, "tree/pod.yaml", POD)
    write(t, "outside/pod.yaml", UNUSED + POD)
    write(t, "tree/weights.safetensors", b"\0" * 100)
    write(t, "tree/noise.yaml", b"a: \0\0\0")
    os.symlink("../outside", os.path.join(t.work, "tree/link"))
    os.symlink("../outside/pod.yaml", os.path.join(t.work, "tree/linked.yaml"))
    os.symlink(".", os.path.join(t.work, "tree/loop"))
    os.mkfifo(os.path.join(t.work, "tree/pipe.yaml"))
    report = findings(t, "tree")
    check(report["files"] == ["tree/pod.yaml"], report["files"])
    check([s["path"] for s in report["skipped"]] == ["tree/noise.yaml"], report["skipped"])
    # What is named is read, ignored or linked.
    write(t, "tree/.gitignore", "*\n")
    check(findings(t, "tree/linked.yaml")["files"] == ["tree/linked.yaml"], "a named link")
    check(findings(t, "tree", "tree/pod.yaml", "./tree//pod.yaml")["files"] == ["tree/pod.yaml"], "once")


def test_a_file_beyond_the_limit_is_told_and_not_read(t):
    write(t, "big.yaml", POD + "# " + "x" * (17 << 20) + "\n")
    report = findings(t, ".", exit=1)
    check([f["rule"] for f in report["findings"]] == ["SYN005"], report["findings"])


def test_a_workload_file_is_judged_as_plan_judges_it(t):
    text = "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 10B, sequnce: 4096}\nobjective: {minimize: cost}\n"
    write(t, "jobs/job.yaml", text)
    found = findings(t, "jobs", exit=1)["findings"]
    check([(f["rule"], f["line"], f["column"]) for f in found] == [("SYN006", 4, 21)], found)
    refused = t.call("plan", "jobs/job.yaml", exit=2).stderr
    check("job.yaml:4:21" in refused and "did you mean sequence?" in refused and "did you mean sequence?" in found[0]["message"],
          refused)
    # What it names beside it is found from where the file stands.
    write(t, "jobs/config.json", json.dumps({"architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000,
                                             "num_hidden_layers": 16, "num_attention_heads": 16, "intermediate_size": 5632}))
    write(t, "jobs/job.yaml", text.replace("sequnce", "sequence").replace("llama-3-8b", "config.json"))
    check(findings(t, "jobs")["findings"] == [], "a sound one")


def test_the_number_of_threads_changes_nothing(t):
    rng = random.Random(3)
    for i in range(60):
        write(t, f"d{rng.randrange(7)}/f{i}.yaml", rng.choice([POD, UNUSED + POD, BROKEN]))
    reports = {t.call("check", ".", "--format", "sarif", "--threads", str(n), exit=1).stdout for n in (1, 2, 7)}
    check(len(reports) == 1, "reports differ")
    text = t.call("check", exit=1).stdout
    check(max(len(line) for line in text.split("\n")) <= 100, "a line of more than 100 columns")


def test_rules_are_listed_and_explained(t):
    rules = json.loads(t.call("check", "--list", "-o", "json").stdout)
    check({"SYN001", "SYN004"} <= {rule["id"] for rule in rules}, rules)
    runs = {rule["id"]: rule["runs"] for rule in rules}
    check(runs["SYN004"] and not runs["SYN003"], runs)
    only = json.loads(t.call("check", "--list", "-o", "json", "--select", "SYN003").stdout)
    check({rule["id"] for rule in only if rule["runs"]} == {"SYN001", "SYN003", "SYN005"}, only)
    page = t.call("check", "--explain", "SYN004").stdout
    check("unused-suppression" in page and "Bad:" in page and "Good:" in page, page)
    check(page == t.call("explain", "SYN004").stdout == t.call("check", "--explain", "unused-suppression").stdout, "pages differ")
    check("did you mean" in t.call("check", "--explain", "SYN044", exit=2).stderr, "no hint")
    for rule in rules:
        lines = t.call("explain", rule["id"]).stdout.split("\n")  # those of examples are as their author wrote them
        check(max(len(line) for line in lines if not line.startswith(("      ", "  https://"))) <= 100, rule["id"])


def test_the_checklist_has_eleven_points(t):
    write(t, "pod.yaml", POD)
    points = json.loads(t.call("check", ".", "--checklist", "-o", "json").stdout)
    check(len(points) == 11 and {p["verdict"] for p in points} <= {"pass", "fail", "unknown"}, points)
    check(re.search(r"\d+ pass, 0 fail, \d+ unknown", t.call("check", "--checklist").stdout), "no count")


POOL = """variable "size" {}
resource "azurerm_kubernetes_cluster_node_pool" "gpu" {
  name                 = "gpu"
  vm_size              = var.size
  auto_scaling_enabled = true
  min_count            = 2
  max_count            = 2
  node_taints          = ["sku=gpu:NoSchedule"]
}
"""


def test_what_a_file_leaves_open_is_counted_and_can_be_given(t):
    write(t, "main.tf", POOL)
    open_values = findings(t, "main.tf")["not_evaluated"]
    check((open_values["attributes"], open_values["resources"]) == (1, 1), open_values)
    value = open_values["values"][0]
    check((value["attribute"], value["written"], value["line"]) == ("size", "var.size", 4), value)
    check("1 value of 1 resource not evaluated" in t.call("check", "main.tf").stdout, "no count")
    check("not evaluated: main.tf:4 size of" in t.call("check", "-v", "main.tf").stdout, "not listed")
    report = findings(t, "main.tf", "--size", "Standard_NC24ads_A100_v4", "--region", "eastus")
    fixed = [f for f in report["findings"] if f["rule"] == "NPL003"]
    check(len(fixed) == 1 and report["not_evaluated"]["attributes"] == 0, report)
    cost = fixed[0]["cost"]
    check(abs(cost["usd_per_hour"] - 2 * 3.673) < 1e-9 and cost["region"] == "eastus" and cost["as_of"] == "2026-06-18", cost)
    text = t.call("check", "main.tf", "--size", "nc24ads_a100_v4", "--region", "eastus").stdout
    check("  cost: 2 x Standard_NC24ads_A100_v4 idle is 7.35 USD an hour" in text, text)
    done = t.call("check", "main.tf", "--size", "Standard_NC24ads_A100_v5", exit=2)
    check("did you mean Standard_NC24ads_A100_v4" in " ".join(done.stderr.split()), done.stderr)
    check("did you mean eastus" in t.call("check", "main.tf", "--region", "eastuss", exit=2).stderr, "no nearest region")
    t.call("check", "main.tf", "--region", "East US", exit=0)


def test_modules_are_judged_by_their_calls(t):
    write(t, "infra/main.tf", 'module "gpu" {\n  source = "../modules/pool"\n  size   = "Standard_NC24ads_A100_v4"\n}\n')
    write(t, "modules/pool/main.tf", POOL.replace('"gpu"\n', '"pool"\n').replace('["sku=gpu:NoSchedule"]', "[]"))
    found = [f for f in findings(t, ".")["findings"] if f["rule"] == "NPL003"]
    check(len(found) == 1, found)
    check((found[0]["path"], found[0]["line"], found[0]["call"]) == ("modules/pool/main.tf", 7, "module.gpu"), found)
    check(any(r["path"] == "infra/main.tf" and r["message"] == "called here as module.gpu" for r in found[0]["related"]), found)
    # What is not checked itself is not told: neither beside a file that was named, nor where it is excluded.
    check(not findings(t, "infra/main.tf")["findings"], "a finding elsewhere")
    write(t, "stoker.toml", '[check]\nexclude = ["modules/**"]\n')
    check(not [f for f in findings(t, ".")["findings"] if f["path"].startswith("modules")], "a finding in what is excluded")


def test_pods_are_joined_with_the_pools_of_modules(t):
    write(t, "infra/main.tf", 'module "gpu" {\n  source = "../modules/pool"\n  size   = "Standard_NC24ads_A100_v4"\n'
                              '  taints = ["sku=gpu:NoSchedule"]\n}\n')
    write(t, "modules/pool/main.tf", 'variable "taints" {}\n' + POOL.replace('["sku=gpu:NoSchedule"]', "var.taints").replace('"gpu"\n', '"pool"\n'))
    write(t, "k8s/pod.yaml", POD + "    resources: {limits: {nvidia.com/gpu: 1}}\n")
    report = findings(t, ".")
    shut_out = [f for f in report["findings"] if f["rule"] == "K8S002"]
    check(len(shut_out) == 1 and shut_out[0]["path"] == "k8s/pod.yaml", report["findings"])
    check([r["path"] for r in shut_out[0]["related"]] == ["infra/main.tf"], shut_out)  # where the taint is written
    verdict = report["scheduling"][0]
    there = [verdict[part]["there"] for part in ("pool_taint", "device_plugin", "pod_toleration")]
    check((there, verdict["runs"]) == (["yes", "no", "no"], "no"), verdict)
    points = json.loads(t.call("check", ".", "--checklist", "-o", "json", exit=1).stdout)
    check([p["verdict"] for p in points if "toleration" in p["point"]] == ["fail"], points)
    reports = {t.call("check", ".", "--threads", str(n), exit=None).stdout for n in (1, 2, 5)}
    check(len(reports) == 1, "threads change the report")


def test_the_action_and_the_hooks_call_it_as_it_is(t):
    """What other projects copy must run: the step of action.yml under bash, the hook's command on named files."""
    root = HERE.parent.parent
    step = next(s for s in yaml.safe_load((root / "action.yml").read_text())["runs"]["steps"] if s["name"] == "Check")
    write(t, "k 8s.yaml", POD)
    write(t, "k8s/noted.yaml", UNUSED + POD)
    os.makedirs(os.path.join(t.base, "bin"))
    os.symlink(t.binary, os.path.join(t.base, "bin/stoker"))
    environment = dict(t.environment, PATH=os.path.join(t.base, "bin") + ":" + os.environ["PATH"], PATHS="k8s", FAIL_ON="info",
                       PROFILE="", BASELINE="", SARIF="out.sarif")
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=t.work, env=environment, capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and done.stdout.startswith("::notice file=k8s/noted.yaml"), done)
    check(json.loads(read(t, "out.sarif"))["version"] == "2.1.0", "no report")
    for hook in yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text()):
        done = subprocess.run([*hook["entry"].split(), "k 8s.yaml", "k8s/noted.yaml"], cwd=t.work, env=environment,
                              capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, done)
        check(re.search(hook["files"], "a/main.tf") and re.search(hook["files"], "Dockerfile.gpu"), hook["files"])
    check(UNUSED not in read(t, "k8s/noted.yaml"), "the second hook fixes")


# CI logs and editors read a line a finding; -v alone says where a rule comes from.
def test_a_finding_is_one_line_when_asked(t):
    t.write("vm.sh", "#!/bin/bash\naz vm create -g rg -n v --size Standard_ND96isr_H100_v5 "
                     "--image microsoft-dsvm:ubuntu-hpc:2204-rocm:latest --nsg-rule SSH\n")
    concise = t.call("check", "vm.sh", "--format", "concise", "--as-of", "2026-11-20", exit=1).stdout
    lines = [line for line in concise.splitlines() if line.startswith("vm.sh:2:")]
    check(len(lines) == 3 and any(" E SKU029 " in line for line in lines) and any(" E SEC001 " in line for line in lines), concise)
    grouped = t.call("check", "vm.sh", "--format", "grouped", "--as-of", "2026-11-20", exit=1).stdout
    check(grouped.splitlines()[0] == "vm.sh" and "2:" in grouped.splitlines()[1], grouped)
    check("source:" not in t.call("check", "vm.sh", exit=1).stdout, "source without -v")
    check("source:" in t.call("check", "vm.sh", "-v", exit=1).stdout, "no source with -v")


# Somebody mends a file with the check open beside it.
def test_watch_tells_again_when_a_file_changes(t):
    t.write("job.sh", "#!/bin/bash\ntorchrun --standalone --nproc_per_node=8 train.py --fp16 --bf16\n")
    process = t.start("check", "job.sh", "--watch", "--format", "concise")
    wait_for("the finding", lambda: "RUN006" in open(process.out_path).read())
    t.write("job.sh", "#!/bin/bash\ntorchrun --standalone --nproc_per_node=8 train.py --bf16 --max-steps 10 # mended\n")
    wait_for("that it is gone", lambda: "no findings" in open(process.out_path).read())
    process.kill()


# A pool of AKS and a batch script that runs on another cluster lie in one folder: they are not one training.
def test_a_batch_script_is_no_training_of_the_pool_beside_it(t):
    t.write("main.tf", """resource "azurerm_kubernetes_cluster_node_pool" "g" {
  name = "g"
  kubernetes_cluster_id = "x"
  vm_size = "Standard_NC24ads_A100_v4"
  node_taints = ["sku=gpu:NoSchedule"]
  auto_scaling_enabled = true
  min_count = 0
  max_count = 4
}
""")
    t.write("job.sbatch", """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
srun torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py
""")
    found = json.loads(t.call("check", "--format", "json", exit=0).stdout)["findings"]
    check(not {f["rule"] for f in found} & {"SKU006", "NET007", "NET003"}, str(found))


# cloud-init.yaml.tftpl is no YAML yet.
def test_a_template_is_no_broken_yaml(t):
    t.write("init.tftpl.yaml", "#cloud-config\n%{ for x in list ~}\n- ${x}: {\n%{ endfor ~}\n")
    check("SYN001" not in t.call("check", "init.tftpl.yaml", exit=0).stdout, "SYN001")


if __name__ == "__main__":
    main(globals())
