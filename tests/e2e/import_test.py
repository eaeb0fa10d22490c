"""Files of other tools, as people have them: real runs of #SBATCH scripts, SkyPilot and dstack tasks, and a report of what
could not be had of them, with line numbers."""

import json

from harness import check, main


def lines_of(done):
    return [line for line in done.stdout.splitlines() if line.startswith("> ")]


def dropped(done):
    """"job.sh:3" -> the text of its report."""
    found = {}
    for line in done.stderr.splitlines():
        if line.startswith("  ") and ": " in line:
            place, text = line.strip().split(": ", 1)
            found[":".join(place.split(":")[:2])] = text
    return found


def test_an_sbatch_script_with_srun_is_a_gang(t):
    """What srun would start are the ranks, each with its part of what the script asked for."""
    t.write("job.sh", """#!/bin/bash
#SBATCH --job-name=gang
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1   # of each
#SBATCH --mem=256M
#SBATCH --time=10:00
#SBATCH --partition=debug
##SBATCH --nodes=99

#SBATCH --output=out-%j.txt
export WORD="hello world"
srun --cpu-bind=cores sh -c 'echo "> $WORD $SLURM_PROCID/$SLURM_NTASKS $SLURM_CPUS_PER_TASK"'
srun -n 1 echo "> once"
srun --ntasks 1 --export=ALL echo "> and once"
#SBATCH --nodes=3
""")
    done = t.call("run", "--all-ranks", "job.sh")
    said = sorted(line.split("| ", 1)[1] for line in done.stdout.splitlines() if "> " in line)
    check(said == ["> and once", "> hello world 0/2 1", "> hello world 1/2 1", "> once"], done.stdout)
    report = dropped(done)
    check("--partition=debug" in report["job.sh:7"] and "--output" in report["job.sh:10"], done.stderr)
    check("after the first command" in report["job.sh:15"] and "job.sh:8" not in report, done.stderr)
    view = t.describe("r-1")
    check(view["run"]["name"] == "gang" and view["spec"]["timeout_s"] == 600, json.dumps(view["spec"]))
    check(view["spec"]["per_rank"]["memory_bytes"] == 128 << 20, json.dumps(view["spec"]))


def test_an_sbatch_script_without_srun_runs_once(t):
    t.write("job.sh", "#!/bin/bash -l\n#SBATCH -n 4 -c 1\n#SBATCH -J alone\n#SBATCH --mem-per-cpu 64\n"
                      "echo \"> $SLURM_NTASKS $RANK of $WORLD_SIZE in $SLURM_JOB_NAME\"\n")
    done = t.call("submit", "--dry-run", "job.sh", exit=None)
    check(done.returncode in (0, 1, 3), done.stderr)  # four cores may not be there
    done = t.call("run", "--cpus", "0.1", "job.sh")
    check(lines_of(done) and "4 0 of 1" in done.stdout, done.stdout + done.stderr)
    check(t.describe("r-1")["spec"]["per_rank"]["memory_bytes"] == 256 << 20, "memory of four processors")


def test_an_array_is_one_run_for_each_index(t):
    t.write("job.sh", "#!/bin/sh\n#SBATCH --array=3-7:2%2\n#SBATCH -c 1\necho \"> $SLURM_ARRAY_TASK_ID\"\n")
    done = t.call("run", "--cpus", "0.1", "job.sh", limit_s=60)
    check(sorted(line.split("> ")[1] for line in done.stdout.splitlines() if "> " in line) == ["3", "5", "7"], done.stdout)
    check("job.sh:2" not in dropped(done), done.stderr)
    check(t.describe("r-1")["spec"]["parallel"] == 2, "at most two at once")


def test_gpus_of_an_sbatch_script(t):
    """Nothing can run here; what would be asked for is told, and why it waits."""
    t.write("job.sh", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:a100:4\n"
                      "#SBATCH --cpus-per-gpu=8\n#SBATCH --mem=0\nsrun python train.py\n")
    t.up()
    done = t.call("submit", "--dry-run", "job.sh", exit=None)
    check(done.returncode == 1 and "8 ranks of 8 CPU, 1 a100" in done.stdout, done.stdout + done.stderr)


