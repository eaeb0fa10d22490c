"""The web console in a real Chromium, against a real server: what a page shows is what the API and /metrics say.

    python3 tests/e2e/console_test.py --stoker build/release/stoker [NAME...]

Needs Debian's chromium, Node.js with npm, and what web/package-lock.json names; without them each test says so and is skipped.
STOKER_CONSOLE_SHOTS=FOLDER keeps a picture of every page: light, dark and narrow."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

from console_browser import ROOT, WEB, ask, browser, by_password, by_token, look, packages, people, url
from endpoint_test import PLAN
from gateway_harness import Gateway
from gpu_fleet_test import Fleet, with_a_fleet
from harness import check, main, wait_for
from sso_test import ANNA, server as sign_on_server

PAGES = {"overview": "#/", "runs": "#/runs", "queue": "#/queue", "submit": "#/submit", "machine": "#/submit?view=machine",
         "endpoints": "#/endpoints", "nodes": "#/nodes", "usage": "#/money", "budgets": "#/money?view=budgets", "waste": "#/money?view=waste",
         "invoice": "#/money?view=invoice", "you": "#/access", "keys": "#/access?view=keys", "people": "#/access?view=people",
         "quotas": "#/access?view=quotas", "rules": "#/access?view=rules", "audit": "#/access?view=audit"}


def test_what_is_embedded_is_what_the_sources_build(t):
    """A page that nobody can build again would be in the binary for ever."""
    packages()
    out = os.path.join(t.base, "dist")
    done = subprocess.run(["node", "build.mjs", "--out", out], cwd=WEB, capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, done.stderr[-2000:])
    for name in ("index.html", "app.js", "app.css", "licenses.txt"):
        check((WEB / "dist" / name).read_bytes() == pathlib.Path(out, name).read_bytes(),
              f"web/dist/{name} is not what web/src builds: (cd web && npm ci && npm run build), and commit it")
    check(sorted(os.listdir(WEB / "dist")) == ["app.css", "app.js", "index.html", "licenses.txt"], str(os.listdir(WEB / "dist")))


def test_what_it_reads_is_in_the_api(t):
    """A field that leaves openapi.json must not become an empty cell: tsc reads types that were made of it just now."""
    packages()
    done = subprocess.run(["npm", "run", "-s", "check"], cwd=WEB, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    check(done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:])


def test_its_units(t):
    packages()
    done = subprocess.run(["npm", "test", "-s"], cwd=WEB, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    check(done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:])


def test_a_token_of_the_address_logs_in_and_leaves_it(t):
    t.up()
    with browser(t) as b:
        by_token(t, b)
        check("token" not in b("eval", code="location.href"), b("eval", code="location.href"))
        check(b("eval", code="localStorage.length") == 0, "nothing outlives the tab")
        b("reload")
        b("wait", css="header nav")
        b.click("Log out")
        b("wait", role="button", name="Log in")
        check(b("eval", code="sessionStorage.getItem('stoker.token')") is None, "logged out, it is forgotten")
        b("goto", url=url(t) + "/#token=stk_wrong")
        b.see("The token is not of this server")


def test_a_developer_and_an_admin_see_two_consoles(t):
    """Nobody is shown a button that would say no, nor another team's work."""
    t.up()
    people(t)
    with browser(t) as b:
        mine = ask(t, "POST", "/api/v1/runs", {"name": "of-the-house", "command": ["true"]})["run"]
        by_password(t, b, "ann", "a long enough word")
        check("Submit" in b.menu(), str(b.menu()))
        b.page("#/runs")
        b.see("Nothing has been submitted yet")
        check("of-the-house" not in b.text(), b.text())
        b.page(f"#/runs/{mine}")
        b("wait", css="main .trouble")
        b.page("#/access")
        b.see("developer of the project")
        tabs = b("texts", css=".tabs a")
        check("Audit trail" not in tabs and "People" not in tabs, str(tabs))
        b.page("#/nodes")
        b("wait", css="main table")
        check(b("count", role="button", name="Drain") == 0, "a developer drains nothing")
        # The login is in a cookie that no script reads, and is there after a reload.
        check("stoker" not in b("eval", code="document.cookie + JSON.stringify(sessionStorage)"), "a secret that a script can read")
        b("reload")
        b("wait", css="header nav")
        # After a reload what changes something is still taken: the token against other sites came with whoami.
        b.page("#/submit")
        b("wait", css="textarea")
        b.click("Submit")
        b("wait", css="h1 .state")
        own = b("eval", code="location.hash").split("/")[-1]
        check(t.describe(own)["run"]["user"] == "ann", str(t.describe(own)["run"]))

        by_password(t, b, "root", "another long word")
        # To open the page is no request that was refused.
        refused = ask(t, "GET", "/api/v1/audit?refused=true")["items"]
        check(not [line for line in refused if line["operation"] == "getCaller"], str(refused))
        b.page("#/runs")
        b.see("of-the-house")
        b.page("#/nodes")
        b("wait", role="button", name="Drain")
        b.page("#/access?view=audit")
        b.see("submitRun")
        tabs = b("texts", css=".tabs a")
        check({"Keys", "People", "Audit trail"} <= set(tabs), str(tabs))
        # Whoever logged out is out: by the cookie, too.
        b.click("Log out")
        b("wait", role="button", name="Log in")
        b("reload")
        b("wait", role="button", name="Log in")


