"""The configuration of a server as its operator lives with it: set, compared, rolled back, refused, and there after kill -9."""

import json
import os
import signal
import subprocess

from api_test import Api
from harness import check, main, wait_for

FIRST = """# the machines of the lab
nodes:
  - {name: a, vcpus: 1, memory: 4GiB}
max_queued: 10
"""
SECOND = FIRST.replace("max_queued: 10", "max_queued: 20").replace(
    "4GiB}\n", "4GiB}\n  - {name: b, vcpus: 1, memory: 4GiB}\n")


def setting(t, key):
    return next(each for each in t.json("config", "show")["settings"] if each["key"] == key)


def names_of_nodes(t):
    api = Api(t)
    return {each["name"]: each["state"] for each in api.json("GET", "/api/v1/nodes")["items"]}


def test_what_was_in_force_last_tuesday(t):
    """Set, look, compare, go back: every version stays, with who, when and why."""
    t.up()
    check("no configuration" in t.call("config", "show").stdout, "none at first")
    check(t.json("config", "show")["item"]["version"] == 0, "version 0")
    first = t.write("first.yaml", FIRST)
    second = t.write("second.yaml", SECOND)
    done = t.json("config", "set", first, "--note", "the lab opens")
    check((done["version"], done["repeated"]) == (1, False), str(done))
    check(set(done["applied"]) == {"nodes", "max_queued"}, str(done))
    check(t.json("config", "set", first)["repeated"], "the same text again")
    check(t.json("config", "set", second, "--note", "one more")["version"] == 2, "version 2")
    check(setting(t, "max_queued")["value"] == "20", str(setting(t, "max_queued")))
    check(setting(t, "max_queued")["source"] == "configuration", "from where")
    diff = t.call("config", "diff", "1", "2").stdout
    check("-max_queued: 10\n" in diff and "+max_queued: 20\n" in diff and "+  - {name: b" in diff, diff)
    patched = subprocess.run(["patch", "-s", "-o", "-", first], input=diff, capture_output=True, text=True, cwd=t.work) \
        if os.path.exists("/usr/bin/patch") else None
    check(patched is None or patched.stdout == SECOND, "the difference is no patch: " + str(patched))
    keys = t.json("config", "diff", "1")
    check([each["key"] for each in keys["keys"]] == ["max_queued", "nodes.b.memory", "nodes.b.name", "nodes.b.vcpus"],
          str(keys["keys"]))
    check("are the same" in t.call("config", "diff", "2", second).stdout, "a version against a file")
    back = t.json("config", "rollback", "1")
    check(back["version"] == 3, str(back))
    check(t.call("config", "show", "--text").stdout == FIRST, "the text is the first one's")
    history = t.json("config", "history")["items"]
    check([each["version"] for each in history] == [3, 2, 1], str(history))
    check([each["note"] for each in history] == ["back to version 1", "one more", "the lab opens"], str(history))
    check(all(each["actor"] == "token/admin" and each["set_at"] for each in history), str(history))
    check(t.call("config", "show", "2").stdout == SECOND, "an older text")
    check("no version 9" in t.call("config", "show", "9", exit=2).stderr, "a version that is none")
    check("no version 9" in t.call("config", "rollback", "9", exit=2).stderr, "the way to nowhere")
    text = t.call("config", "history").stdout
    check("back to version 1" in text and max(map(len, text.splitlines())) <= 100, text)
    text = t.call("config", "show").stdout
    check("from" in text and "max_queued: 10" in text and max(map(len, text.splitlines())) <= 100, text)
    kinds = [each["kind"] for each in t.json("journal", "show", "--object", "config")["items"]]
    check(kinds == ["config.changed"] * 3, str(kinds))
    t.call("journal", "verify")


