"""The commands that run work, as a person types them: the shipped binary, real processes, real sockets."""

import hashlib
import http.server
import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import Failure, check, main, wait_for

WAIT_FOR_FILE = "import os,sys,time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\nprint('seen', flush=True)\n"


def test_a_program_runs_without_a_server_and_leaves_nothing(t):
    """Somebody who has just installed it types one line."""
    done = t.call("run", "--", "sh", "-c", "echo hello; echo rank $RANK of $WORLD_SIZE")
    check(done.stdout == "hello\nrank 0 of 1\n", done.stdout)
    check("succeeded" in done.stderr, done.stderr)
    check(not os.path.exists(os.path.join(t.folder, "server.json")), "the address of a server that is gone")
    wait_for("no process is left", lambda: not t.processes())


def test_the_exit_code_says_whether_it_worked(t):
    done = t.call("run", "--", "sh", "-c", "echo no >&2; exit 3", exit=1)
    check("no" in done.stdout and "left with 3" in done.stderr, done.stdout + done.stderr)
    done = t.call("run", "--", "nosuchprogram-x", exit=1)
    check("nosuchprogram-x" in done.stderr, done.stderr)


def test_a_gang_starts_whole(t):
    done = t.call("run", "--ranks", "3", "--cpus", "0.1", "--all-ranks", "--", "sh", "-c",
                  "echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT")
    lines = sorted(line for line in done.stdout.splitlines() if "/3 " in line)
    check(len(lines) == 3 and len({line.rsplit(":")[-1] for line in lines}) == 1, done.stdout)


def test_submit_ps_logs_describe_cancel(t):
    """The day of somebody with a server."""
    t.up()
    run = t.call("submit", "--name", "first", "--", "sh", "-c", "echo one; sleep 1000").stdout.strip()
    t.wait_state(run, "running")
    listed = t.json("ps")
    check([(each["id"], each["state"]) for each in listed] == [(run, "running")], str(listed))
    check("first" in t.call("ps").stdout, "ps")
    wait_for("the log", lambda: t.call("logs", run).stdout == "one\n")
    check("running" in t.call("describe", run).stdout, "describe")
    t.call("cancel", run, "--wait")
    view = t.describe(run)
    check((view["run"]["state"], view["run"]["cause"]) == ("cancelled", "cancelled"), str(view["run"]))
    again = t.json("cancel", run)
    check(again[0]["repeated"], "cancelled twice")
    usage = t.json("usage", "--by", "run")
    check(usage["items"][0]["key"] == run and usage["items"][0]["cpu_hours"] > 0, str(usage))


def test_time_without_a_server_is_not_charged(t):
    """The server dies; the work ends a second later, and nobody reads of it until the next server comes."""
    prices = t.write("prices.yaml", "currency: USD\nsource: test\nprices:\n  - {resource: cpu, usd_per_hour: 3600, valid_from: 2020-01-01}\n")
    server = t.up("--prices", prices)
    begins, ends = os.path.join(t.work, "begin"), os.path.join(t.work, "end")
    run = t.call("submit", "--name", "short", "--cpus", "1", "--", "sh", "-c",
                 f"date +%s.%N > {begins}; sleep 1; date +%s.%N > {ends}").stdout.strip()
    t.wait_state(run, "running")
    server.kill()
    server.wait()
    wait_for("the work ends", lambda: os.path.exists(ends) and open(ends).read().strip())
    away_s = 6
    time.sleep(away_s)
    t.up("--prices", prices)
    view = t.wait_state(run, "succeeded")
    took_s = float(open(ends).read()) - float(open(begins).read())
    # Its start and its end take a moment, on a machine that does other things too; the server was away for longer.
    check(took_s <= view["run"]["used_s"] < took_s + away_s / 2, f"used {view['run']['used_s']} s, took {took_s} s")
    attempt = view["attempts"][0]
    check(attempt["ended_at"] >= attempt["ranks"][0]["ended_at"], str(attempt))
    line = t.json("usage", "--by", "run")["items"][0]
    check(abs(line["cpu_hours"] * 3600 - view["run"]["used_s"]) < 0.01, str(line))
    check(abs(line["cost_microusd"] / 1e6 - view["run"]["used_s"]) < 0.01, str(line))