def test_single_sign_on(t):
    """At a real provider: the code flow with PKCE in the browser, and the page is the console of who came back."""
    packages()
    _, at = sign_on_server(t, ANNA)
    with browser(t) as b:
        b("goto", url=at + "/")
        b.click("Single sign-on")
        b("wait", css="input[name=login]")
        b("fill", css="input[name=login]", value="anna")
        b("fill", css="input[name=password]", value="any")
        b("click", css="button[type=submit]")
        b("wait", css="button[autofocus], button[type=submit]")
        b("click", css="button[type=submit]")
        b("wait", css="header nav", limit_ms=60_000)
        check("anna@example.org" in b.text("header"), b.text("header"))
        check("code=" not in b("eval", code="location.href"), "the code stays in the address")
        b("reload")
        b("wait", css="header nav")


def test_the_first_administrator(t):
    """The one moment at which nobody can help: the server is new, and a person has a token from its output. Over TLS."""
    up = t.up("--listen", "0.0.0.0:0", "--tls", "auto")
    said = wait_for("the token is told", lambda: (lambda text: text if "--setup" in text else None)(open(up.out_path).read()))
    with browser(t) as b:
        b("goto", url=re.sub(r"//[^:/]+", "//127.0.0.1", url(t)) + "/")
        b.click("Nobody is here yet: make the first administrator")
        b.fill("Token", "not the token")
        b.fill("Name", "root")
        b.fill("Password", "a long enough word")
        b.click("Make the administrator")
        b("wait", css=".trouble")
        check("stoker up" in b.text(), b.text())
        b.fill("Token", said.split("--setup ")[1].split()[0])
        b.click("Make the administrator")
        b("wait", css="header nav")
        b.page("#/access?view=people")
        b("wait", css="main td .name")
        check(b("text", css="main td .name") == "root" and b("texts", css="main tbody tr td:nth-child(4)") == ["1"], "one login, not two: " + b.text())
        # Somebody new can come in at once, and does.
        b.fill("Name", "ben")
        b.fill("First password", "yet another long word")
        b.click("Make")
        b.see("developer of default/default")
        b.click("Log out")
        b.fill("Name", "ben")
        b.fill("Password", "yet another long word")
        b.click("Log in")
        b("wait", css="header nav")
        check("ben" in b.text("header"), b.text("header"))


def test_a_file_becomes_a_run_that_is_seen_to_its_end(t):
    """From a mistake with its line to the end of the run, and nobody pressed reload."""
    t.up()
    with browser(t) as b:
        by_token(t, b)
        b.page("#/submit")
        b("wait", css="textarea")
        b("eval", code="window.same_page = true")
        b("fill", css="textarea", value="version: 1\nname: told\nrun:\n  comand: [sh]\n")
        b.click("Plan")
        b("wait", css=".trouble .place")
        check("4:3" in b("text", css=".trouble .place") and "command" in b.text(".trouble"), b.text(".trouble"))
        check("4" in b("text", css=".gutter b"), "the line is marked")
        b("fill", css="textarea", value="version: 1\nname: told\nrun:\n"
          "  command: [sh, -c, 'for i in 1 2 3 4; do echo line-$i; sleep 1; done; echo the-last-line']\n  ranks: 1\n  cpus: 1\n")
        b.click("Submit")
        b("wait", css="h1 .state")
        run = b("eval", code="location.hash").split("/")[-1]
        b.see("line-2")
        b("wait", css="h1 .state.good", limit_ms=60_000)
        b.see("the-last-line")
        check(b("text", css="h1 .state") == "succeeded" == t.describe(run)["run"]["state"], b("text", css="h1"))
        check(b("eval", code="window.same_page") is True, "without a reload")
        b("fill", label="Only lines with", value="line-3")
        b.click("Search")
        b.see("1 line with this")
        # From the list, live: what somebody else submits is there.
        b.page("#/runs")
        b.see("told")
        later = ask(t, "POST", "/api/v1/runs", {"name": "of-somebody-else", "command": ["sleep", "30"]})["run"]
        b.see("of-somebody-else")
        b.page(f"#/runs/{later}")
        b.click("Cancel")
        b.see("End it for good?")
        b.click("Cancel")
        b("wait", css="h1 .state.calm", limit_ms=60_000)
        check(t.wait_state(later, "cancelled"), "it is")


