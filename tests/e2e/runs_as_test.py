"""Work as a user of its own (stoker up --runs-as project): a hostile run tries to get at what the server has, and at what another project left.
Needs root, since only root can start work as somebody else.

    python3 tests/e2e/runs_as_test.py --stoker build/release/stoker"""

import json
import os
import resource
import signal
import stat

from harness import Skipped, check, main, wait_for
from teams_test import Caller

CANARY = "canary-5f1c0d77"
# Each prints its name when it got through.
HOSTILE = r'''
import ctypes, json, os, signal, socket, sys
folder, server, other = sys.argv[1], int(sys.argv[2]), sys.argv[3]
through = []
def attempt(name, act):
    try:
        act()
        through.append(name)
    except OSError:
        pass
def read(path):
    return lambda: open(path, "rb").read(1)
for name in ("token", "stoker.db", "stoker.db-wal", "journal-head", "server.json", "prices.yaml", "notify.cursor"):
    attempt("read " + name, read(os.path.join(folder, name)))
for name in ("", "secrets", "run", "runs", "audit", "series"):
    attempt("list " + name, lambda name=name: os.listdir(os.path.join(folder, name)))
attempt("write into the folder", lambda: open(os.path.join(folder, "token"), "r+"))
attempt("make in the folder", lambda: open(os.path.join(folder, "x"), "w"))
attempt("make a run folder", lambda: os.mkdir(os.path.join(folder, "runs", "r-99")))
for name in ("environ", "mem", "root/etc/hostname", "fd/3", "maps"):
    attempt("the server's /proc/" + name, read(f"/proc/{server}/{name}"))
attempt("the keeper's environment", read(f"/proc/{os.getppid()}/environ"))
attempt("end the server", lambda: os.kill(server, 0))
attempt("end the keeper", lambda: os.kill(os.getppid(), 0))
def trace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, server, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "")
attempt("trace the server", trace)
def connect(path):
    def act():
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(path)
    return act
attempt("the handover socket", connect(os.path.join(folder, "handover.sock")))
own = os.path.dirname(os.environ["STOKER_HOSTFILE"])
attempt("the keeper's socket", connect(os.path.join(own, "control")))
attempt("its own launch order", read(os.path.join(own, "launch.json")))
attempt("list launches", lambda: os.listdir(os.path.dirname(own)))
attempt("the other project's log", read(other))
attempt("the other project's folder", lambda: os.listdir(os.path.dirname(os.path.dirname(other))))
attempt("become root", lambda: os.setuid(0))
# A link in place of what the server reads as its own.
run = os.environ["STOKER_RUN_DIR"]
if len(sys.argv) == 4:
    attempt("replace its log", lambda: os.rename(os.path.join(run, os.environ["STOKER_ATTEMPT_DIR"]), os.path.join(run, "gone")))
    attempt("replace its metrics", lambda: os.remove(os.path.join(run, "metrics.jsonl")))
leaks = [key for key, value in os.environ.items() if "canary" in value]
for line in open("/proc/self/status"):
    if line.startswith(("CapEff", "CapPrm", "CapBnd_")) and int(line.split()[1], 16):
        through.append("capabilities " + line.strip())
    if line.startswith("NoNewPrivs") and line.split()[1] != "1":
        through.append("may gain privileges")
print("RESULT " + json.dumps({"through": through, "leaks": leaks, "uid": os.getuid(), "groups": os.getgroups()}))
'''
# Each way out is a name and an act; what raises OSError did not lead anywhere. The other project's work runs meanwhile.
WAYS = r'''
import ctypes, json, os, signal, socket, struct, sys
folder, port, other, victim, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
if os.getuid() == 0:
    # As root these are no attempts but harm: mounts, a clock, a device.
    print("RESULT " + json.dumps({"ways": 0, "through": ["it is root"], "uid": 0}))
    sys.exit()
libc = ctypes.CDLL(None, use_errno=True)
ways, through = [], []
def way(name, act):
    ways.append(name)
    try:
        if act() is not False:
            through.append(name)
    except (OSError, PermissionError):
        pass
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
def read(path):
    return lambda: open(path, "rb").read(1)
home, artifacts = os.environ["HOME"], os.environ["STOKER_ARTIFACT_DIR"]
def ask(header):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        one.sendall(f"GET /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Connection: close\r\n\r\n".encode())
        return one.recv(64)
def peek():
    inside = ctypes.create_string_buffer(8)
    ours, theirs = struct.pack("PN", ctypes.addressof(inside), 8), struct.pack("PN", 4096 * 1024, 8)
    check(libc.process_vm_readv(other, ours, 1, theirs, 1, 0))
# Another project's process
way("signal another project's work", lambda: os.kill(other, 0))
way("trace another project's work", lambda: check(libc.ptrace(0x4206, other, 0, 0)))
for name in ("environ", "mem", "maps", "fd/1", "cwd/private.txt", "root/etc/hostname"):
    way("another project's /proc/" + name, read(f"/proc/{other}/{name}"))
way("its memory by process_vm_readv", peek)
way("slow it down", lambda: os.setpriority(os.PRIO_PROCESS, other, 19))
way("a limit for it", lambda: check(libc.prlimit(other, 7, struct.pack("QQ", 1, 1), None)))
way("its descriptors by pidfd", lambda: check(libc.syscall(438, os.pidfd_open(other), 1, 0)))
# Another project's files
way("another project's log", read(log))
way("another project's folder", lambda: os.listdir(victim))
way("its private file by a hard link", lambda: os.link(os.path.join(victim, "private.txt"), os.path.join(home, "hard")))
way("write into its folder", lambda: open(os.path.join(victim, "x"), "w"))
way("its shared memory", read("/dev/shm/stoker-private"))
# The machine
way("become root", lambda: os.setuid(0))
way("more rights by a setuid program", lambda: os.stat("/proc/self/exe") and open("/proc/self/status").read().count("NoNewPrivs:\t1") == 0)
way("mount a file system", lambda: check(libc.mount(b"none", home.encode(), b"tmpfs", 0, None)))
way("a root of its own", lambda: os.chroot("/"))
way("the machine's memory", read("/dev/mem"))
way("the machine's disks", read(next((os.path.join("/dev", d) for d in os.listdir("/dev") if d.startswith(("sda", "vda", "nvme0n1", "xvda"))), "/dev/none")))
way("the kernel's settings", lambda: open("/proc/sys/kernel/core_pattern", "w"))
way("load a module", lambda: check(libc.syscall(175, b"", 0, b"")))
way("see every packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
way("leave its control group", lambda: open("/sys/fs/cgroup/cgroup.procs", "w").write(str(os.getpid())))
way("set the clock", lambda: check(libc.settimeofday(struct.pack("ll", 1, 1), None)))
way("make a device", lambda: os.mknod(os.path.join(home, "disk"), 0o600 | 0o020000, os.makedev(1, 1)))
open(os.path.join(artifacts, "own.txt"), "w").write("own")
way("give a file to root", lambda: os.chown(os.path.join(artifacts, "own.txt"), 0, 0))
# The server: what is not 401 has led somewhere
way("ask the server without its token", lambda: b" 401 " not in ask("") and None)
way("ask it with a guessed one", lambda: b" 401 " not in ask("Authorization: Bearer 0000000000000000\r\n") and None)
# What the server would read for it
for name, target in (("token", os.path.join(folder, "token")), ("journal", os.path.join(folder, "stoker.db")), ("log", log)):
    os.symlink(target, os.path.join(artifacts, "link-" + name))
print("RESULT " + json.dumps({"ways": len(ways), "through": through, "uid": os.getuid()}))
'''
VICTIM = r'''
import os, time
os.umask(0o077)
open("/dev/shm/stoker-private", "w").write("private")
open(os.path.join(os.environ["HOME"], "private.txt"), "w").write("private")
os.chdir(os.environ["HOME"])
print("PID", os.getpid(), os.environ["HOME"], flush=True)
time.sleep(600)
'''