def test_bad_input_changes_nothing_and_says_where(t):
    t.up()
    good = t.write("good.yaml", FIRST)
    t.call("config", "set", good)
    bad = t.write("bad.yaml", "max_queud: 5\nnodes:\n  - {name: a, vcpus: 0, memory: 4GiB}\nkeep_ended: 1s\n"
                              "prices: {source: x, prices: [{resource: cpu, usd_per_hour: 1, valid_from: soon}]}\n")
    for words in (("config", "set", bad), ("config", "check", bad)):
        done = t.call(*words, exit=2)
        for part in ("did you mean max_queued", "bad.yaml:1:1", "bad.yaml:3:", "bad.yaml:4:13", "bad.yaml:5:"):
            check(part in done.stderr, f"{words}: {part} in {done.stderr}")
    check("is a configuration" in t.call("config", "check", good).stdout, "check")
    api = Api(t)
    status, _, text = api.call("PUT", "/api/v1/config", {"text": "max_queued: many\n"})
    problem = json.loads(text)
    check(status == 400 and problem["problems"][0]["place"] == {"in": "config", "line": 1, "column": 13}, text)
    for body in ({"text": 5}, {"txt": ""}, [], {"text": "a" * 300_000}):
        status, _, text = api.call("PUT", "/api/v1/config", body)
        check(status == 400, f"{status} {text[:300]}")
    status, _, text = api.call("GET", "/api/v1/config/versions/first")
    check(status == 404, text)
    t.call("config", "set", os.path.join(t.work, "nowhere.yaml"), exit=2)
    t.call("config", "turn", exit=2)
    t.call("config", "diff", exit=2)
    check(t.json("config", "show")["item"]["version"] == 1, "nothing was changed")


def test_two_people_do_not_undo_each_other(t):
    """Whoever looked at version 1 does not overwrite version 2 that he has not seen."""
    t.up()
    first, second = t.write("first.yaml", FIRST), t.write("second.yaml", SECOND)
    t.call("config", "set", first, "--if-version", "0")
    t.call("config", "set", second, "--if-version", "1")
    done = t.call("config", "set", first, "--if-version", "1", exit=None)
    check(done.returncode != 0 and "at version 2, not 1" in done.stderr, done.stderr)
    done = t.call("config", "rollback", "1", "--if-version", "1", exit=None)
    check(done.returncode != 0 and "at version 2, not 1" in done.stderr, done.stderr)
    api = Api(t)
    status, headers, text = api.call("GET", "/api/v1/config")
    check(status == 200 and headers["ETag"] == '"2"', str(headers))
    status, _, text = api.call("PUT", "/api/v1/config", {"text": FIRST}, headers={"If-Match": '"1"'})
    check(status == 412, text)
    status, headers, text = api.call("PUT", "/api/v1/config", {"text": FIRST}, headers={"If-Match": '"2"'})
    check(status == 200 and headers["ETag"] == '"3"' and json.loads(text)["version"] == 3, text)


def test_what_was_answered_is_there_after_kill_9(t):
    """The answer means on disk: twenty times the server is killed the moment it has answered."""
    for i in range(20):
        server = t.up()
        text = FIRST.replace("max_queued: 10", f"max_queued: {100 + i}")
        api = Api(t)
        answer = api.json("PUT", "/api/v1/config", {"text": text, "note": f"round {i}"})
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        check(answer["version"] == i + 1, str(answer))
        check(t.call("config", "show", "--text").stdout == text, "the journal has it, without a server")
    t.up()
    shown = t.json("config", "show")
    check((shown["item"]["version"], shown["item"]["note"]) == (20, "round 19"), str(shown["item"]))
    check(setting(t, "max_queued")["value"] == "119", "and it is in force")
    t.call("journal", "verify")


def test_a_restart_with_and_without_a_file(t):
    """What is in force after a restart is what the history says, and an option of the command line is told."""
    first, second = t.write("first.yaml", FIRST), t.write("second.yaml", SECOND)

    def restart(*words):
        for process in t.servers:
            if process.poll() is None:
                process.terminate()
                check(process.wait(60) == 0, "stoker up ended badly")
        return t.up(*words)

    restart("--config", first)
    check(t.json("config", "show")["item"]["note"].startswith("stoker up --config"), "the note says how")
    check(set(names_of_nodes(t)) == {"a"}, str(names_of_nodes(t)))
    restart()
    shown = t.json("config", "show")["item"]
    check(shown["version"] == 1 and setting(t, "max_queued")["value"] == "10", str(shown))
    restart("--config", first)
    check(t.json("config", "show")["item"]["version"] == 1, "the same file is no new version")
    restart("--config", second)
    check(t.json("config", "show")["item"]["version"] == 2, "another text is")
    process = restart("--max-queued", "7")
    shown = t.json("config", "show")["item"]
    check(shown["version"] == 3 and shown["overrides"] == {"max_queued": "--max-queued 7"}, str(shown))
    check("configuration version 3" in open(process.out_path).read(), "up says so")
    check(setting(t, "max_queued")["source"] == "command_line", "and show says so")
    answer = t.json("config", "set", t.write("third.yaml", SECOND.replace("20", "30") + "rate: 500\n"))
    check(answer["overridden"] == ["max_queued"] and answer["needs_restart"] == ["rate"], str(answer))
    check(setting(t, "max_queued")["value"].startswith("7"), "the option still goes before it")
    check(setting(t, "rate")["pending_restart"], "rate is due")
    restart()
    check(setting(t, "max_queued")["value"] == "30" and not setting(t, "rate")["pending_restart"], "now it is in force")
    check([each["version"] for each in t.json("config", "history")["items"]] == [5, 4, 3, 2, 1], "one for each")
    bad = t.write("bad.yaml", "max_queued: none\n")
    for process in t.servers:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
    done = t.call("up", "--config", bad, exit=2)
    check("bad.yaml:1:13" in done.stderr, done.stderr)