STEPS = """import json, os, time
with open(os.environ["STOKER_METRICS_FILE"], "a", buffering=1) as file:
    for step in range(1, 41):
        time.sleep(0.1)
        file.write(json.dumps({"step": step, "step_s": 0.1, "loss": 3 / step}) + "\\n")
"""


def test_the_plan_beside_what_was_measured(t):
    """The figures are those of `stoker explain -o json`: read from the page, not the picture."""
    t.up()
    program = t.write("steps.py", STEPS)
    run = ask(t, "POST", "/api/v1/runs", {
        "name": "steps", "kind": "train", "command": ["python3", program],
        "prediction": {"step_s": 0.08, "step_low_s": 0.05, "step_high_s": 0.2, "steps": 40, "memory_bytes": 20_000_000,
                       "memory_low_bytes": 5_000_000, "memory_high_bytes": 90_000_000, "run_s": 4, "run_low_s": 3, "run_high_s": 9}})["run"]
    t.wait_state(run, "succeeded")
    with browser(t) as b:
        by_token(t, b)
        b.page(f"#/runs/{run}")
        b("wait", css="[data-term=step]")

        def agree():
            """What is judged just after the end is judged anew with the last points: both have to show it."""
            told = t.json("explain", run)
            shown = b("eval", code="Object.fromEntries([...document.querySelectorAll('#plan tbody tr')].map(row => [row.querySelector('[data-term]').dataset.term,"
                      " [row.querySelector('[data-measured]').dataset.measured, row.querySelector('[data-predicted]').dataset.predicted]]))")
            wanted = {term["term"]: [term.get("measured"), term.get("predicted")] for term in told["terms"]}
            read = {term: [float(each) if each else None for each in pair] for term, pair in shown.items()}
            return told if read == wanted and told["terms"][0].get("measured") else b("reload") or b("wait", css="[data-term=step]")
        told = wait_for("the page and stoker explain say the same", agree)
        step = next(term for term in told["terms"] if term["term"] == "step")
        row = b("text", css="#plan tbody tr:first-child")
        check(f"{step['predicted'] * 1000:.3g} ms" in row and f"{step['measured'] * 1000:.3g} ms" in row, row)
        b.see("Loss, by step")
        check(b("count", css=".chart canvas") >= 3, "steps, loss, processors")


@with_a_fleet
def test_gpus_as_metrics_of_the_agent_has_them(t):
    """What somebody reads on the page is what Prometheus would have scraped."""
    fleet = Fleet(t, ["n1"])
    fleet.agent("n1", "set * util 37\nset * power_mw 311000\nset * temperature 61\nset * mem_used 21474836480")
    wait_for("the agent tells", lambda: fleet.told().get("n1", {}).get("present") == 2)
    with browser(t) as b:
        by_token(t, b)
        b.page("#/nodes/n1")
        b("wait", css="[data-figure=utilization]")

        def agree():
            with urllib.request.urlopen(f"http://127.0.0.1:{fleet.ports['n1']}/metrics", timeout=10) as answer:
                metrics = answer.read().decode()
            shown = b("eval", code="[...document.querySelectorAll('[data-figure]')].map(each => [each.dataset.figure, Number(each.dataset.value), each.innerText])")
            families = {"utilization": r"stoker_gpu_utilization_ratio\{", "memory_used": r"stoker_gpu_memory_used_bytes\{",
                        "temperature_gpu": r'stoker_gpu_temperature_celsius\{[^}]*sensor="gpu"', "power_instant": r'stoker_gpu_power_watts\{[^}]*window="instant"',
                        "clock_sm": r'stoker_gpu_clock_hertz\{[^}]*clock="sm"'}
            found = 0
            for name, family in families.items():
                scraped = sorted(float(value) for value in re.findall(rf"^{family}[^}}]*\}} (\S+)$", metrics, re.M))
                read = sorted(value for figure, value, _ in shown if figure == name)
                if not scraped or len(read) != 2 or any(abs(a - b) > 1e-6 * max(1, abs(a)) for a, b in zip(read, scraped)):
                    return None
                found += 1
            return shown if found == len(families) else None
        # Asked at two moments: what moves must agree once, and what is set must be what was set.
        shown = wait_for("the page and /metrics agree", agree, 60)
        words = " ".join(text for _, _, text in shown)
        check(all(each in words for each in ("37 %", "61 °C", "311 W", "20.0 GiB")), words)
        found = look(b, "gpus", "light")
        check(not found, "\n".join(found))
        fleet.agents["n1"].kill()
        b.see("the agent is silent", limit_ms=60_000)