HONEST = r'''
import json, os, sys
open(os.environ["STOKER_METRICS_FILE"], "a").write('{"step": 1, "loss": 0.5}\n')
open(os.path.join(os.environ["STOKER_ARTIFACT_DIR"], "model.txt"), "w").write("weights")
open("/dev/stdout", "w").write("by its name\n")
open(os.environ["STOKER_HOSTFILE"]).read()
open(os.path.join(os.environ["HOME"], ".cache"), "w").write("x")
was = os.environ.get("STOKER_RESUME_FROM")
print("resumed from", was and open(os.path.join(was, "model.pt")).read())
folder = os.path.join(os.environ["STOKER_CHECKPOINT_DIR"], "step-000001")
if not was:
    os.makedirs(folder + ".tmp")
    open(os.path.join(folder + ".tmp", "model.pt"), "w").write("half")
    json.dump({"step": 1, "files": [{"name": "model.pt", "size": 4}]}, open(os.path.join(folder + ".tmp", "manifest.json"), "w"))
    os.rename(folder + ".tmp", folder)
    sys.exit(3)
'''


def set_up(t, *words):
    if os.geteuid() != 0:
        raise Skipped("only root can start work as somebody else")
    os.chmod(t.base, 0o711)
    os.chmod(t.work, 0o755)
    t.environment["SERVER_CANARY"] = t.environment["AWS_SECRET_ACCESS_KEY"] = CANARY
    for name, text in (("hostile.py", HOSTILE), ("honest.py", HONEST)):
        os.chmod(t.write(name, text), 0o644)
    return t.up("--listen", "127.0.0.1:0", *words)