def files_with(folder, text):
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            try:
                if text.encode() in open(os.path.join(at, name), "rb").read():
                    found.append(os.path.relpath(os.path.join(at, name), folder))
            except OSError:
                pass
    return found


def test_a_secret_is_seen_by_the_work_only(t):
    """Three ways to hand one over; afterwards it is in no file, answer or message but the store of secrets."""
    canary = "hf_CANARY" + os.urandom(8).hex()
    secret_file = t.write("secret", canary + "-file\n")
    t.environment["FOR_SERVER"] = canary + "-server"
    t.up("--log-level", "debug")
    go = os.path.join(t.work, "go")
    script = ("import hashlib,os,sys,time\n"
              "for n in ('HF_TOKEN','GIVEN','S','F'): print(n, hashlib.sha256(os.environ[n].encode()).hexdigest(), flush=True)\n"
              "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n")
    run = t.call("submit", "--name", "hidden", "-e", f"HF_TOKEN={canary}", "-e", "GIVEN", "-e", "S=secret://env/FOR_SERVER",
                 "-e", f"F=secret://file/{secret_file}", "--", "python3", "-c", script, go,
                 env={"GIVEN": canary + "-given"}).stdout.strip()
    wait_for("the work has looked", lambda: len(t.call("logs", run).stdout.splitlines()) == 4)
    shown = dict(line.split() for line in t.call("logs", run).stdout.splitlines())
    for name, value in (("HF_TOKEN", canary), ("GIVEN", canary + "-given"), ("S", canary + "-server"), ("F", canary + "-file")):
        check(shown[name] == hashlib.sha256(value.encode()).hexdigest(), f"{name} is not what was handed over")
    open(go, "w").close()
    t.wait_state(run, "succeeded")
    bad = t.call("submit", "-e", f"X=secret://nowhere/{canary}", "--", "true", exit=None)
    check(bad.returncode == 2 and canary not in bad.stderr, bad.stderr)
    none = t.call("submit", "-e", "X=secret://env/NO_SUCH_VARIABLE_HERE", "--", "true").stdout.strip()
    view = t.wait_state(none, "failed")
    check("NO_SUCH_VARIABLE_HERE" in view["run"]["detail"], str(view["run"]))
    for words in (("describe", run), ("describe", "-o", "json", run), ("ps", "--all", "-o", "json"), ("explain", run),
                  ("journal", "show", "--limit", "1000", "-o", "json"), ("logs", run)):
        done = t.call(*words, exit=None)
        check(canary not in done.stdout + done.stderr, f"{words}: {done.stdout}")
    check("secret://stored/" in t.call("describe", "-o", "json", run).stdout, "a reference stands for it")
    t.call("journal", "backup", os.path.join(t.work, "copy.db"))
    wait_for("the launch folder is gone", lambda: not os.listdir(os.path.join(t.folder, "run")))
    left = [path for path in files_with(t.folder, canary) if not path.startswith("secrets/")]
    check(not left, f"the secret is in {left}")
    check(canary.encode() not in open(os.path.join(t.work, "copy.db"), "rb").read(), "the backup has it")
    check(not any(canary in open(p.err_path).read() + open(p.out_path).read() for p in t.servers), "the server printed it")
    wide = [path for path in [t.folder] + [os.path.join(t.folder, name) for name in os.listdir(t.folder)]
            if os.stat(path).st_mode & 0o077 and (os.path.isdir(path) or "stoker.db" in path)]
    check(wide == [], f"others may look into {wide}")


def test_a_follower_outlives_the_server(t):
    """An upgrade restarts the server, on another port: who watches a log sees each line once."""
    server = t.up()
    script = "import time\nfor i in range(40): print('line', i, flush=True); time.sleep(0.1)\n"
    submit = t.start("submit", "--name", "talker", "--follow", "--", "python3", "-c", script)
    wait_for("it runs", lambda: any(run["state"] == "running" for run in t.json("ps")))
    logs = t.start("logs", "-f", "talker")
    time.sleep(0.7)
    server.kill()
    server.wait()
    time.sleep(0.5)
    t.up("--listen", "127.0.0.1:0")
    for process in (logs, submit):
        check(process.wait(timeout=60) == 0, f"exit {process.returncode}: {open(process.err_path).read()}")
        check(open(process.out_path).read() == "".join(f"line {i}\n" for i in range(40)), open(process.out_path).read())


