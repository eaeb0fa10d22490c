"""What other programs say of the same scripts: `bash -n` and shellcheck about their syntax, Slurm's own sbatch about every #SBATCH
line. Each is left out, with a line that says so, where the program is not installed."""

import concurrent.futures
import getpass
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import time

import check_planted_scripts_test
import check_planted_test

from harness import check, main

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SBIN = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")


def missing(*programs):
    for program in programs:
        if not shutil.which(program, path=SBIN["PATH"]):
            print(f"left out: {program} is not installed")
            return True
    return False


def checked(t, names):
    """The findings of each file: {name: [finding]}. One run over all of them."""
    done = t.call("check", "--format", "json", "--as-of", "2026-11-20", "--select", "SYN,SLM", *names, exit=None, limit_s=300)
    check(done.returncode in (0, 1), done)
    found = {name: [] for name in names}
    for finding in json.loads(done.stdout)["findings"]:
        found[finding["path"]].append(finding)
    return found


# ---- The syntax of a shell ---------------------------------------------------------------------------------------------------------

# Where the examples of the rules' pages and the planted cases need no file of their own.
SNIPPETS = [
    "if a; then b; elif c; then d; else e; fi\n",
    "for i in 1 2; do x $i; done > log 2>&1\n",
    "while read -r l; do x \"$l\"; done < <(sort f)\n",
    "case $x in a|b) c ;; (*) d ;& e) ;; esac\n",
    "f() { x; }; function g { y; }; function h() ( z )\n",
    "a=(1 2 [5]=x \"y z\"); a+=(3)\necho \"${a[@]:1:2}\" ${#a[@]} ${!a[@]}\n",
    "((i = 1 << 2)) && echo $((i + (2 * 3))) $[i + 1]\n",
    "[[ a < b && ( $x =~ ^(a|b)+$ || -f $y ) ]] || exit\n",
    "x=\"$(a \"$(b 'c')\")\" y=`d \\`e\\`` z=${u:-\"${v%%*/}\"}\n",
    "cat <<A <<-'B' | tr a b\none $X $(y)\nA\n\t\"two\n\tB\n",
    "time -p { x && y; } & wait\n! x | y |& z\ncoproc x\n",
    "echo $'a\\'b' $\"c\" a\\ b {1..3} *.[ch] !(x) 2>&1 <<<\"$x\"\n",
    "select s in a b; do break; done\nuntil x; do y; done\n",
    "for ((i = 0; i < 3; i++)); do x; done; for ((;;)) { y; }\n",
    "srun --nodes=2 \\\n  bash -c \"a && b\" \\\n  > out\n",
    "eval \"$(x)\"; . ./y; [ -n \"$z\" ] && { a; b; }\n",
]
TOKENS = ["'", '"', "`", "$(", ")", "(", "${", "}", "{ ", "\nfi\n", "\ndone\n", "\nesac\n", " if ", "; then ", "; do ", " in ", ";;", "|", "&&",
          "||", ";", "&", "<<EOF\n", "\\", "((", "))", "[[ ", " ]]", "\n", "#", "=", "!", "<", ">", "else\n", "elif x; then\n", "case x in\n"]


def scripts_of_pages():
    for page in sorted((ROOT / "data/lint").glob("*.md")):
        for name, text in re.findall(r"^```(\S+)\n(.*?)^```", page.read_text(), re.M | re.S):
            if name.endswith((".sh", ".sbatch")):
                yield text


def mutated(text, chance):
    for _ in range(1 + chance.randrange(2)):
        at = chance.randrange(len(text) + 1)
        lines = text.splitlines(True)
        kind = chance.randrange(6)
        if kind == 0:
            text = text[:at] + text[at + 1 + chance.randrange(3):]
        elif kind in (1, 2):
            text = text[:at] + chance.choice(TOKENS) + text[at:]
        elif kind == 3 and len(lines) > 1:
            del lines[chance.randrange(len(lines))]
            text = "".join(lines)
        elif kind == 4:
            words = list(re.finditer(r"\S+", text))
            if words:
                word = chance.choice(words)
                text = text[:word.start()] + text[word.end():]
        else:
            text = text[:at]
    return text