def result_of(t, run):
    log = t.call("logs", run).stdout
    line = next((each for each in log.splitlines() if each.startswith("RESULT ")), None)
    check(line, f"no result in the log:\n{log}")
    return json.loads(line.removeprefix("RESULT "))


def hostile(t, server, other, *words):
    # The name of its log folder is known to who has read the documentation.
    run = t.call("submit", "-n", "hostile", "-e", "HF_TOKEN=hf_secretOfTheRun", "--", "sh", "-c",
                 'STOKER_ATTEMPT_DIR=a-${STOKER_RUN#r-}.1 exec python3 hostile.py "$@"', "x", t.folder, str(server.pid), other, *words).stdout.split()[0]
    t.wait_state(run, "succeeded", "failed")
    return run, result_of(t, run)


def test_a_hostile_run_gets_at_nothing_of_the_server_and_of_another_project(t):
    server = set_up(t, "--runs-as", "project")
    t.call("project", "make", "genomics")
    key = t.call("user", "make", "ben", "--role", "developer", "--project", "genomics", exit=None)
    first = t.call("submit", "-n", "first", "-e", "API_TOKEN=" + CANARY, "--", "echo", "private").stdout.split()[0]
    t.wait_state(first, "succeeded")
    log = os.path.join(t.folder, "runs", first, f"a-{first[2:]}.1", "rank-0.out")
    check(os.path.exists(log), log)
    # As another project's: the folder is given to a user that is not this project's.
    for path in (os.path.join(t.folder, "runs", first), os.path.dirname(log)):
        os.chown(path, 0, 1879048192 + 77)
    run, result = hostile(t, server, log)
    check(result["through"] == [] and result["leaks"] == [], result)
    check(result["uid"] == 1879048192 + 1 and result["groups"] == [], result)
    check(server.poll() is None, "the server has ended")
    check("cannot read the server's token" in t.call("describe", run).stdout, "describe does not say as whom it runs")
    check(key is not None, "")