def test_mistakes_are_told_with_their_place(t):
    t.write("job.sh", "#!/bin/bash\n#SBATCH --ntasks=two\n#SBATCH --time=soon\n#SBATCH --memm=4G\ntrue\n")
    done = t.call("run", "job.sh", exit=2)
    check("job.sh:2:9" in done.stderr and "job.sh:3:9" in done.stderr, done.stderr)
    t.write("perl.sh", "#!/usr/bin/perl\n#SBATCH -n 1\nprint 1;\n")
    check("perl" in t.call("run", "perl.sh", exit=2).stderr, "an interpreter that is not read")


def test_a_skypilot_task(t):
    """The documented form of a task on several nodes, where each finds the others through SKYPILOT_ variables."""
    t.write("task.yaml", """name: two-nodes
resources:
  cpus: 1+
  memory: 0.2+
  infra: aws/us-east-1
  disk_size: 1
num_nodes: 2
workdir: .
envs:
  MODEL: small
  TOKEN:
setup: |
  echo "> setup $SKYPILOT_NODE_RANK"
  export GONE=yes
run: |
  HEAD=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
  echo "> $MODEL $SKYPILOT_NODE_RANK/$SKYPILOT_NUM_NODES gpus=$SKYPILOT_NUM_GPUS_PER_NODE ips=$(echo "$SKYPILOT_NODE_IPS" | wc -l) $GONE"
  test -n "$HEAD"
file_mounts:
  /data: s3://bucket
""")
    t.call("submit", "--dry-run", "task.yaml", exit=None)
    done = t.call("run", "task.yaml", "--all-ranks", "--virtual-nodes", "2")
    said = sorted(line.split("| ", 1)[1] for line in done.stdout.splitlines() if "> " in line)
    check(said == ["> setup 0", "> setup 1", "> small 0/2 gpus=0 ips=2 ", "> small 1/2 gpus=0 ips=2 "], done.stdout)
    report = dropped(done)
    check({"task.yaml:5", "task.yaml:11", "task.yaml:19"} <= set(report), done.stderr)
    check("--env" in report["task.yaml:11"], done.stderr)
    check("> small" in t.call("run", "task.yaml", "--env", "TOKEN=x", "--virtual-nodes", "2").stdout, "a value of the command line")


def test_a_dstack_task(t):
    t.write("train.dstack.yml", """type: task
name: train
python: "3.11"
env:
  - MODEL=small
  - HF_TOKEN
nodes: 2
commands:
  - export SEEN=1
  - echo "> $MODEL $DSTACK_NODE_RANK/$DSTACK_NODES_NUM $DSTACK_GPUS_NUM $SEEN $(echo "$DSTACK_NODES_IPS" | wc -l)"
  - |
    test -n "$DSTACK_MASTER_NODE_IP"
resources:
  cpu: 1..
  memory: 200MB..
  shm_size: 16GB
max_duration: 10m
ports: [6006]
""")
    done = t.call("run", "train.dstack.yml", "--all-ranks", "--virtual-nodes", "2")
    said = sorted(line.split("| ", 1)[1] for line in done.stdout.splitlines() if "> " in line)
    check(said == ["> small 0/2 0 1 2", "> small 1/2 0 1 2"], done.stdout)
    check({"train.dstack.yml:3", "train.dstack.yml:6", "train.dstack.yml:16", "train.dstack.yml:18"} <= set(dropped(done)), done.stderr)
    check(t.describe("r-1")["spec"]["timeout_s"] == 600, "max_duration")


def test_the_first_command_that_fails_ends_a_dstack_task(t):
    t.write("a.dstack.yml", "type: task\ncommands:\n  - false\n  - echo '> never'\n")
    done = t.call("run", "a.dstack.yml", exit=1)
    check("> never" not in done.stdout, done.stdout)


def test_what_is_not_read_says_so(t):
    t.write("service.dstack.yml", "type: service\nport: 8000\ncommands: [serve]\n")
    check("service.dstack.yml:1" in t.call("run", "service.dstack.yml", exit=2).stderr, "its place")
    t.write("job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n")
    check("Kubernetes" in t.call("run", "job.yaml", exit=2).stderr, "what it is")


if __name__ == "__main__":
    main(dict(globals()))