def test_the_server_goes_and_comes_back_under_an_open_page(t):
    """A page that looks alive and is not would be believed."""
    server = t.up("--listen", t.own_address())
    at = url(t)
    run = ask(t, "POST", "/api/v1/runs", {"name": "goes-on", "command": ["sh", "-c", "for i in $(seq 1 300); do echo tick-$i; sleep 0.5; done"]})["run"]
    t.wait_state(run, "running")
    with browser(t) as b:
        by_token(t, b)
        b.page(f"#/runs/{run}")
        b.see("tick-2")
        server.send_signal(signal.SIGKILL)
        server.wait()
        b("wait", css=".lost", limit_ms=60_000)
        check("Reconnecting" in b.text(".lost"), b.text(".lost"))
        check("goes-on" in b.text(), "what was there is still to be read")
        t.up("--listen", at.removeprefix("http://"))
        b("wait", css=".lost", state="detached", limit_ms=60_000)
        seen = max(int(each) for each in re.findall(r"tick-(\d+)", b.text(".log")))
        b.see(f"tick-{seen + 3}", limit_ms=60_000)
        t.call("cancel", run)
        b("wait", css="h1 .state.calm", limit_ms=60_000)


def test_hostile_texts_do_nothing(t):
    """Names and logs are written by whoever may submit, and read by whoever is admin."""
    t.up()
    evil = "<img src=x onerror=alert(1)>"
    body = {"name": "x", "command": ["sh", "-c", "printf '%s\\n' '<script>alert(2)</script>' '<img src=x onerror=alert(3)>'; printf '\\033[31mred\\033[0m \\342\\200\\256evil\\n'"],
            "labels": {"note": evil}}
    run = ask(t, "POST", "/api/v1/runs", body)["run"]
    try:
        ask(t, "POST", "/api/v1/runs", dict(body, name=evil))
    except urllib.error.HTTPError as refused:
        check(refused.code in (400, 422), str(refused))
    t.wait_state(run, "succeeded")
    with browser(t) as b:
        by_token(t, b)
        b.page(f"#/runs/{run}")
        b.see("<script>alert(2)</script>")
        check(b("count", css="main img, main script") == 0, "markup became markup")
        log = b.text(".log")
        check("red" in log and "\x1b" not in log and "\u202e" not in log, repr(log))
        for path in (f"#/runs/{evil}", f"#/nodes/{evil}", f"#/endpoints/{evil}", f"#/runs?name={evil}", f"#/{evil}", "#/runs/%E0%A4%A"):
            b.page(path)
            b("wait", css="main h1, main .trouble")
        check(b("count", css="main img") == 0, "markup became markup")


def test_somebody_without_an_administrator(t):
    """A quota's bound, the price of a machine before it starts, and the way to an endpoint, each by a developer alone."""
    t.up()
    people(t)
    with browser(t) as b:
        by_password(t, b, "ann", "a long enough word")
        b.page("#/submit?view=machine")
        b.fill("For hours", "10")
        b.click("What does it cost?")
        b.see("for 10 h")
        cost = b("text", css=".first")
        plan = t.write("machine.yaml", b.text("pre.log"))
        told = t.json("plan", plan)["candidates"][0]["prediction"]["usd"]["mid"]
        check(f"${told:,.2f}" in cost or f"${told:,.0f}" in cost, f"{cost}: {told}")
        b.click("Go on with it")
        b("wait", css="textarea")
        check("period: 10h" in b("eval", code="document.querySelector('textarea').value"), "it is the file that was priced")
        b("fill", css="textarea", value="version: 1\nname: chat\nkind: inference\nmodel: llama-3-8b\n")
        b.click("Deploy", role="button")
        b("wait", css=".trouble")