def test_twenty_ways_out_of_a_project_lead_nowhere(t):
    """Two projects on one machine: the processes, files and memory of the other, the machine itself, and the server, also by what
    the server would read for it."""
    set_up(t, "--runs-as", "project")
    for name, text in (("ways.py", WAYS), ("victim.py", VICTIM)):
        os.chmod(t.write(name, text), 0o644)
    admin = Caller(t)
    project = admin.json("POST", "/api/v1/projects", {"name": "genomics", "organisation": "o-1"})["id"]
    key = admin.json("POST", "/api/v1/keys", {"name": "ben", "role": "developer", "project": project})
    job = {"name": "victim", "command": ["python3", "victim.py"], "folder": t.work, "per_rank": {"cpu_milli": 500}}
    victim = Caller(t, key["secret"]).json("POST", "/api/v1/runs", job)["run"]
    told = wait_for("the other project's work", lambda: next(
        (line for line in t.call("logs", victim, exit=None).stdout.splitlines() if line.startswith("PID ")), None))
    pid, home = told.split()[1:]
    log = os.path.join(t.folder, "runs", victim, f"a-{victim[2:]}.1", "rank-0.out")
    check(os.path.exists(log) and os.stat(f"/proc/{pid}").st_uid not in (0, 1879048192 + 1), told)
    try:
        port = admin.connection.port
        run = t.call("submit", "-n", "ways", "--", "python3", "ways.py", t.folder, str(port), pid, home, log).stdout.split()[0]
        t.wait_state(run, "succeeded", "failed")
        result = result_of(t, run)
        check(result["through"] == [] and result["ways"] >= 20, result)
        print(f"    {result['ways']} ways, none leads out")
        secret = open(os.path.join(t.folder, "token")).read().strip()
        listed = admin.ask("GET", f"/api/v1/runs/{run}/artifacts")[1]
        check("own.txt" in listed, listed)
        for name in ("link-token", "link-journal", "link-log"):
            status, text = admin.ask("GET", f"/api/v1/runs/{run}/artifacts/{name}")
            check(status != 200 and secret not in text and "PID" not in text, f"{name}: {status} {text[:200]}")
    finally:
        if os.path.exists("/dev/shm/stoker-private"):
            os.remove("/dev/shm/stoker-private")


ALONE = r'''
import os, socket, sys, time
rank, port = int(os.environ["RANK"]), int(sys.argv[1])
def reaches(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
        return True
    except OSError:
        return False
if rank == 0:
    with socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as server:
        one, _ = server.accept()
        print("RESULT", "met", one.recv(5).decode(), "server" if reaches("127.0.0.1", port) else "alone",
              sorted(name for _, name in socket.if_nameindex()), flush=True)
else:
    for _ in range(600):
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as one:
                one.sendall(b"hello")
            break
        except OSError:
            time.sleep(0.1)
'''


def test_a_secret_can_be_a_file_that_only_the_work_reads(t):
    """secret://env/NAME#file: the variable names a file with the value, of the work's own user, gone with it; nothing else has it."""
    set_up(t, "--runs-as", "project")
    run = t.call("submit", "-e", "CERT=secret://env/SERVER_CANARY#file", "--", "sh", "-c",
                 'echo length $(wc -c < "$CERT") mode $(stat -c %a-%u "$CERT") path $CERT list ${STOKER_SECRET_FILES:-none}; sleep 600').stdout.split()[0]
    log = wait_for("its words", lambda: (lambda text: text if "path" in text else None)(t.call("logs", run, exit=None).stdout))
    check(f"length {len(CANARY)} mode 400-{1879048192 + 1} path " in log and "list none" in log, log)
    path = log.split("path ")[1].split()[0]
    check(open(path).read() == CANARY, "as root it is there")
    for words in (["describe", run, "-o", "json"], ["journal", "show"], ["journal", "export"]):
        check(CANARY not in t.call(*words).stdout, words)
    t.call("cancel", run)
    t.wait_state(run, "cancelled")
    wait_for("the file goes with the work", lambda: not os.path.exists(path))
    refused = t.call("submit", "-e", "X=secret://nonsense/Y#file", "--", "true", exit=2).stderr
    check("a reference" in refused and "means nothing" in refused, refused)


def test_work_without_a_network_meets_only_itself(t):
    """engine: {isolate_network: true}: ranks of a run meet on a loopback of their own; the server's port is not there."""
    for isolated, expected in ((True, "met hello alone ['lo']"), (False, "met hello server")):
        folder = os.path.join(t.base, "state-" + str(isolated))
        t.environment["STOKER_FOLDER"] = t.folder = folder
        config = t.write("server.yaml", "engine: {kind: local, isolate_network: %s}\n" % str(isolated).lower())
        server = set_up(t, "--config", config)
        os.chmod(t.write("alone.py", ALONE), 0o644)
        port = Caller(t).connection.port
        run = t.call("submit", "--ranks", "2", "--cpus", "0.5", "--", "python3", "alone.py", str(port)).stdout.split()[0]
        t.wait_state(run, "succeeded", "failed")
        log = t.call("logs", run).stdout
        check("RESULT " + expected in log, log)
        detail = t.call("config", "show").stdout
        check(("without a network" in detail) == isolated, detail)
        server.terminate()
        server.wait()
    refused = t.call("config", "check", t.write("bad.yaml", "engine: {kind: slurm, isolate_network: true}\n"), exit=2).stderr
    check("isolate_network: only this machine" in refused and "bad.yaml:1:" in refused, refused)