def test_names_and_choices_stand_for_runs(t):
    t.up()
    runs = [t.call("submit", "--name", name, "--cpus", "0.1", "--", "sleep", "1000").stdout.strip()
            for name in ("nightly", "nightly", "other")]
    t.wait_state(runs[2], "running")
    check(t.json("describe", "nightly")["run"]["id"] == runs[1], "the newest of the name")
    check("no run has that name" in t.call("describe", "weekly", exit=2).stderr, "an unknown name")
    check("both given" in t.call("cancel", "r-1", "--all", exit=2).stderr, "both")
    check("which runs" in t.call("cancel", exit=2).stderr, "none")
    t.call("cancel", "--name", "nightly", "--wait")
    check([t.describe(run)["run"]["state"] for run in runs] == ["cancelled", "cancelled", "running"], "by name")
    t.call("cancel", "--state", "running", "--wait")
    check(t.describe(runs[2])["run"]["state"] == "cancelled", "by state")
    check("no run that has not ended" in t.call("cancel", "--all").stdout, "none left")
    # So many that several connections tell them: each is told once, in order.
    server, token = json.load(open(os.path.join(t.folder, "server.json")))["url"], open(os.path.join(t.folder, "token")).read().strip()
    many = []
    for _ in range(130):
        body = json.dumps({"name": "many", "command": ["true"], "per_rank": {"cpu_milli": 9_000_000}}).encode()
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(server + "/api/v1/runs", body, headers), timeout=60) as answer:
            many.append(json.load(answer)["run"])
    said = t.call("cancel", *many, "r-999999", exit=None)
    check(said.returncode != 0 and "r-999999" in said.stderr, said.stderr)
    said = t.call("cancel", *many).stdout.splitlines()
    check([line.split()[0] for line in said] == many and all("cancelled" in line for line in said), str(said[:5]))
    check(t.json("ps", "--name", "many", "--state", "queued") == [], "one still waits")


def test_what_can_never_start_is_said_at_once(t):
    begin = time.monotonic()
    done = t.call("run", "--gpus", "8", "--gpu", "h100", "--", "true", exit=1)
    check("cannot start here" in done.stderr and "queued" not in done.stderr, done.stderr)
    done = t.call("run", "--cpus", "4096", "--", "true", exit=1)
    check("would start it" in done.stderr, done.stderr)
    check(time.monotonic() - begin < 20, "at once")
    check([run["state"] for run in t.json("ps", "--all")] == ["cancelled", "cancelled"], "cancelled")
    waits = t.start("run", "--wait-for-nodes", "--gpus", "8", "--", "true")
    wait_for("it waits", lambda: "queued" in open(waits.err_path).read())
    check(waits.poll() is None, "still waits")


def test_a_countdown_is_one_line(t):
    done = t.call("run", "--", "sh", "-c", "test -e again || { touch again; kill -9 $$; }")
    said = [line for line in done.stderr.splitlines() if "requeued" in line or "tried again" in line]
    check(len(said) <= 2, done.stderr)


def test_a_rank_that_somebody_killed_is_tried_again(t):
    t.up()
    marks = os.path.join(t.work, "marks")
    run = t.call("submit", "--", "sh", "-c", f"echo $$ >> {marks}; test $(wc -l < {marks}) -gt 1 || sleep 1000").stdout.strip()
    t.wait_state(run, "running")
    wait_for("it has begun", lambda: os.path.exists(marks) and open(marks).read().strip())
    os.kill(int(open(marks).read().split()[0]), signal.SIGKILL)
    view = t.wait_state(run, "requeued", "succeeded")
    check(view["attempts"][0]["cause"] == "platform" and view["attempts"][0]["ranks"][0]["signal"] == 9,
          str(view["attempts"]))
    t.wait_state(run, "succeeded")


