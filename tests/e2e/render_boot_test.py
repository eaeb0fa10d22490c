#!/usr/bin/env python3
"""What a machine does on its first boot, run: the check that compares it with the plan, and a container of Blob as a folder.

    python3 tests/e2e/render_boot_test.py --stoker build/release/stoker [NAME...]

nvidia-smi, systemctl and blobfuse2 are small programs of the test; paths of the machine are a folder of it."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import yaml

import render_test as plans
from harness import check, main
from render_test import files, rendered

# Each target with a machine in it.
plans.targets = lambda t: ["az", "bicep", "terraform", "cloud-init", "slurm-cloud", "on-prem"]

# They lie in YAML, where nobody's editor sees them, and run as root.
def test_scripts_of_the_first_boot_are_scripts(t):
    folder, seen = os.path.join(t.base, "boot"), 0
    os.makedirs(folder)
    for plan, target, path in files(t, "cloud-init.yaml"):
        for each in yaml.safe_load(path.read_text())["write_files"]:
            if each["content"].startswith("#!"):
                seen += 1
                with open(os.path.join(folder, f"{plan}-{target}-{os.path.basename(each['path'])}"), "w") as file:
                    file.write(each["content"])
    check(seen > 40, f"{seen} scripts")
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-f", "gcc", *[str(path) for path in pathlib.Path(folder).iterdir()]], capture_output=True, text=True,
                              timeout=300)
        check(done.returncode == 0, done.stdout[:2000])


# A machine with a GPU less than planned is paid for in full, and a gang on it does not fit.
def test_the_check_of_a_machine_tells_what_is_missing(t):
    [script] = [each["content"] for each in yaml.safe_load(pathlib.Path(rendered(t)["zero3", "az"], "cloud-init.yaml").read_text())["write_files"]
                if each["path"].endswith("node-check")]
    programs = os.path.join(t.base, "gpu")
    os.makedirs(programs)
    memory = re.search(r'"\$memory" -ge (\d+)', script).group(1)

    def said(gpus, errors, gib):
        with open(os.path.join(programs, "nvidia-smi"), "w") as file:
            file.write(f"#!/bin/sh\ncase $1 in -L) for n in $(seq 1 {gpus}); do echo GPU $n; done ;; *) echo '0, No, {errors}' ;; esac\n")
        with open(os.path.join(programs, "awk"), "w") as file:
            file.write(f"#!/bin/sh\necho {gib}\n")
        for name in ("nvidia-smi", "awk"):
            os.chmod(os.path.join(programs, name), 0o755)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PATH=programs + ":" + os.environ["PATH"]))
        return done.returncode, done.stdout

    check(said(8, 0, memory) == (0, "node-check: as planned\n"), said(8, 0, memory))
    for wrong, words in (((7, 0, memory), "7 of 8 GPUs"), ((8, 3, memory), "uncorrectable"), ((8, 0, 10), "10 GiB of memory")):
        code, text = said(*wrong)
        check(code == 1 and words in text and "as planned" not in text, f"{wrong}: {code}, {text}")


# A container of weights that is mounted with another one's name serves another model.
def test_a_blob_container_is_mounted_as_the_machine(t):
    [script] = [each["content"] for each in yaml.safe_load(pathlib.Path(rendered(t)["zero3", "az"], "cloud-init.yaml").read_text())["write_files"]
                if each["path"].endswith("mount-blobs")]
    root, programs = os.path.join(t.base, "root"), os.path.join(t.base, "blob")
    for folder in ("etc/systemd/system", "mnt", "data"):
        os.makedirs(os.path.join(root, folder))
    os.makedirs(programs)
    for name in ("blobfuse2", "systemctl"):
        with open(os.path.join(programs, name), "w") as file:
            file.write(f'#!/bin/sh\necho "{name} $*" >> {root}/called\n')
        os.chmod(os.path.join(programs, name), 0o755)
    for folder in ("/etc/blobfuse2", "/etc/systemd", "/mnt", "/data"):
        script = re.sub(rf'(?<![\w/]){folder}(?=[-/\s])', root + folder, script)
    done = subprocess.run(["bash", "-c", script, "mount-blobs", "acme", "weights"], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, PATH=programs + ":" + os.environ["PATH"]))
    check(done.returncode == 0, done.stderr)
    said = yaml.safe_load(open(os.path.join(root, "etc/blobfuse2-weights.yaml")))
    check(said["azstorage"] == {"type": "block", "account-name": "acme", "container": "weights", "mode": "msi"}, said)
    check(said["file_cache"]["path"].endswith("/mnt/blobfuse-weights") and said["file_cache"]["max-size-mb"] > 0, said)
    with open(os.path.join(root, "etc/systemd/system/blobs-weights.service")) as file:
        check("blobfuse2 mount " in file.read(), "no unit mounts it")
    with open(os.path.join(root, "called")) as file:
        check("systemctl enable --now blobs-weights.service" in file.read(), "the unit is not started")


def program(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)


# A set that goes by a number that nobody sends stays as it is, whatever the load.
def test_a_machine_sends_how_busy_its_gpus_are(t):
    [script] = [each["content"] for each in yaml.safe_load(pathlib.Path(rendered(t)["follows", "az"], "cloud-init.yaml").read_text())["write_files"]
                if each["path"].endswith("gpu-load")]
    programs, sent = os.path.join(t.base, "load"), os.path.join(t.base, "sent")
    program(programs, "nvidia-smi", "#!/bin/sh\necho 40\necho 100\n")
    about = {"location": "eastus", "subscriptionId": "S", "resourceGroupName": "G", "vmScaleSetName": "serve"}
    program(programs, "curl", f"""#!/bin/bash
