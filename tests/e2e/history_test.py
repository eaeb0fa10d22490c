"""The runs of one workload over time, and the way back to an earlier one."""

import os
import subprocess

from harness import check, main

def git(t, *words):
    environment = dict(t.environment, GIT_AUTHOR_NAME="x", GIT_AUTHOR_EMAIL="x@example.org", GIT_COMMITTER_NAME="x",
                       GIT_COMMITTER_EMAIL="x@example.org")
    done = subprocess.run(["git", "-C", t.work, *words], env=environment, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"git {words}: {done.stderr}")
    return done.stdout.strip()


def test_history_says_what_changed_and_again_goes_back(t):
    git(t, "init", "-q")
    path = t.write("nightly.yaml", "version: 1\nname: nightly\nrun:\n  command: [sh, -c, 'echo lr $LR']\n"
                                   "  environment: {LR: \"1e-4\"}\n")
    git(t, "add", ".")
    git(t, "commit", "-q", "-m", "one")
    first = git(t, "rev-parse", "HEAD")
    check("lr 1e-4" in t.call("run", path).stdout, "the first")
    text = open(path).read().replace("1e-4", "3e-4")
    open(path, "w").write(text)
    git(t, "commit", "-q", "-a", "-m", "two")
    t.call("run", path)
    t.call("run", path)
    history = t.json("history", "nightly")
    check([each["run"] for each in history] == ["r-3", "r-2", "r-1"], str(history))
    check(history[0]["changed"] == [] and history[2]["changed"] is None, str(history))
    changed = {each["path"]: each for each in history[1]["changed"]}
    check(changed["environment.LR"]["before"] == '"1e-4"' and changed["environment.LR"]["after"] == '"3e-4"', str(changed))
    check("source.commit" in changed and "source.file_sha256" in changed, str(changed))
    check(history[2]["commit"] == first and history[0]["state"] == "succeeded", str(history))
    table = t.call("history", "nightly").stdout
    check("environment.LR" in table and "the first" in table and max(map(len, table.splitlines())) <= 100, table)
    values = t.call("history", "nightly.yaml", "--diff").stdout
    check('environment.LR: "1e-4" -> "3e-4"' in values, values)
    check(len(t.json("history", "nightly", "--limit", "1")) == 1, "limit")
    t.call("history", "daily", exit=None)

    # Back to the first: its spec, and the code as it is today, which is told.
    done = t.call("run", "--again", "r-1")
    check("lr 1e-4" in done.stdout, done.stdout)
    check(f"git -C {t.work} checkout {first}" in done.stderr, done.stderr)
    view = t.describe("r-4")
    check(view["spec"]["source"]["commit"] == git(t, "rev-parse", "HEAD"), "the commit of today")
    check(view["spec"]["labels"]["stoker/again_from"] == "r-1", str(view["spec"]["labels"]))
    head = t.json("history", "nightly")[0]
    check(head["again_from"] == "r-1" and "environment.LR" in [each["path"] for each in head["changed"]], str(head))
    check("again r-1" in t.call("history", "nightly").stdout, "the table says so")


def test_again_with_a_server(t):
    t.up()
    run = t.call("submit", "--name", "one", "--env", "A=1", "--", "sh", "-c", "echo A is $A").stdout.strip()
    t.wait_state(run, "succeeded")
    again = t.call("submit", "--again", run, "--name", "two").stdout.strip()
    check(t.wait_state(again, "succeeded")["run"]["name"] == "two", "another name")
    check(t.call("logs", again).stdout == "A is 1\n", "the same spec")
    same = t.call("submit", "--again", run, "--key", "k").stdout.strip()
    check(t.call("submit", "--again", run, "--key", "k").stdout.strip() == same, "a key is a key")
    done = t.call("submit", "--again", run, "--ranks", "2", exit=2)
    check("--ranks" in done.stderr, done.stderr)
    t.call("submit", "--again", "r-99", exit=2)
    t.call("submit", "--again", run, "x.yaml", exit=2)
    t.call("run", "--again", run, "--resume", run, exit=2)
    check("would start now" in t.call("submit", "--again", run, "--dry-run").stdout, "dry run")
    text = t.call("compare", run, again).stdout
    check("succeeded" in text and "differ" not in text, text)


def test_what_was_forgotten_cannot_be_had_again(t):
    t.up("--max-ended", "1")
    runs = [t.call("submit", "--name", "job", "--follow", "--", "true", exit=0) for _ in range(3)]
    check(len(runs) == 3, "three")
    done = t.call("submit", "--again", "r-1", exit=2)
    check("not kept any more" in done.stderr, done.stderr)


if __name__ == "__main__":
    main(dict(globals()))