def test_a_developer_deploys_a_model_and_is_answered(t):
    """Alone, from the file to the first token: nobody else's step in between. The time it takes is printed."""
    t.up()
    people(t)
    gateway = Gateway(t).start()
    words = json.dumps(["python3", str(ROOT / "tests/e2e/fake_replica.py"), "--port", "{port}"])
    with browser(t) as b:
        by_password(t, b, "ann", "a long enough word")
        b.page("#/endpoints")
        b.click("Deploy one", role="link")
        b("fill", css="textarea", value="name: chat\n" + PLAN + f"run: {{command: {words}, cpus: 1}}\n")
        b.click("Plan")
        b("wait", css=".first")
        b.fill("Replicas at least", "1")
        began = time.monotonic()
        b.click("Deploy")
        b("wait", css="h1 .state")
        check(b("eval", code="location.hash") == "#/endpoints/chat", b("eval", code="location.hash"))
        b("wait", css="h1 .state.good", limit_ms=40_000)
        stream = gateway.stream({"model": "chat", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]})
        check(stream.rest(), "it answers")
        print(f"  {time.monotonic() - began:.1f} s from the click to the answer, through a replica that was not there, on a busy machine")
        b.page("#/endpoints")
        wait_for("the request is counted on the page", lambda: "1 of 1" in b.text() and re.search(r"\bchat\b", b.text()) and
                 ask(t, "GET", "/api/v1/endpoints/chat")["endpoint"]["requests"] == 1)
        b.page("#/endpoints/chat")
        b.see("Replicas ready")
        run = b("text", css="main td a.id")
        b.page(f"#/runs/{run}")
        b("wait", css="h1 .state.busy")
        b.page("#/endpoints/chat")
        b.see("Replicas ready")
        found = look(b, "endpoint", "light")
        check(not found, "\n".join(found))
        # How long it took, and where it is asked: nobody has to look for the gateway.
        b.see("First token after")
        check(f"curl {gateway.told['url']}/v1/chat/completions" in b.text(), b.text())
        first = ask(t, "GET", "/api/v1/endpoints/chat")["endpoint"]["first_token_s"]
        check(0 < first < 120, str(first))
        print(f"  {first:.1f} s from the accepted deployment to the first token, as it is kept")
        b.fill("At most", "3")
        b.click("Scale")
        b.see("may have 1 to 3")
        # A key for their own script, without asking anybody.
        b.page("#/access?view=keys")
        b.see("Make a key of your own")
        check(b("count", label="Name") == 0 and "operator" not in b.text("form"), b.text("form"))
        b.click("Make")
        b("wait", css=".secret")
        secret = b.text(".secret code").strip()
        check(ask(t, "GET", "/api/v1/whoami", secret=secret)["name"] == "ann", "the key is hers")
        b.click("I have it")
        b.click("Revoke")
        b.see("It is refused from now on")
        b.click("Revoke")
        b.see("revoked")
        b.page("#/endpoints/chat")
        b.see("Replicas ready")
        b.click("Stop")
        b.see("Requests under way end first")
        b.click("Stop")
        b("wait", role="button", name="Start", limit_ms=60_000)
        by_password(t, b, "root", "another long word")
        b.page("#/endpoints")
        b.see("chat")
    check(gateway.terminate() == 0, "exit")


def test_what_nothing_will_start_needs_a_person(t):
    """Among those that wait their turn it looks as if it only took longer."""
    t.up()
    ask(t, "POST", "/api/v1/runs", {"name": "too-large", "command": ["true"], "ranks": 500, "per_rank": {"cpu_milli": 1000}})
    later = ask(t, "POST", "/api/v1/runs", {"name": "just-waits", "command": ["true"], "begin_at_us": 4_070_908_800_000_000})["run"]
    causes = {run["name"]: run.get("wait_cause") for run in ask(t, "GET", "/api/v1/runs?wait_causes=true")["items"]}
    check(causes == {"too-large": "capacity_none", "just-waits": "begin_later"}, str(causes))
    check(all("wait_cause" not in run for run in ask(t, "GET", "/api/v1/runs")["items"]), "it is a pass of the scheduler")
    with browser(t) as b:
        by_token(t, b)
        b.see("too-large cannot start: it asks for more than there is")
        check(f"{later} just-waits cannot start" not in b.text(), b.text())