case "${{!#}}" in
*/instance/compute*) echo '{json.dumps(about)}' ;;
*resource=https%3A%2F%2Fmonitoring.azure.com%2F) echo '{{"access_token": "the-token"}}' ;;
*) printf '%s\\n' "$@" > {sent} ;;
esac
""")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, PATH=programs + ":" + os.environ["PATH"], ONCE="1", PAUSE="0"))
    check(done.returncode == 0, done.stderr)
    words = open(sent).read().splitlines()
    check(words[-1] == "https://eastus.monitoring.azure.com/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/serve/metrics",
          words[-1])
    check("Authorization: Bearer the-token" in words, words)
    said = json.loads(words[words.index("-d") + 1])["data"]["baseData"]
    check(said["metric"] == "gpu_busy" and said["namespace"] == "stoker", said)
    check({k: said["series"][0][k] for k in ("min", "max", "sum", "count")} == {"min": 40, "max": 100, "sum": 12 * 140, "count": 24}, said)


# Parts are gone after every start: a machine that does not make them again offers none, and work waits for ever.
def test_gpus_are_cut_at_each_start_and_left_alone_when_they_are(t):
    script = pathlib.Path(rendered(t)["own-parts", "on-prem"], "mig-layout.sh")
    programs, state = os.path.join(t.base, "mig"), os.path.join(t.base, "state")
    os.makedirs(state)
    # Two GPUs of a driver whose mode waits for a reset; one of them is in use when `busy` is there.
    program(programs, "nvidia-smi", f"""#!/bin/bash
cd {state}
echo "$*" >> called
gpu=$(sed -n 's/.*-i \\([0-9]*\\).*/\\1/p' <<< "$*")
case "$*" in
*query-gpu=index*) echo 0; echo 1 ;;
*query-gpu=mig.mode.current*) if [ -e mode$gpu ]; then echo Enabled; else echo Disabled; fi ;;
*'-mig 1'*) touch pending$gpu ;;
*--gpu-reset*) [ ! -e busy ] || exit 1; mv pending$gpu mode$gpu ;;
*-lgi*) [ ! -e parts$gpu ] || cat parts$gpu ;;
*-cgi*) for n in $(tr , ' ' <<< "$5"); do echo "|   $gpu  MIG $n          19        7          0:1     |"; done > parts$gpu ;;
esac
""")

    def cut():
        done = subprocess.run(["bash", script], capture_output=True, text=True, timeout=60, env=dict(os.environ, PATH=programs + ":" + os.environ["PATH"]))
        with open(os.path.join(state, "called")) as file:
            return done.returncode, done.stderr, file.read().splitlines()

    code, errors, called = cut()
    check(code == 0, errors)
    check(sum("-cgi " + ",".join(["1g.10gb"] * 7) + " -C" in each for each in called) == 2, called)
    os.remove(os.path.join(state, "called"))
    code, errors, called = cut()
    check(code == 0 and not any("-cgi" in each or "-dgi" in each for each in called), f"cut again: {called}")
    # In use, and not yet cut.
    os.remove(os.path.join(state, "mode1"))
    pathlib.Path(state, "busy").touch()
    code, errors, _ = cut()
    check(code != 0 and not pathlib.Path(state, "mode1").exists(), errors)


if __name__ == "__main__":
    main(globals())