def test_honest_work_has_what_it_needs(t):
    set_up(t, "--runs-as", "project")
    job = t.write("job.yaml", "version: 1\nname: honest\nrun:\n  command: python3 honest.py\n  checkpoint: {every: 10min}\n")
    run = t.call("submit", job).stdout.split()[0]
    t.wait_state(run, "failed")
    log = t.call("logs", run).stdout
    check("by its name" in log and "resumed from None" in log, log)
    again = t.call("resume", run).stdout.split()[0]
    t.wait_state(again, "succeeded")
    check("resumed from half" in t.call("logs", again).stdout, t.call("logs", again).stdout)
    view = t.describe(again)
    check(view["metrics"].get("loss") == 0.5 and view["runs_as"].startswith("project"), view)
    graph = t.write("graph.yaml", "version: 1\nname: graph\nrun:\n  steps:\n"
                    "  - {name: a, command: 'echo one > $STOKER_GRAPH_DIR/x'}\n"
                    "  - {name: b, after: [a], command: 'cat $STOKER_GRAPH_DIR/x'}\n")
    whole = t.call("submit", graph).stdout.split()[0]
    t.wait_state(whole, "succeeded")


def test_without_it_a_run_is_said_to_be_able_to_read_the_servers_files(t):
    server = set_up(t)
    run = t.call("submit", "--", "true").stdout.split()[0]
    t.wait_state(run, "succeeded")
    check("can read the server's token" in t.call("describe", run).stdout, t.call("describe", run).stdout)
    # The hostile program is one: what holds above is not for want of trying.
    run, result = hostile(t, server, os.path.join(t.folder, "token"), "leaves its log where it is")
    check("read token" in result["through"] and len(result["through"]) > 15, result)


def test_a_secret_is_never_read_from_the_servers_folder(t):
    set_up(t, "--runs-as", "project")
    link = os.path.join(t.work, "link")
    os.symlink(os.path.join(t.folder, "token"), link)
    for path in (os.path.join(t.folder, "token"), link):
        run = t.call("submit", "-e", f"X=secret://file/{path}", "--", "sh", "-c", "echo $X").stdout.split()[0]
        view = t.wait_state(run, "failed", "succeeded")
        check(view["run"]["state"] == "failed" and "own folder" in json.dumps(view), view)


def test_what_cannot_be_kept_is_refused_at_the_start(t):
    if os.geteuid() != 0:
        raise Skipped("only root can start work as somebody else")
    for who, folder, words in (("nobody-there", t.folder, "there is no user"), ("root", t.folder, "that is root itself"),
                               ("project", os.path.join(t.base, "closed", "state"), "nobody but its owner can pass")):
        os.chmod(t.base, 0o711)
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        done = t.call("up", "--folder", folder, "--listen", "127.0.0.1:0", "--runs-as", who, exit=None)
        check(done.returncode in (2, 3) and words in done.stderr, done)