def test_a_journal_that_lost_its_tail_is_refused(t):
    """The log beside the database is gone: what ran is not known, and its numbers and folders are not given again."""
    server = t.up()
    t.wait_state(t.call("submit", "--", "true").stdout.strip(), "succeeded")
    lost = t.call("submit", "--", "sh", "-c", "echo old; sleep 1000").stdout.strip()
    t.wait_state(lost, "running")
    server.kill()
    server.wait()
    t.call("journal", "backup", os.path.join(t.work, "good.db"))
    os.remove(os.path.join(t.folder, "stoker.db-wal"))
    for words in (("up",), ("journal", "verify"), ("run", "--", "true"), ("ps",)):
        done = t.call(*words, exit=2)
        said = " ".join(done.stderr.split())
        check("--accept-loss" in said and "records are gone" in said, f"{words}: {done.stderr}")
    second = t.up("--accept-loss")
    check("r-3" in open(second.err_path).read(), open(second.err_path).read())
    run = t.call("submit", "--", "echo", "new").stdout.strip()
    check(run == "r-3", run)
    t.wait_state(run, "succeeded")
    check(t.call("logs", run).stdout == "new\n", "a folder of its own")
    check(open(os.path.join(t.folder, "runs", lost, "a-2.1", "rank-0.out")).read() == "old\n", "the old folder is as it was")
    second.terminate()
    second.wait()
    t.up()
    t.call("journal", "verify")