def test_a_node_comes_and_goes_while_runs_go_on(t):
    """A gang that needs two nodes starts when the second is added; a node that is taken out finishes its work first."""
    first, second = t.write("first.yaml", FIRST), t.write("second.yaml", SECOND)
    t.up("--config", first)
    stays = t.call("submit", "--cpus", "0.5", "--", "sleep", "1000").stdout.strip()
    t.wait_state(stays, "running")
    gang = t.call("submit", "--ranks", "2", "--nodes", "2", "--cpus", "0.5", "--", "sleep", "1000").stdout.strip()
    check(t.describe(gang)["why"]["code"] == "capacity_none", str(t.describe(gang)["why"]))
    applied = t.json("config", "set", second)["applied"]
    check("nodes" in applied, str(applied))
    view = t.wait_state(gang, "running")
    check({rank["node"] for rank in view["attempts"][-1]["ranks"]} == {"a", "b"}, str(view["attempts"]))
    t.call("config", "rollback", "1")
    wait_for("b takes nothing more", lambda: names_of_nodes(t).get("b") == "draining")
    check(t.describe(gang)["run"]["state"] == "running", "what runs there goes on")
    t.call("cancel", gang, "--wait")
    wait_for("b is gone", lambda: "b" not in names_of_nodes(t), limit_s=120)
    check(t.describe(stays)["run"]["attempts"] == 1, "the other run was not touched")
    usage = t.json("usage", "--by", "node")
    check({each["key"] for each in usage["items"]} == {"a", "b"}, "what the node did is still counted")


def test_bounds_and_prices_hold_at_once(t):
    t.up()
    t.call("config", "set", t.write("one.yaml", "nodes: [{name: a, vcpus: 1, memory: 4GiB}]\nmax_queued: 1\n"))
    wait_for("the node", lambda: names_of_nodes(t).get("a") == "ready")
    t.call("submit", "--cpus", "8", "--", "true")
    done = t.call("submit", "--cpus", "8", "--", "true", exit=3)
    check("at most 1" in done.stderr, done.stderr)
    prices = ("prices:\n  source: ours\n  prices: [{resource: cpu, usd_per_hour: 3600, valid_from: 2020-01-01}]\n"
              "backup: {to: 'file://" + t.base + "/copies', every: 1h}\n")
    answer = t.json("config", "set", t.write("two.yaml", "nodes: [{name: a, vcpus: 1, memory: 4GiB}]\nmax_queued: 2\n" + prices))
    check(set(answer["applied"]) == {"max_queued", "prices", "backup"}, str(answer))
    t.call("submit", "--cpus", "8", "--", "true")
    run = t.call("submit", "--cpus", "1", "--", "sleep", "0.2", exit=None)
    check(run.returncode == 3, "two wait already")
    check(t.json("usage")["source"] == "ours", "the price book")
    wait_for("a backup", lambda: os.path.isdir(t.base + "/copies") and
             any(name.endswith(".json") for _, _, files in os.walk(t.base + "/copies") for name in files))


def test_a_run_without_a_server_keeps_to_it(t):
    """stoker run on the folder of a server is given the same nodes, and makes no version."""
    t.up("--config", t.write("first.yaml", FIRST))
    for process in t.servers:
        process.terminate()
        process.wait(60)
    done = t.call("run", "--cpus", "0.5", "--", "sh", "-c", "echo on $SLURMD_NODENAME")
    view = t.describe("r-1")
    check(view["attempts"][0]["ranks"][0]["node"] == "a", str(view["attempts"][0]) + done.stdout)
    check(len(t.json("config", "history")["items"]) == 1, "no version of its own")


if __name__ == "__main__":
    main(dict(globals()))