def test_files_of_the_server_are_for_its_user_only(t):
    prices = t.write("prices.yaml", "currency: USD\nsource: a test\nprices:\n  - {resource: cpu, usd_per_hour: 0.05, valid_from: 2026-01-01}\n")
    t.up("--listen", "127.0.0.1:0", "--prices", prices, "--log-file", os.path.join(t.base, "server.log"))
    run = t.call("submit", "-e", "HF_TOKEN=" + CANARY, "--", "true").stdout.split()[0]
    t.wait_state(run, "succeeded")
    t.call("journal", "backup", "--to", "file://" + os.path.join(t.base, "kept"))
    wrong = []
    for base, folders, files in os.walk(t.folder):
        inside = os.path.relpath(base, t.folder).split(os.sep)
        if inside[0] == "runs" and len(inside) > 1:
            continue  # behind a folder of 0700
        for name in folders + files:
            mode = os.lstat(os.path.join(base, name)).st_mode
            if stat.S_IMODE(mode) & 0o077 and base == t.folder:
                wrong.append((os.path.join(base, name), oct(mode)))
    log = stat.S_IMODE(os.stat(os.path.join(t.base, "server.log")).st_mode)
    check(log & 0o077 == 0, f"the log of the server: {oct(log)}")
    copies = [base for base, _, files in os.walk(os.path.join(t.base, "kept")) if files]
    wrong += [base for base in copies if stat.S_IMODE(os.stat(base).st_mode) != 0o700]
    check(copies, "there is no backup")
    check(not wrong and stat.S_IMODE(os.stat(t.folder).st_mode) == 0o700, wrong)


def test_a_canary_is_in_no_output(t):
    """Values of secrets in whatever is printed, answered or written but for where they are kept, also by a crash."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))  # as where cores are wanted
    server = t.up("--listen", "127.0.0.1:0", "--log-level", "debug", "--log-file", os.path.join(t.base, "server.log"))
    hook = "https://hooks.example.invalid/services/" + CANARY
    graph = t.write("job.yaml", "version: 1\nname: graph\nrun:\n  steps:\n"
                    "  - {name: a, command: 'true', environment: {WANDB_API_KEY: %s}}\n"
                    "  - {name: b, after: [a], command: 'false'}\n" % CANARY)
    t.environment["DB_PASSWORD"] = CANARY
    runs = [t.call("submit", "-n", "one", "-e", "HF_TOKEN=" + CANARY, "-e", "DB_PASSWORD", "--notify", hook, "--", "true").stdout.split()[0],
            t.call("submit", graph).stdout.split()[0]]
    for run in runs:
        t.wait_state(run, "succeeded", "failed")
    del t.environment["DB_PASSWORD"]
    said = []
    for words in (["ps"], ["describe", runs[0]], ["describe", runs[0], "-o", "json"], ["describe", runs[1], "-o", "yaml"], ["history", "one", "--diff"],
                  ["history", "one", "-o", "json"], ["logs", runs[0]], ["explain", runs[0]], ["usage", "--by", "run", "-o", "json"], ["top", "-o", "json"],
                  ["nodes", "-o", "json"], ["config", "show"], ["audit"], ["audit", "-o", "json"], ["metrics"], ["journal", "show"],
                  ["journal", "export"], ["journal", "verify"], ["submit", "--again", runs[0], "--dry-run"], ["cancel", runs[0]]):
        done = t.call(*words, exit=None)
        said.append((" ".join(words), done.stdout + done.stderr))
    server.send_signal(signal.SIGABRT)
    server.wait()
    check(not [name for name in os.listdir(t.work) if name.startswith("core")], "the crash left a core file")
    said.append(("what the server said", open(server.err_path).read() + open(server.out_path).read() + open(os.path.join(t.base, "server.log")).read()))
    for words in (["journal", "show"], ["journal", "export"], ["ps", "-o", "json"], ["describe", runs[0], "-o", "json"]):
        done = t.call(*words, exit=None)
        said.append(("without a server: " + " ".join(words), done.stdout + done.stderr))
    for base, _, files in os.walk(t.folder):
        if os.path.relpath(base, t.folder).split(os.sep)[0] in ("secrets",):
            continue
        for name in files:
            if stat.S_ISREG(os.lstat(os.path.join(base, name)).st_mode):
                said.append((os.path.join(base, name), open(os.path.join(base, name), "rb").read().decode("latin-1")))
    found = [name for name, text in said if CANARY in text]
    check(not found, found)
    check(len(said) > 25 and any(CANARY in open(os.path.join(t.folder, "secrets", name)).read() for name in os.listdir(os.path.join(t.folder, "secrets"))),
          "the canary was kept nowhere: the test has looked at nothing")


if __name__ == "__main__":
    main(globals())