def test_forms_do_what_they_say(t):
    """Each form of a run and of the money is filled in as a person would, and what it did is asked of the server."""
    t.up("--prices", str(ROOT / "examples/prices.yaml"))
    people(t)
    run = ask(t, "POST", "/api/v1/runs", {"name": "busy", "command": ["sleep", "600"], "lease": {"stop_after_s": 3600}, "grace_s": 1})["run"]
    t.wait_state(run, "running")
    view = lambda: ask(t, "GET", f"/api/v1/runs/{run}")
    with browser(t) as b:
        by_token(t, b)
        b.page(f"#/runs/{run}")
        b("wait", css="h1 .state")
        before = view()["lease"]["stop_at"]
        b.click("Extend lease")
        b.fill("By hours", "2")
        b.click("Extend")
        wait_for("the lease ends later", lambda: view()["lease"]["stop_at"] > before)
        b.click("Evict")
        b.see("It writes a checkpoint, stops and queues again")
        b.click("Evict")
        wait_for("it was evicted", lambda: view()["run"]["attempts"] > 1, limit_s=60)
        t.wait_state(run, "running")
        b.click("Cancel")
        b.see("End it for good?")
        b.click("Cancel")
        t.wait_state(run, "cancelled")
        b("wait", role="button", name="Resume")
        b.click("Resume")
        wait_for("the page of the one that goes on", lambda: re.fullmatch(r"#/runs/r-\d+", b("eval", code="location.hash")) and
                 b("eval", code="location.hash") != f"#/runs/{run}")

        b.page("#/access?view=quotas")
        b.fill("Of", "p-2")
        b.fill("Resource", "gpu")
        b.fill("At most", "8")
        b.click("Set")
        wait_for("the quota is set", lambda: [(q["scope"], q["limit_milli"]) for q in ask(t, "GET", "/api/v1/quotas")["items"]] == [("p-2", 8000)])
        b.page("#/money?view=budgets")
        b.fill("Of", "p-1")
        b.fill("A month", "250")
        b.click("Set")
        wait_for("the budget is set", lambda: [(x["scope"], x["limit_micro"]) for x in ask(t, "GET", "/api/v1/budgets")["items"]] == [("p-1", 250_000_000)])
        b.see("default/default")


def test_every_page_is_accessible(t):
    """Whoever reads by a screen reader or a keyboard gets the same: axe-core finds nothing, on each page, in light and dark."""
    t.up("--prices", str(ROOT / "examples/prices.yaml"))
    people(t)
    ask(t, "POST", "/api/v1/quotas", {"scope": "p-2", "resource": "gpu", "limit_milli": 8000})
    ask(t, "POST", "/api/v1/budgets", {"scope": "p-1", "limit_micro": 5_000_000_000})
    ask(t, "POST", "/api/v1/keys", {"name": "a-program", "role": "developer", "service": True})
    done = ask(t, "POST", "/api/v1/runs", {"name": "done", "command": ["sh", "-c", "echo one; exit 3"]})["run"]
    ask(t, "POST", "/api/v1/runs", {"name": "too-large", "command": ["true"], "ranks": 500})
    busy = ask(t, "POST", "/api/v1/runs", {"name": "busy", "command": ["sh", "-c", "while :; do echo at work; sleep 1; done"]})["run"]
    t.wait_state(done, "failed")
    t.wait_state(busy, "running")
    node = t.json("nodes")[0]["name"]
    pages = dict(PAGES, failed=f"#/runs/{done}", run=f"#/runs/{busy}", node=f"#/nodes/{node}")
    with browser(t) as b:
        for how, views in (("light", {}), ("dark", {"dark": True}), ("narrow", {"width": 390, "height": 844})):
            b.open(**views)
            if how == "light":
                b("goto", url=url(t) + "/")
                b("wait", role="button", name="Log in")
                found = look(b, "login", how)
            by_token(t, b)
            for name, path in pages.items():
                b.page(path)
                b("wait", css="main h1")
                time.sleep(0.5)
                wait_for(f"{name} has its answers", lambda: b("count", css=".waiting") == 0)
                found += look(b, name, how)
        check(not found, "\n".join(found))
        # By keyboard: the first stop leads past the menu.
        b.open()
        by_token(t, b)
        b("press", key="Tab")
        check(b("eval", code="document.activeElement.className") == "skip", "the first stop is the way to the content")
        b("press", key="Enter")
        check(b("eval", code="document.activeElement.tagName") == "MAIN", "and leads there")


if __name__ == "__main__":
    main(dict(globals()))