def test_another_server_on_the_port_of_one_that_was_killed_is_not_taken_for_it(t):
    """Ports are given again: what answers there knows nothing of this folder, and its refusal is not ours."""
    server = t.up()
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    server.kill()
    server.wait()
    other = os.path.join(t.work, "other")
    second = subprocess.Popen([t.binary, "up", "--folder", other, "--listen", url.split("//")[1]], env=t.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the other server", lambda: os.path.exists(os.path.join(other, "server.json")))
        check("no server" in t.call("ps").stdout, "the journal is read instead")
        check(t.call("run", "--", "true").stderr.count("token") == 0, "and a run has a server of its own")
    finally:
        second.terminate()
        second.wait()


def test_a_killed_server_loses_nothing(t):
    """The machine's memory runs out and the kernel picks the server: the run goes on, and so does everything known."""
    server = t.up()
    go = os.path.join(t.work, "go")
    run = t.call("submit", "--", "python3", "-c", WAIT_FOR_FILE, go).stdout.strip()
    queued = t.call("submit", "--name", "later", "--cpus", "100000", "--", "true").stdout.strip()
    t.wait_state(run, "running")
    server.kill()
    server.wait()
    check("no server" in t.call("ps").stdout, "ps without a server says so")
    check({each["id"] for each in t.json("ps")} == {run, queued}, "the journal still tells")
    done = t.call("submit", "--", "true", exit=3)
    check("stoker up" in done.stderr, done.stderr)
    t.up()
    view = t.wait_state(run, "running")
    check(view["run"]["attempts"] == 1, "adopted, not started again")
    open(go, "w").close()
    view = t.wait_state(run, "succeeded")
    check(t.call("logs", run).stdout == "seen\n", "its log is whole")
    why = t.describe(queued)["why"]
    check(why["code"] == "capacity_none", str(why))


def test_a_run_outlives_its_server_and_is_carried_on_by_its_client(t):
    """`stoker run` watches through a server that is killed: it becomes the server."""
    server = t.up()
    go = os.path.join(t.work, "go")
    client = t.start("run", "--", "python3", "-c", WAIT_FOR_FILE, go)
    wait_for("the run", lambda: [each for each in t.json("ps") if each["state"] == "running"])
    server.kill()
    server.wait()
    address = os.path.join(t.folder, "server.json")
    wait_for("the client is the server", lambda: os.path.exists(address) and json.load(open(address))["pid"] == client.pid)
    open(go, "w").close()
    check(client.wait(60) == 0, open(client.err_path).read())
    check(open(client.out_path).read() == "seen\n", open(client.out_path).read())


def test_one_server_per_folder(t):
    server = t.up()
    done = t.call("up", exit=2)
    check(str(server.pid) in done.stderr, done.stderr)


def test_ctrl_c_stops_the_run(t):
    program = ("import signal, sys, time\ndef end(*_):\n    print('bye', flush=True)\n    sys.exit(143)\n"
               "signal.signal(signal.SIGTERM, end)\nprint('there', flush=True)\ntime.sleep(1000)\n")
    client = t.start("run", "--", "python3", "-c", program)
    wait_for("its output", lambda: "there" in open(client.out_path).read())
    client.send_signal(signal.SIGINT)
    check(client.wait(60) == 1, "exit code")
    check(open(client.out_path).read() == "there\nbye\n", open(client.out_path).read())
    check("cancelled" in open(client.err_path).read(), open(client.err_path).read())
    wait_for("no process is left", lambda: not t.processes())


def test_a_killed_terminal_kills_no_run(t):
    go = os.path.join(t.work, "go")
    client = t.start("run", "--", "python3", "-c", WAIT_FOR_FILE, go)
    wait_for("the run", lambda: [each for each in t.json("ps") if each["state"] == "running"])
    client.kill()
    client.wait()
    open(go, "w").close()
    t.up()
    t.wait_state("r-1", "succeeded")
    check(t.call("logs", "r-1").stdout == "seen\n", "the log")


def test_a_lease_ends_the_run(t):
    done = t.call("run", "--lease", "1s", "--stop-when-done", "--", "sleep", "1000", exit=1, limit_s=90)
    check("lease" in done.stderr, done.stderr)
    t.call("run", "--lease", "1h", "--stop-when-done", "--", "true")


def test_a_graph_runs_in_order_and_is_resumed_from_the_failed_step(t):
    t.write("graph.yaml", """version: 1
name: pipeline
run:
  steps:
    - {name: prepare, command: echo prepared >> order.txt}
    - {name: train, after: [prepare], command: 'echo trained >> order.txt; test -e mended'}
    - {name: report, after: [train], command: echo reported >> order.txt}
""")
    t.up()
    done = t.call("run", "graph.yaml", exit=1)
    view = t.describe("r-1")
    states = {step["step"]: step["state"] for step in view["steps"]}
    check(states == {"prepare": "succeeded", "train": "failed", "report": "cancelled"}, str(states) + done.stderr)
    t.write("mended", "")
    t.call("run", "--resume", "r-1")
    check(open(os.path.join(t.work, "order.txt")).read() == "prepared\ntrained\ntrained\nreported\n",
          "what was done is not done again")


def test_a_sweep_is_one_run_for_each_point(t):
    t.up()
    run = t.call("submit", "--sweep", "lr=1e-4,3e-4", "--sweep", "batch=8,16", "--", "sh", "-c",
                 "echo $STOKER_PARAM_LR ${batch}").stdout.strip()
    view = t.wait_state(run, "succeeded")
    check(len(view["steps"]) == 4, str(view["steps"]))
    said = {t.call("logs", step["run"]).stdout.strip() for step in view["steps"]}
    check(said == {"1e-4 8", "1e-4 16", "3e-4 8", "3e-4 16"}, str(said))


def test_what_starts_when(t):
    """After another run, at a time, a few of many at once, and not while somebody holds it."""
    t.up()
    t.call("submit", "--name", "first", "--", "sh", "-c", "while ! test -e go; do sleep 0.1; done; exit 1")
    t.call("submit", "--name", "mend", "--after", "first:failed", "--", "true")
    t.call("submit", "--name", "next", "--after", "first", "--", "true")
    t.call("submit", "--name", "kept", "--", "true", "--after")  # an argument of the program
    t.call("submit", "--name", "late", "--begin", "1h", "--", "true")
    why = t.json("describe", "late")["why"]
    check(why["code"] == "begin_later" and "it begins at " in why["text"], str(why))
    check("starts only if r-1 fails" in t.json("describe", "mend")["why"]["text"], "the condition is told")
    t.call("hold", "mend")
    t.write("go", "")
    check(t.wait_state("r-3", "cancelled")["run"]["cause"] == "dependency", "its need failed")
    check(t.json("describe", "mend")["why"]["code"] == "held", "held")
    t.call("release", "--name", "mend")
    t.wait_state("r-2", "succeeded")
    run = t.call("submit", "--sweep", "i=1,2,3,4", "--parallel", "1", "--", "sh", "-c",
                 "test ! -e busy && touch busy && sleep 0.2 && rm busy").stdout.strip()
    t.wait_state(run, "succeeded")
    t.call("hold", "late")
    t.call("cancel", "late", "--wait")
    row = next(line for line in t.call("ps", "--all").stdout.splitlines() if " late " in line)
    check(row.rstrip().endswith("cancelled") and "held" not in row, row)
    for words, said in ((("--after", "first:well"), "is no end"), (("--after", "r-99"), "there is no run r-99"),
                        (("--begin", "25:00"), "no time"), (("--parallel", "2"), "neither a sweep")):
        done = t.call("submit", *words, "--", "true", exit=None)
        check(done.returncode in (1, 2) and said in done.stderr, done.stderr)


def test_a_lease_is_moved_and_a_run_evicted(t):
    t.up()
    run = t.call("submit", "--lease", "1h", "--", "sh", "-c", "trap 'exit 0' USR1 TERM; while :; do sleep 0.1; done").stdout.strip()
    view = t.wait_state(run, "running")
    before = view["lease"]["stop_at"]
    said = t.call("lease", run, "--extend", "2h").stdout
    after = t.describe(run)["lease"]["stop_at"]
    check(after[:13] != before[:13] and after in said, said)
    check("by how long" in t.call("lease", run, exit=2).stderr, "neither --extend nor --until")
    check("--until 25:00: that is no time" in t.call("lease", run, "--until", "25:00", exit=2).stderr, "as --begin reads it")
    t.call("evict", run, "--notice", "2s")
    wait_for("its second attempt", lambda: len(t.describe(run)["attempts"]) == 2, 30)
    check(t.describe(run)["attempts"][0]["cause"] == "preempted", str(t.describe(run)["attempts"][0]))
    t.call("cancel", run, "--wait")
    check("which runs are to wait?" in t.call("hold", exit=2).stderr, "none is named")


def test_the_points_of_a_sweep_are_compared(t):
    """Which learning rate was best?"""
    t.up()
    program = "import json,os\nlr=float(os.environ['STOKER_PARAM_LR'])\nwith open(os.environ['STOKER_METRICS_FILE'],'w') as f:\n" \
              "    f.write(json.dumps({'step': 1, 'loss': 9.0}) + chr(10) + json.dumps({'step': 2, 'loss': 3 - lr}) + chr(10))"
    run = t.call("submit", "--sweep", "lr=0.1,0.3,0.2", "--", "python3", "-c", program).stdout.strip()
    t.wait_state(run, "succeeded")
    text = t.call("compare", run, "--by", "loss").stdout
    lines = [line.split() for line in text.splitlines()]
    check([line[2] for line in lines[1:4]] == ["0.3", "0.2", "0.1"], text)
    check(f"best by loss: {lines[1][0]}" in text, text)
    check(t.json("compare", run, "--by", "loss:max")[0]["run"]["parameters"]["lr"] == "0.1", "highest first")
    done = t.call("compare", run, "--by", "los", exit=2)
    check("did you mean loss" in done.stderr, done.stderr)
    t.call("compare", "r-99", exit=2)


def test_a_cycle_is_refused_with_its_path(t):
    t.write("cycle.yaml", """version: 1
name: cycle
run:
  steps:
    - {name: a, after: [b], command: "true"}
    - {name: b, after: [a], command: "true"}
""")
    done = t.call("run", "cycle.yaml", exit=2)
    check("a after b after a" in done.stderr, done.stderr)
    check("cycle.yaml:" in done.stderr, done.stderr)


def test_prerequisites_are_checked_before_anything_is_held(t):
    t.write("needs.yaml", """version: 1
name: needs
run:
  command: echo started
  requires: {commands: [nosuchcommand-x], python_modules: [nosuchmodule_x], paths: [/no/such/data], disk: 900TiB}
""")
    done = t.call("run", "needs.yaml", exit=2)
    for word in ("nosuchcommand-x", "nosuchmodule_x", "/no/such/data", "free disk"):
        check(word in done.stderr, f"{word} is missing in\n{done.stderr}")
    check(t.json("ps", "--all") == [], "nothing was submitted")


def test_what_if_says_what_would_happen(t):
    t.up()
    answer = t.json("whatif", "--", "true")
    check(answer["starts_now"] and answer["places"], str(answer))
    answer = t.json("whatif", "--cpus", "100000", "--", "true", exit=1)
    check(not answer["starts_now"] and answer["why"]["code"] == "capacity_none", str(answer))
    check(t.json("ps", "--all") == [], "and did nothing")


def test_it_is_reached_from_elsewhere_with_tls_only(t):
    done = t.call("up", "--listen", "0.0.0.0:0", exit=3)
    check("--tls auto" in done.stderr, done.stderr)
    t.up("--listen", "127.0.0.1:0", "--tls", "auto")
    t.call("submit", "--", "true")
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    check(url.startswith("https://"), url)
    cert = os.path.join(t.folder, "tls/cert.pem")
    token = open(os.path.join(t.folder, "token")).read().strip()
    answer = subprocess.run(["curl", "-sS", "--cacert", cert, "-H", f"Authorization: Bearer {token}", f"{url}/api/v1/runs"],
                            capture_output=True, text=True)
    check('"items"' in answer.stdout, answer.stdout + answer.stderr)
    refused = subprocess.run(["curl", "-sS", f"{url}/api/v1/runs"], capture_output=True, text=True)
    check(refused.returncode == 60, "a stranger does not trust it")


def test_keys_let_teams_share_a_server(t):
    t.up()
    t.call("org", "make", "hospital", "--project", "imaging")
    t.call("project", "make", "genomics", "--organisation", "hospital")
    anna = {"STOKER_TOKEN": t.call("key", "make", "anna", "--project", "imaging", "--expires", "1h").stdout.strip()}
    ben = {"STOKER_TOKEN": t.call("key", "make", "ben", "--role", "viewer", "--project", "genomics").stdout.strip()}
    check("anna, developer of the project, in hospital/imaging, by key k-1" in t.call("whoami", env=anna).stdout, "who")
    run = t.call("submit", "--name", "scan", "--", "sh", "-c", "echo seen", env=anna).stdout.strip()
    t.wait_state(run, "succeeded")
    check(t.call("logs", run, env=anna).stdout == "seen\n", "her own log")
    check("scan" not in t.call("ps", "--all", env=ben).stdout, "nobody else sees it")
    for words in (("logs", run), ("describe", run), ("cancel", run)):
        done = t.call(*words, env=ben, exit=None)
        check(done.returncode != 0 and "seen" not in done.stdout, f"{words}: {done.stdout}{done.stderr}")
    check("may not submit runs" in t.call("submit", "--", "true", env=ben, exit=None).stderr, "a viewer looks only")
    check(t.json("describe", run)["run"]["user"] == "anna", "signed by the key")
    t.call("key", "revoke", "k-1")
    refused = t.call("ps", env=anna, exit=None)
    check("the token is wrong" in refused.stderr, f"revoked, and {refused.returncode}: {refused.stdout}{refused.stderr}")


def test_the_token_is_asked_for_and_kept_secret(t):
    t.up()
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    try:
        urllib.request.urlopen(url + "/api/v1/runs")
        raise Failure("answered without a token")
    except urllib.error.HTTPError as error:
        check(error.code == 401, str(error.code))
    for name in ("token", "server.json"):
        mode = os.stat(os.path.join(t.folder, name)).st_mode & 0o777
        check(mode == 0o600, f"{name} has mode {mode:o}")
    check(urllib.request.urlopen(url + "/healthz").status == 200, "healthz needs none")


def test_a_run_of_a_graphs_log_names_its_steps(t):
    t.write("two.yaml", "version: 1\nname: two\nrun:\n  steps:\n    - {name: a, command: echo A}\n    - {name: b, command: echo B}\n")
    done = t.call("run", "two.yaml")
    check(sorted(done.stdout.splitlines()) == ["a | A", "b | B"], done.stdout)


def test_two_runs_share_one_embedded_server(t):
    """Two terminals, no server: the second finds the first, and takes over when it ends."""
    go1, go2 = os.path.join(t.work, "go1"), os.path.join(t.work, "go2")
    first = t.start("run", "--cpus", "0.1", "--", "python3", "-c", WAIT_FOR_FILE, go1)
    wait_for("the first", lambda: [each for each in t.json("ps") if each["state"] == "running"])
    second = t.start("run", "--cpus", "0.1", "--", "python3", "-c", WAIT_FOR_FILE, go2)
    wait_for("both", lambda: len([each for each in t.json("ps") if each["state"] == "running"]) == 2)
    open(go1, "w").close()
    check(first.wait(60) == 0, open(first.err_path).read())
    check("1 other run goes on" in open(first.err_path).read(), open(first.err_path).read())
    open(go2, "w").close()
    check(second.wait(60) == 0, open(second.err_path).read())
    check(open(second.out_path).read() == "seen\n", open(second.out_path).read())


CHECKPOINTING = """
import json, os, signal, sys, time
folder = os.environ["STOKER_CHECKPOINT_DIR"]
def save(*_):
    part = os.path.join(folder, "step-000007.tmp")
    os.makedirs(part, exist_ok=True)
    open(os.path.join(part, "x"), "w").write("state")
    json.dump({"step": 7, "files": [{"name": "x", "size": 5}]}, open(os.path.join(part, "manifest.json"), "w"))
    os.rename(part, part[:-4])
    print("saved", flush=True)
signal.signal(signal.SIGUSR1, save)
print("resumed from", os.path.basename(os.environ.get("STOKER_RESUME_FROM", "nothing")), flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
"""


def test_an_eviction_of_azure_is_told_to_the_program(t):
    """A loopback endpoint answers as Azure's page on scheduled events says; the run checkpoints, waits, and resumes."""
    events = {"DocumentIncarnation": 1, "Events": []}

    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.headers.get("Metadata") != "true":
                self.send_response(400)
                self.end_headers()
                return
            body = json.dumps({"name": "vm-1"} if "instance" in self.path else events).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    t.up("--azure-events", f"http://127.0.0.1:{server.server_port}")
    go = os.path.join(t.work, "go")
    t.write("train.py", CHECKPOINTING)
    t.write("train.yaml", f"version: 1\nname: train\nrun:\n  command: [python3, train.py, {go}]\n  grace: 1s\n  checkpoint: {{}}\n")
    run = t.call("submit", "train.yaml").stdout.strip()
    wait_for("its first words", lambda: "resumed from nothing" in t.call("logs", run, exit=None).stdout)
    when = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 6))
    events["Events"].append({"EventId": "E-1", "EventStatus": "Scheduled", "EventType": "Preempt",
                             "ResourceType": "VirtualMachine", "Resources": ["vm-1"], "NotBefore": when,
                             "Description": "", "EventSource": "Platform", "DurationInSeconds": -1})
    wait_for("the checkpoint", lambda: "saved" in t.call("logs", run).stdout)
    view = t.wait_state(run, "queued")
    check(view["attempts"][0]["cause"] == "evicted", str(view["attempts"][0]))
    node = json.loads(t.call("describe", run, "-o", "json").stdout)["run"]
    check(node["state"] == "queued", "nothing is started on a machine that is leaving")
    server.shutdown()
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    token = open(os.path.join(t.folder, "token")).read().strip()
    name = view["attempts"][0]["ranks"][0]["node"]
    urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/nodes/{name}/ready", method="POST", headers={
        "Authorization": f"Bearer {token}"}))
    wait_for("the second attempt", lambda: "resumed from step-000007" in t.call("logs", run).stdout)
    open(go, "w").close()
    t.wait_state(run, "succeeded")


if __name__ == "__main__":
    main(dict(globals()))