def bash_takes(path):
    done = subprocess.run(["bash", "-n", path], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.returncode == 0 and not re.search(rb"syntax error|operator expected|unexpected", done.stderr)


def parse_errors(names, work):
    """Of shellcheck: {name: [code]}, those of level error about syntax."""
    found = {name: [] for name in names}

    def some(part):
        done = subprocess.run(["shellcheck", "-s", "bash", "-f", "json", *part], cwd=work, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300, env=dict(os.environ, LC_ALL="C.UTF-8"))
        return json.loads(done.stdout)
    parts = [names[i:i + 40] for i in range(0, len(names), 40)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for comments in pool.map(some, parts):
            for each in comments:
                if each["level"] == "error" and 1000 <= each["code"] < 2000:
                    found[each["file"]].append(each["code"])
    return found


def silent_for_a_reason(text):
    """Why a script that no shell takes is not called SYN001, or nothing."""
    if re.search(r"\{\{|\{%|<%|@@\{", text):
        return "a template"
    if not re.match(r"#!\s*(\S*/)?(env\s+)?(ba|da|k|)sh(\s|$)", text):
        return "another interpreter"
    if re.search(r"<[A-Za-z_][\w -]*[\w-]>", text):
        return "a placeholder"
    return None


def test_syntax_errors_are_those_of_bash_and_shellcheck(t):
    if missing("bash", "shellcheck"):
        return
    chance = random.Random(20261122)
    seeds = ["#!/bin/bash\n" + text for text in SNIPPETS] + list(scripts_of_pages())
    seeds += [text for path, _, text, _ in check_planted_test.CASES + check_planted_scripts_test.CASES if path.endswith((".sh", ".sbatch"))]
    own = [path.read_text() for path in [ROOT / "dev", *ROOT.glob(".ci/**/*.sh"), *ROOT.glob("examples/**/*.sh")]]
    texts = seeds + own + [mutated(chance.choice(seeds), chance) for _ in range(600)]
    names = []
    for i, text in enumerate(texts):
        names.append(f"s{i}.sh")
        with open(os.path.join(t.work, names[-1]), "w") as file:
            file.write(text if text.startswith("#!") else "#!/bin/bash\n" + text)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        taken = dict(zip(names, pool.map(lambda name: bash_takes(os.path.join(t.work, name)), names)))
    other = parse_errors(names, t.work)
    # Those of the shell: a heredoc may hold a broken text of another language.
    of_shell = re.compile("not closed|outside of|without|command is missing|no command|where none can stand|between them|an operator")
    ours = {name: any(f["rule"] == "SYN001" and of_shell.search(f["message"]) for f in findings) for name, findings in checked(t, names).items()}
    wrong, reasons, agreed, passed_over, whole = [], {}, 0, [], len(seeds) + len(own)
    for i, (name, text) in enumerate(zip(names, texts)):
        if taken[name]:
            if ours[name]:
                wrong.append(f"{name}: SYN001, and bash takes it: {text!r}")
        elif other[name] and not ours[name]:
            reason = silent_for_a_reason(text)
            what = f"{name}: no SYN001, and neither bash nor shellcheck ({other[name]}) takes it: {text!r}"
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            elif i < whole:
                wrong.append(what)
            else:
                # What is mutated changes with every page, and no reader of ours knows all of what a shell refuses.
                passed_over.append(what)
        else:
            agreed += ours[name]
    print(f"{len(names)} scripts; bash refuses {sum(not each for each in taken.values())}, shellcheck {sum(map(bool, other.values()))}; "
          f"SYN001 in {sum(ours.values())}, agreed in {agreed}; silent for a reason: {reasons}")
    check(not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} in all")
    print(f"of the mutated ones that neither takes {len(passed_over)} are passed over")
    check(len(passed_over) <= 0.15 * (agreed + len(passed_over)), "\n".join(passed_over[:20]))


# ---- Slurm -------------------------------------------------------------------------------------------------------------------------

class Slurm:
    """A controller and one node of 16 CPUs and 8 GPUs, of any user, on ports and with a key of its own."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("ctl", "log", "run", "munge", "spool/n1"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        self.environment = dict(SBIN, SLURM_CONF=f"{folder}/slurm.conf", LC_ALL="C.UTF-8")
        with open(f"{folder}/munge/key", "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(f"{folder}/munge/key", 0o600)
        self.run("munged", "--force", f"--key-file={folder}/munge/key", f"--socket={folder}/munge/sock", f"--pid-file={folder}/run/munge.pid",
                 f"--log-file={folder}/munge/log", f"--seed-file={folder}/munge/seed")
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        self.write("slurm.conf", f"""ClusterName=oracle
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
StateSaveLocation={folder}/ctl
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=256 SocketsPerBoard=2 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=2000000 TmpDisk=2000000 Gres=gpu:a100:8
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        self.write("gres.conf", "Name=gpu Type=a100 File=/dev/tty[0-7]\n")
        self.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.run("slurmctld", "-f", f"{folder}/slurm.conf")
        self.run("slurmd", "-N", "n1", "-f", f"{folder}/slurm.conf")
        end = time.monotonic() + 60
        while self.run("sinfo", "-h", "-t", "idle", "-o", "%D", refuse=False).stdout.strip() != "1":
            if time.monotonic() > end:
                raise RuntimeError("Slurm did not come up:\n" + open(f"{folder}/log/slurmctld.log").read()[-3000:])
            time.sleep(0.1)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def run(self, *words, refuse=True):
        done = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if refuse and done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done

    def close(self):
        for name in ("slurmd.n1.pid", "slurmctld.pid", "munge.pid"):
            try:
                pid = int(open(os.path.join(self.folder, "run", name)).read())
                os.kill(pid, 15)
                end = time.monotonic() + 20
                while time.monotonic() < end and os.path.exists(f"/proc/{pid}") and " Z " not in open(f"/proc/{pid}/stat").read():
                    time.sleep(0.05)
            except (OSError, ValueError):
                pass

    # What the controller refuses whatever nodes it has: it is the same for every cluster.
    ANYWHERE = ("Invalid generic resource", "Invalid job array", "Job dependency problem", "Node count specification invalid",
                "Task count specification invalid", "Invalid Trackable RESource", "Invalid wckey", "Invalid numeric value", "Job size specification", "Invalid licenses")

    def refuses(self, path):
        """What sbatch says against the script, or nothing where it takes it; what only this cluster does not have counts as taken."""
        done = self.run("sbatch", "--test-only", path, refuse=False)
        said = (done.stderr + done.stdout).strip()
        if done.returncode == 0:
            return None
        if "allocation failure" in said or "Batch job submission failed" in said:
            return said if any(text in said for text in self.ANYWHERE) else None
        return said


# Values, right and wrong, of each option: as the manual has them, at the edges, with other units, and as people get them wrong.
NUMBERS = ["1", "4", "0", "-1", "+2", "x", "2x", "1.5", "''", "1k", "99999999999", "0x10", "4,4", "1-2", "' 4'", "'4 '"]
SIZES = ["4000", "4G", "4g", "4GB", "4gb", "4 G", "4Gi", "1.5G", "512M", "512MB", "2T", "1P", "64K", "0", "-1", "x", "G", "''", "4GG"]
TIMES = ["10", "10:00", "1:00:00", "1-0", "1-12:30", "2-0:0:0", "0", "-1", "UNLIMITED", "infinite", "INFINITE", "24h", "1d", "1 day", "10m",
         "1:2:3:4", "tomorrow", "12:60", "12:99:99", "''", "1-", ":30", "1::2", "4:00:00.5", "-5"]
MOMENTS = ["now", "now+1hour", "now+2", "now+1hours", "now+5minutes", "16:00", "16:00:30", "4pm", "midnight", "noon", "teatime", "tomorrow", "today",
           "2030-01-20T12:34:00", "2030-01-20", "010130", "01/20/30", "25:00", "yesterday", "x", "2030-13-01", "2030-01-20 12:00", "now+1year"]
VALUES = {
    "nodes": NUMBERS + ["2-4", "4-2", "1-", "-4", "2-4-6", "1,2", "1K", "2m", "1-x", "n1", "all"],
    "ntasks": NUMBERS,
    "ntasks-per-node": NUMBERS,
    "ntasks-per-core": NUMBERS[:8],
    "ntasks-per-socket": NUMBERS[:8],
    "ntasks-per-gpu": NUMBERS[:8],
    "cpus-per-task": NUMBERS,
    "cpus-per-gpu": NUMBERS,
    "mincpus": NUMBERS[:9],
    "cores-per-socket": NUMBERS[:9],
    "sockets-per-node": NUMBERS[:9],
    "threads-per-core": NUMBERS[:9],
    "core-spec": NUMBERS[:9],
    "thread-spec": NUMBERS[:9],
    "priority": NUMBERS[:9] + ["TOP", "top"],
    "mem": SIZES,
    "mem-per-cpu": SIZES,
    "mem-per-gpu": SIZES,
    "tmp": SIZES,
    "time": TIMES,
    "time-min": TIMES,
    "begin": MOMENTS,
    "deadline": MOMENTS,
    "gres": ["gpu", "gpu:1", "gpu:a100", "gpu:a100:8", "gpu:8", "gpu:0", "gpu:x", "gpu=4", "gpus:4", "GPU:4", "gpu:-1", "gpu:1.5", "gpu:1k", "gpu:a100:x",
             "gpu:a100:4:x", "gpu:a100=4", "gpu:4,gpu:4", "gres:gpu:4", "gpu:", "none", "4", "gpu:8(S:0)", "craynetwork:0", "''"],
    "gpus": ["1", "8", "0", "a100:4", "a100", "gpu:4", "x:4", "a100=4", "-1", "1.5", "4k", "a100:", "all", "''", "a100:2,a100:2"],
    "gpus-per-node": ["1", "8", "0", "a100:4", "gpu:4", "gpu:a100:4", "x", "-1", "1.5", "''", "all"],
    "gpus-per-task": ["1", "a100:1", "gpu:1", "x", "-1", "''"],
    "gpus-per-socket": ["1", "a100:1", "x", "-1"],
    "gpu-bind": ["none", "closest", "single:2", "map_gpu:0,1", "mask_gpu:0x1", "verbose,closest", "per_task:1", "x", "single", "single:x", "map_gpu"],
    "gpu-freq": ["low", "medium", "high", "highm1", "1000", "memory=high", "low,memory=high", "x", "memory=x"],
    "array": ["0-3", "1,3,5", "0-15:4", "0-15%4", "1-10:2%3", "5", "x", "3-1", "1-", "0-3%", "-1", "1..3", "[0-3]", "0-3%0", "0-3:0"],
    "mail-type": ["ALL", "all", "BEGIN,END", "FAIL", "NONE", "TIME_LIMIT_80", "ARRAY_TASKS,END", "BEGIN END", "x", "begin,x", "ERROR", "REQUEUE", "STAGE_OUT",
                  "INVALID_DEPEND", "''"],
    "dependency": ["singleton", "afterok:1", "after:1+5", "afterany:1:2", "afterok:1,afterany:2", "afterok:1?afterany:2", "afterok", "x:1", "1",
                   "afterok:x", "afternotok:7", "aftercorr:7", "afterburstbuffer:7", "expand:7"],
    "distribution": ["block", "cyclic", "block:cyclic", "plane=4", "block:block:fcyclic", "block,NoPack", "*:block", "x", "plane", "plane=x",
                     "block:x", "pack"],
    "hint": ["compute_bound", "memory_bound", "multithread", "nomultithread", "x", "COMPUTE_BOUND"],
    "exclusive": ["", "user", "mcs", "x", "exclusive", "USER"],
    "open-mode": ["append", "truncate", "a", "t", "APPEND", "x"],
    "signal": ["USR1", "USR1@60", "B:USR1@60", "10", "10@120", "SIGUSR1@60", "R:TERM", "BR:TERM@30", "x", "USR1@", "USR1@x", "@60", "B:", "99@5", "B:USR1@99999"],
    "kill-on-invalid-dep": ["yes", "no", "YES", "true", "x"],
    "gres-flags": ["disable-binding", "enforce-binding", "x"],
    "switches": ["1", "2@10", "1@1:00:00", "x", "1@x", "0"],
    "nice": ["", "100", "-5", "x", "0"],
    "no-kill": ["", "off", "no", "x", "OFF"],
    "wait-all-nodes": ["0", "1", "2", "x"],
    "profile": ["none", "all", "task", "energy", "task,energy", "x"],
    "acctg-freq": ["30", "task=30", "energy=10,task=5", "x", "task=x", "0"],
    "cpu-freq": ["low", "high", "performance", "1000000", "low-high", "low-high:Performance", "x", "OnDemand"],
    "delay-boot": ["10", "1:00:00", "x"],
    "mem-bind": ["none", "local", "map_mem:0", "rank", "quiet", "x", "verbose,local"],
    "extra-node-info": ["2", "2:8", "2:8:2", "x", "2:x", "*:8"],
    "propagate": ["", "ALL", "NONE", "STACK,NOFILE", "x", "all"],
    "power": ["level", "x"],
    "export": ["ALL", "NONE", "A=1,B", "NIL", "ALL,X=1"],
    "get-user-env": ["", "10", "10L", "10S", "x"],
    "requeue": [""],
    "contiguous": [""],
    "overcommit": [""],
    "oversubscribe": [""],
    "hold": [""],
    "spread-job": [""],
    "use-min-nodes": [""],
    "wait": [""],
    "job-name": ["x", "'a b'", "''", "a#b"],
    "output": ["x.%j", "/tmp/%x-%A_%a.out", "''"],
    "comment": ["x", "'a b'"],
    "partition": ["main", "main,main"],
    "constraint": ["''"],
    "account": ["x"],
}
# What an option needs beside it to be looked at at all.
BESIDE = {"ntasks-per-gpu": "--gpus=8 ", "mem-per-gpu": "--gpus=1 ", "gpus-per-task": "--ntasks=1 ", "gpus-per-socket": "--sockets-per-node=1 "}
LETTERS = {"nodes": "N", "ntasks": "n", "cpus-per-task": "c", "time": "t", "gpus": "G", "array": "a", "job-name": "J", "output": "o", "partition": "p",
           "dependency": "d", "distribution": "m", "mem": None, "begin": "b", "core-spec": "S", "extra-node-info": "B", "account": "A"}
# Whole lines: spellings, blanks, quotes, comments, several options, names shortened or misspelt.
LINES = ["--nodes=2", "--nodes 1", "-N1", "-N 1", "-N=1", "--nodes = 1", "--nodes= 1", "--nodes =1", "--Nodes=1", "--NODES=1", "--node=1", "--nod=1", "--n=1",
         "-N1 -n4", "-N 1 -n 4 -t 10", "-N1-n4", "--nodes=1,--ntasks=4", "--nodes=1;", "--nodes=1 # one", "--nodes=1 #one", "--nodes=1#one", "# --nodes=1",
         "nodes=1", "--nodes:1", "-nodes=1", "-nodes 1", "--gpu-per-node=8", "--gpus_per_node=8", "--gpus-per-nodes=8", "--ngpus=8", "--gpu=1", "--gpus=1",
         "--cpu-per-task=4", "--cpus_per_task=4", "--cpus-per-tasks=4", "--cpus=4", "--ntask=4", "--ntasks-per-nod=4", "--tasks-per-node=4", "--tasks=4",
         "--mem-per-cpus=4G", "--memory=4G", "--time-limit=10", "--walltime=10", "--job_name=x", "--jobname=x", "--name=x", "--queue=main", "--part=main",
         "--exclusive", "--exclusive=user", "--exclusive user", "--exclusive=", "--requeue=1", "--requeue yes", "--no-requeue", "--hold", "-H", "-HQ", "-QH", "-k",
         "-s", "-O", "-W", "-Z", "-L", "-l", "-q", "--mail-user=x@y.z --mail-type=END", "--job-name='a b' -N1", "--job-name=\"a b\" -N1", "--job-name=a\\ b",
         "--job-name='a b", "--output=%x.out --error %x.err", "-o out -e err", "-oout", "-o=out", "--test-only", "--parsable", "--verbose", "-v", "-vv", "-V",
         "--help", "--usage", "--wrap=x", "--", "-", "---nodes=1", "–nodes=1", "—nodes=1", "\t--nodes=1", "  --nodes=1  ", "--nodes=1\r", "--gres gpu:1",
         "--gres=gpu:1 --gpus-per-task=1 -n 1", "--constraint=", "-C", "--time", "--nodes", "-n", "--mem 4G", "--mem 4 G", "-t 10 20", "-p main x", "@nodes=1",
         "--export=ALL --get-user-env", "--chdir=/tmp", "-D /tmp", "--workdir=/tmp", "--share", "--usage-x", "--uid=root", "--gid=root", "--bb=x", "--tres-per-task=cpu:2",
         "--stepmgr", "--cluster=main", "--immediate", "-HZ", "-vQ -N1", "-N1 -- -n 4", "hetjob", "packjob", "'--nodes=1'", "--job-name=a'b c'd", "--clust=main",
         "--task=4", "--ntasks-per=4", "--mem-update=x", "--extra=x", "--segment=4", "--prefer=x", "--container=x", "--container-image=x",
         "--no-container-mount-home", "--oom-kill-step=1"]
# What sbatch refuses and we must not: options of later or earlier versions and of plug-ins; kinds of resources that another cluster
# has; line ends of DOS, which a checkout makes and another takes away.
ELSEWHERE = re.compile(r"--(stepmgr|segment|tres-per-task|oom-kill-step|mem-update|extra=|cluster=|container-image|no-container|workdir|share)|\\ |gres[= ](gpu=|gpus:|GPU:|gpu:8\(S)|\r")
# A word where a number belongs: as likely as not one that a tool fills in (--nodes=NODES), so we say nothing.
FILLED_IN = re.compile(r"^(--\S+ )?(--(nodes|ntasks[a-z-]*|cpus-per-(task|gpu)|mincpus|cores-per-socket|sockets-per-node|threads-per-core|core-spec|"
                       r"thread-spec|mem|mem-per-(cpu|gpu)|tmp|time|time-min|delay-boot|begin|deadline|array|extra-node-info|switches|acctg-freq|"
                       r"get-user-env|wait-all-nodes)[ =]|-[NncStaBb] ?)[A-Za-z=]+$")


def directive_lines():
    lines = list(LINES)
    for option, values in VALUES.items():
        for i, value in enumerate(values):
            if value == "":
                lines.append(f"--{option}")
                continue
            beside = BESIDE.get(option, "")
            lines.append(f"{beside}--{option}={value}")
            letter = LETTERS.get(option)
            if i % 3 == 0 and value not in ("", "''") and not value.startswith("-"):
                lines.append(f"{beside}--{option} {value}" if option not in ("exclusive", "nice", "no-kill", "propagate", "get-user-env") else f"--{option}={value} -n 1")
            if letter and i % 2 == 0 and value != "''":
                lines += [f"-{letter} {value}", f"-{letter}{value}"]
    return list(dict.fromkeys(lines))


def test_directives_are_what_sbatch_takes(t):
    if missing("sbatch", "slurmctld", "slurmd", "munged"):
        return
    lines, names = directive_lines(), []
    for i, line in enumerate(lines):
        names.append(f"d{i}.sbatch")
        with open(os.path.join(t.work, names[-1]), "w") as file:
            file.write(f"#!/bin/bash\n#SBATCH {line}\nhostname\n")
    ours = {name: [f["message"] for f in findings if f["rule"] in ("SLM007", "SLM015", "SLM016")] for name, findings in checked(t, names).items()}
    slurm = Slurm(os.path.join(t.base, "slurm"))
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            theirs = dict(zip(names, pool.map(lambda name: slurm.refuses(os.path.join(t.work, name)), names)))
    finally:
        slurm.close()
    wrong = []
    for name, line in zip(names, lines):
        if bool(ours[name]) != bool(theirs[name]) and (ours[name] or not (ELSEWHERE.search(line) or FILLED_IN.search(line))):
            wrong.append(f"#SBATCH {line}: we say {ours[name] or 'nothing'}, sbatch {(theirs[name] or 'takes it').splitlines()[0]}")
    excused = sum(bool(theirs[name]) and not ours[name] for name in names) - sum("nothing" in each for each in wrong)
    print(f"{len(lines)} lines, {excused} of them left to the reasons above; sbatch refuses {sum(map(bool, theirs.values()))}, we {sum(map(bool, ours.values()))}; {len(wrong)} differ")
    check(not wrong, "\n".join(wrong))


if __name__ == "__main__":
    main(globals())
