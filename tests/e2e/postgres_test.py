"""The journal in a real PostgreSQL: two servers of which one leads, and the way there and back.

    python3 tests/e2e/postgres_test.py --stoker build/release/stoker [NAME...]"""

import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import Failure, Skipped, check, main, wait_for

PROGRAMS = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), "")
TAKES_OVER_WITHIN_S = 30  # 5 s of lease and a start; 10 s on a machine that has nothing else to do


class Postgres:
    """On a local socket, as the user postgres where this is root, which PostgreSQL refuses."""

    def __init__(self):
        if not PROGRAMS:
            raise Skipped("PostgreSQL is not installed")
        self.folder = tempfile.mkdtemp(prefix="stoker-pg-", dir="/tmp")
        self.user = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        made = subprocess.run([f"{PROGRAMS}/initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "stoker", "-N",
                               "--no-instructions", "-E", "UTF8", "--locale", "C.UTF-8"],
                              cwd="/", capture_output=True, text=True, timeout=300, **self.user)
        if made.returncode != 0:
            raise Failure(f"initdb: {made.stderr}")
        self.url = f"postgresql:///postgres?user=stoker&host={self.folder}"
        self.process = None
        self.begin()

    def begin(self):
        self.process = subprocess.Popen([f"{PROGRAMS}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-h", "",
                                         "-c", "log_min_messages=fatal", "-c", "shared_buffers=8MB"],
                                        cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, **self.user)
        wait_for("PostgreSQL", lambda: self.sql("SELECT 1") == "1")

    def sql(self, line):
        done = subprocess.run([f"{PROGRAMS}/psql", "-At", "-d", self.url, "-c", line], cwd="/", capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    def restart(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.begin()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


def starts_leading(t, process, folder):
    """Until this process has written where it listens."""
    address = os.path.join(folder, "server.json")

    def ready():
        if process.poll() is not None:
            raise Failure(f"stoker up ended with {process.returncode}: {open(process.err_path).read()}")
        try:
            return json.load(open(address))["pid"] == process.pid
        except (OSError, ValueError):
            return False
    wait_for("it leads", ready)


def test_a_killed_leader_is_followed_and_nothing_acknowledged_is_lost(t):
    """The machine with the server dies at night; the other one goes on with every run that was accepted."""
    with Postgres() as database:
        leader = t.start("up", "--journal", database.url)
        starts_leading(t, leader, t.folder)
        acknowledged, enough = [], threading.Event()

        def submit():
            while not enough.is_set():
                done = t.call("submit", "--", "true", exit=None)
                if done.returncode == 0:
                    acknowledged.append(done.stdout.strip())
                else:
                    time.sleep(0.05)
        writer = threading.Thread(target=submit)
        writer.start()
        longest = 0
        try:
            for _ in range(4):
                standby = t.start("up", "--journal", database.url)
                wait_for("it stands by", lambda: f"process {leader.pid} leads" in open(standby.err_path).read())
                before = len(acknowledged)
                wait_for("some are accepted", lambda: len(acknowledged) > before + 3)
                leader.kill()
                leader.wait()
                killed = time.monotonic()
                starts_leading(t, standby, t.folder)
                longest = max(longest, time.monotonic() - killed)
                leader = standby
        finally:
            enough.set()
            writer.join()
        print(f"   4 kills, {len(acknowledged)} runs acknowledged, the longest way to the next leader {longest:.1f} s")
        check(longest < TAKES_OVER_WITHIN_S, f"{longest:.1f} s without a server")
        check(len(set(acknowledged)) == len(acknowledged), "a number was given twice")

        def ended():
            runs = {run["id"]: run["state"] for run in t.json("ps", "--all", "--limit", "1000")}
            missing = [run for run in acknowledged if run not in runs]
            check(not missing, f"lost: {missing}")
            return all(runs[run] == "succeeded" for run in acknowledged)
        wait_for("all have ended", ended)
        begun = database.sql("SELECT count(*) FROM stoker_journal")
        check(int(begun) > len(acknowledged), "the database has the records")
        leader.send_signal(signal.SIGTERM)
        check(leader.wait(timeout=60) == 0, open(leader.err_path).read())
        check("each follows from the one before" in t.call("journal", "verify", database.url).stdout, "the chain there")
        check("each follows from the one before" in t.call("journal", "verify").stdout, "the chain here")


def test_a_leader_that_sleeps_wakes_up_powerless(t):
    """A machine that hangs for a minute comes back; two servers that both start work would be worse than none."""
    with Postgres() as database:
        first = t.start("up", "--journal", database.url)
        starts_leading(t, first, t.folder)
        run = t.call("submit", "--begin", "1h", "--", "true").stdout.strip()
        other = os.path.join(t.base, "other")
        second = t.start("up", "--journal", database.url, "--folder", other)
        wait_for("it stands by", lambda: f"process {first.pid} leads" in open(second.err_path).read())
        first.send_signal(signal.SIGSTOP)
        try:
            starts_leading(t, second, other)
        finally:
            first.send_signal(signal.SIGCONT)
        check(first.wait(timeout=60) == 3, f"exit {first.returncode}")
        said = open(first.err_path).read()
        check(f"process {second.pid} leads now" in said and "stands by then" in said, said)
        seen = t.json("ps", "--all", "--folder", other)
        check([item["id"] for item in seen] == [run], f"{seen}")
        check(t.call("cancel", run, "--folder", other).returncode == 0, "and it is the second one's")


def test_the_database_is_restarted_and_nobody_notices_but_for_the_wait(t):
    """An update of PostgreSQL is no reason to lose a submission."""
    with Postgres() as database:
        leader = t.start("up", "--journal", database.url)
        starts_leading(t, leader, t.folder)
        failed, accepted, enough = [], [], threading.Event()

        def submit():
            while not enough.is_set():
                done = t.call("submit", "--", "true", exit=None)
                (accepted if done.returncode == 0 else failed).append(done.stdout.strip() + done.stderr)
        writer = threading.Thread(target=submit)
        writer.start()
        try:
            for _ in range(2):
                before = len(accepted)
                wait_for("some are accepted", lambda: len(accepted) > before + 3)
                database.restart()
            before = len(accepted)
            wait_for("some are accepted", lambda: len(accepted) > before + 3)
        finally:
            enough.set()
            writer.join()
        check(not failed, f"refused: {failed[:3]}")
        check(leader.poll() is None, "the server ended")
        check(len(set(accepted)) == len(accepted), "a number was given twice")


def test_the_way_there_and_back(t):
    """A team begins with one folder, moves to PostgreSQL, and could leave again."""
    with Postgres() as database:
        first = t.up()
        run = t.call("submit", "--begin", "1h", "--", "true").stdout.strip()
        busy = t.call("journal", "push", database.url, exit=2)
        check("in use by process" in busy.stderr, busy.stderr)
        first.send_signal(signal.SIGTERM)
        first.wait(timeout=60)
        early = t.call("up", "--journal", database.url, exit=2)
        check("stoker journal push" in early.stderr, early.stderr)
        pushed = t.call("journal", "push", database.url).stdout
        check("of them new" in pushed, pushed)
        second = t.start("up", "--journal", database.url)
        starts_leading(t, second, t.folder)
        later = t.call("submit", "--begin", "1h", "--", "true").stdout.strip()
        check((run, later) == ("r-1", "r-2"), f"{run} {later}")
        led = t.call("journal", "pull", database.url, "--folder", os.path.join(t.base, "back"), exit=None)
        check(led.returncode == 0, led.stderr)  # a look at it, beside the server that leads
        second.send_signal(signal.SIGTERM)
        second.wait(timeout=60)
        back = os.path.join(t.base, "back")
        t.call("journal", "pull", database.url, "--folder", back)
        seen = t.json("ps", "--all", "--folder", back)
        check(sorted(item["id"] for item in seen) == ["r-1", "r-2"], f"{seen}")


def test_all_is_lost_and_comes_back_from_a_backup(t):
    """Folder and database are gone; a backup restores both homes, into empty ones, and what waited goes on."""
    kept = "file://" + os.path.join(t.base, "kept")
    with Postgres() as database:
        first = t.start("up", "--journal", database.url, "--backup-to", kept, "--backup-every", "1h")
        starts_leading(t, first, t.folder)
        t.call("org", "make", "hospital", "--project", "imaging")
        t.call("quota", "set", "hospital", "--resource", "cpu", "--limit", "64")
        run = t.call("submit", "--begin", "1h", "--", "true").stdout.strip()
        t.call("journal", "backup", "--to", kept)
        first.kill()
        first.wait(timeout=60)
    shutil.rmtree(t.folder)
    with Postgres() as empty:
        t.call("journal", "restore", kept)
        pushed = t.call("journal", "push", empty.url).stdout
        check("of them new" in pushed, pushed)
        second = t.start("up", "--journal", empty.url)
        starts_leading(t, second, t.folder)
        check(run in t.call("ps").stdout, "the run that waited")
        check("organisation hospital" in t.call("quota", "list").stdout, t.call("quota", "list").stdout)
        check(t.call("submit", "--begin", "1h", "--", "true").stdout.strip() == "r-2", "numbers go on")
        check(t.call("journal", "verify", empty.url).returncode == 0, "the chain of the database")
        second.send_signal(signal.SIGTERM)
        second.wait(timeout=60)


def test_what_is_wrong_with_an_address_is_said(t):
    """Somebody types it for the first time."""
    told = t.call("up", "--journal", "postgresql://me:secret@db/stoker", exit=2).stderr
    check("PGPASSWORD" in told and "secret" not in told, told)
    told = t.call("up", "--journal", "mysql://db/stoker", exit=2).stderr
    check("postgresql://user@host:5432/database" in told, told)
    told = t.call("up", "--journal", "postgresql:///x?host=/nowhere", exit=3).stderr
    check("does not answer" in told, told)
    told = t.call("journal", "push", exit=2).stderr
    check("STOKER_JOURNAL" in told, told)


if __name__ == "__main__":
    main(globals())
