"""Many teams on one server, over real sockets: every route with every role and reach about what is one's own and what is
not; logging in over TLS by password, certificate and the first administrator's token; rules of admission; who asked for what.

    python3 tests/e2e/teams_test.py --stoker build/release/stoker [NAME...]

Which role a route takes is read from the server's own OpenAPI, which comes from the table that the server checks by."""

import csv
import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.parse

from harness import Skipped, check, main, wait_for

LEVELS = ("project", "organisation", "provider")
ROLES = ("viewer", "developer", "operator", "admin", "auditor")
ENDPOINT = """name: %s
kind: inference
model: {family: llama, layers: 2, hidden: 128, heads: 4, vocab: 259, ffn: 352}
traffic: {concurrency: 2, prompt_tokens: 60, output_tokens: 24}
precision: fp16
where: {cloud: this-machine}
framework: llama.cpp
objective: {survive_one_replica_lost: false}
run: {command: [server, --port, "{port}"], cpus: 1}
"""
JOB = {"command": ["true"], "per_rank": {"cpu_milli": 1000}}


class Caller:
    """One connection that is kept, with one secret."""

    def __init__(self, t, token=None, context=None):
        address = json.load(open(os.path.join(t.folder, "server.json")))
        parts = urllib.parse.urlsplit(address["url"])
        self.token = open(os.path.join(t.folder, "token")).read().strip() if token is None else token
        self.connection = (http.client.HTTPSConnection("127.0.0.1", parts.port, timeout=30, context=context) if context
                           else http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30))

    def ask(self, method, path, body=None, headers=None):
        all_headers = dict(headers or {})
        if self.token:
            all_headers["Authorization"] = "Bearer " + self.token
        if body is not None:
            body = json.dumps(body)
            all_headers["Content-Type"] = "application/json"
        self.connection.request(method, path, body, all_headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def json(self, method, path, body=None, wanted=(200, 201)):
        status, text = self.ask(method, path, body)
        check(status in wanted, f"{method} {path}: {status} {text[:500]}")
        return json.loads(text or "null")


def two_organisations(admin, t_work):
    """hospital has p-2 and p-3, bank has p-4; in each something whose name must be seen nowhere else."""
    admin.json("POST", "/api/v1/organisations", {"name": "hospital", "project": "north"})
    admin.json("POST", "/api/v1/projects", {"name": "south", "organisation": "o-2"})
    admin.json("POST", "/api/v1/organisations", {"name": "bank", "project": "vault"})
    places = {}
    for project, organisation in (("p-2", "o-2"), ("p-3", "o-2"), ("p-4", "o-3")):
        key = admin.json("POST", "/api/v1/keys", {"name": f"owner-{project}", "role": "developer", "project": project})
        canary = f"canary-{project}-x"
        made = admin.json("POST", "/api/v1/users", {"name": f"person-{canary}", "role": "viewer", "project": project})
        owner = Caller.__new__(Caller)
        owner.token, owner.connection = key["secret"], admin.connection
        run = owner.json("POST", "/api/v1/runs", {
            "name": canary, "user": canary, "labels": {"of": canary}, **JOB,
            "command": ["sh", "-c", f"echo {canary} | tee log.txt artifact.txt"]})["run"]
        owner.json("POST", "/api/v1/endpoints", {"text": ENDPOINT % canary, "folder": str(t_work)})
        places[project] = {"endpoint": canary, "organisation": organisation, "run": run, "canary": canary, "user": made["id"],
                           "key": key["key"]["id"]}
    return places


def test_every_route_every_role_own_and_foreign(t):
    """Generated from the table: 403 where the role is not enough, as good as nothing where it is foreign, and never a word."""
    t.up()
    admin = Caller(t)
    places = two_organisations(admin, t.work)
    for place in places.values():
        wait_for("its end", lambda: admin.json("GET", f"/api/v1/runs/{place['run']}")["run"]["state"] == "succeeded")
    openapi = admin.json("GET", "/api/v1/openapi.json")
    cells = {"refused": 0, "foreign": 0, "own": 0}
    for role in ROLES:
        for level in LEVELS:
            key = admin.json("POST", "/api/v1/keys", {"name": "reader", "role": role, "level": level, "project": "p-2"})
            caller = Caller(t, key["secret"])
            for shape, methods in openapi["paths"].items():
                for method, operation in methods.items():
                    if "x-stoker-roles" in operation:
                        one_cell(caller, admin, cells, role, level, shape, method.upper(), operation, places, key["key"]["id"])
    check(min(cells.values()) > 200, str(cells))
    print(f"  {sum(cells.values())} cells: {cells}")


def one_cell(caller, admin, cells, role, level, shape, method, operation, places, own_key):
    may = role in operation["x-stoker-roles"] and LEVELS.index(level) >= LEVELS.index(operation["x-stoker-level"])
    about = next((name for name in ("run", "user", "key", "endpoint") if "{" + name + "}" in shape), None)
    for project, place in places.items():
        reached = level == "provider" or (place["organisation"] == "o-2" if level == "organisation" else project == "p-2")
        # What would change something is asked where it must change nothing.
        if method != "GET" and (may and (reached or not about)):
            continue
        if not about and project != "p-4":
            continue
        path = shape.replace("{node}", "nosuchnode").replace("{version}", "1").replace("{path}", "artifact.txt")
        for name in ("run", "user", "key", "endpoint"):
            path = path.replace("{" + name + "}", place[name])
        if operation["operationId"] in ("streamEvents",):
            continue
        body = {} if "requestBody" in operation else None
        status, text = caller.ask(method, path, body)
        asked = f"{role} of {level}: {method} {path} ({project}): {status} {text[:300]}"
        if not may:
            check(status == 403, asked)
            cells["refused"] += 1
        elif about and not reached:
            # Also where the request is otherwise wrong it tells nothing of what there is.
            check(status in (400, 404) and (method != "GET" or status == 404), asked)
            cells["foreign"] += 1
        else:
            check(status != 403 and status < 500 or status == 503, asked)
            cells["own"] += 1
        if level == "provider":
            continue
        text = text.replace("there is no endpoint " + place["endpoint"], "")  # no more than what was asked
        for other in places.values():
            if other["organisation"] != "o-2" or (level == "project" and other is not places["p-2"]):
                check(other["canary"] not in text, "it is told of " + other["canary"] + "; " + asked)


def authority(t, name, *people):
    """A certificate authority of our own, and certificates of people by it."""
    if not shutil.which("openssl"):
        raise Skipped("openssl is missing: apt-get install openssl")

    def openssl(*words):
        done = subprocess.run(["openssl", *words], cwd=t.work, capture_output=True, text=True)
        check(done.returncode == 0, f"openssl {words}: {done.stderr}")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    for person in people:
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={person}",
                "-keyout", f"{name}-{person}.key", "-out", f"{name}-{person}.csr")
        openssl("x509", "-req", "-in", f"{name}-{person}.csr", "-CA", f"{name}.pem", "-CAkey", f"{name}.key", "-days", "2",
                "-CAcreateserial", "-out", f"{name}-{person}.pem")


def test_the_first_administrator_and_a_team_over_tls(t):
    """Beyond loopback: only with TLS; a token that holds once; people by password and by certificate."""
    refused = t.call("up", "--listen", "0.0.0.0:0", exit=3)
    check("without TLS" in refused.stderr and "--tls auto" in refused.stderr, refused.stderr)
    authority(t, "ours", "anna", "nobody")
    authority(t, "theirs", "anna")
    check("needs TLS" in t.call("up", "--client-ca", "ours.pem", exit=2).stderr, "a CA without TLS")
    up = t.up("--listen", "0.0.0.0:0", "--tls", "auto", "--client-ca", "ours.pem")
    said = wait_for("the token is told", lambda: (lambda text: text if "--setup" in text else None)(open(up.out_path).read()))
    address = json.load(open(os.path.join(t.folder, "server.json")))
    t.write("ca.pem", address["ca_pem"])
    token = said.split("--setup ")[1].split()[0]
    t.environment["XDG_CONFIG_HOME"] = os.path.join(t.base, "config")
    there = ("--server", address["url"], "--ca-file", "ca.pem")
    secret = t.write("password", "correct horse battery\n")
    done = t.call("login", "root", *there, "--setup", token, "--password-file", secret)
    check("root, admin of the provider, in default/default" in done.stdout, done.stdout)
    kept = os.path.join(t.base, "config", "stoker", "logins.json")
    check(os.stat(kept).st_mode & 0o777 == 0o600, "others can read the logins")
    check("first administrator is there" in t.call("login", "eve", *there, "--setup", token + "0", "--password-file", secret,
                                                   exit=3).stderr, "another token")
    t.call("org", "make", "hospital", "--project", "imaging", *there)
    t.call("user", "make", "anna", "--project", "hospital/imaging", "--password-file", secret, *there)
    t.call("user", "bind", "anna", "--role", "viewer", "--of-organisation", "--project", "imaging", *there)
    users = t.call("user", "list", *there).stdout
    check("developer of hospital/imaging, viewer of" in users and "all of hospital" in users, users)
    done = t.call("login", "anna", *there, "--project", "imaging", "--password-file", secret)
    check("anna, developer of the project, in hospital/imaging" in done.stdout, done.stdout)
    check("anna" in t.call("whoami", *there).stdout, "who")
    check("may not say who may do what" in t.call("user", "list", *there, exit=3).stderr, "not hers")
    check("wrong" in t.call("login", "anna", *there, "--password-file", t.write("p2", "wrong horse battery"), exit=3).stderr, "wrong")
    t.call("logout", *there)
    check("there is no token" in t.call("ps", *there, exit=3).stderr, "logged out")

    def by_certificate(name):
        context = ssl.create_default_context(cafile=os.path.join(t.work, "ca.pem"))
        context.check_hostname = False
        context.load_cert_chain(os.path.join(t.work, name + ".pem"), os.path.join(t.work, name + ".key"))
        return Caller(t, "", context)
    who = by_certificate("ours-anna").json("GET", "/api/v1/whoami")
    check((who["name"], who["role"], who["project"]["name"]) == ("anna", "developer", "imaging"), str(who))
    status, text = by_certificate("ours-nobody").ask("GET", "/api/v1/whoami")
    check(status == 401 and "no user of that name" in text, text)
    try:
        by_certificate("theirs-anna").ask("GET", "/api/v1/whoami")
        check(False, "a certificate of another authority was taken")
    except (ssl.SSLError, OSError, http.client.HTTPException):
        pass
    t.call("user", "disable", "anna")
    check(by_certificate("ours-anna").ask("GET", "/api/v1/whoami")[0] == 401, "shut out, and still in")


RULES = """admission:
  - name: small-notebooks
    kinds: [notebook]
    most_ranks: 1
    remedy: ask the platform team
  - name: owners
    labels: [cost-centre]
"""


def test_rules_are_tried_before_they_hold(t):
    """An operator sees what a rule would have refused; then it holds, and says what to do."""
    t.up()
    check("no rules" in t.call("policy", "list").stdout, "none at first")
    for i in range(3):
        t.call("submit", "--name", f"old-{i}", "--", "true")
    rules = t.write("server.yaml", RULES)
    said = t.call("policy", "test", rules, "--last", "30d").stdout
    check("would have refused 3 of 3 runs" in said and "owners" in said, said)
    test = t.json("policy", "test", rules, "--last", "1h")
    check([each["refuses"] for each in test["rules"]] == [0, 3] and len(test["items"]) == 3, str(test))
    bad = t.call("policy", "test", t.write("bad.yaml", "admission:\n  - {name: x}\n"), exit=2).stderr
    check("asks nothing" in bad and "bad.yaml:2:5" in bad, bad)
    t.call("submit", "--name", "before", "--", "true")
    t.call("config", "set", rules)
    check("labels cost-centre" in t.call("policy", "list").stdout, "in words")
    refused = t.call("submit", "--name", "after", "--", "true", exit=3).stderr
    check("there is no cost-centre (rule owners)" in refused and "--label cost-centre=VALUE" in refused, refused)
    api = Caller(t)
    status, text = api.ask("POST", "/api/v1/runs?dry_run=true", {"name": "dry", **JOB})
    check(status == 403 and "rule owners" in text, text)
    run = api.json("POST", "/api/v1/runs", {"name": "labelled", "labels": {"cost-centre": "x"}, **JOB})
    check(run["run"], str(run))
    status, text = api.ask("POST", "/api/v1/runs", {"name": "big", "kind": "notebook", "ranks": 2,
                                                    "labels": {"cost-centre": "x"}, **JOB})
    check(status == 403 and "ask the platform team" in text and "at most 1 are allowed" in text, text)
    check("POST" in t.call("audit", "--refused").stdout, "the refusals are told")
    events = t.call("audit", "--as", "cef", "--refused").stdout.splitlines()
    check(events and all(each.startswith("CEF:0|Stoker|stoker|") for each in events) and "src=127.0.0.1" in events[-1]
          and "outcome=failure cn1Label=status cn1=403" in events[-1], str(events))
    every = [json.loads(line) for line in t.call("audit", "--as", "json").stdout.splitlines()]
    check(every == sorted(every, key=lambda line: line["at"]) and len(every) > len(events), "oldest first, all of them")
    check(t.call("audit", "--as", "json", "--to", "2020-01-01").stdout == "", "nothing of then")
    check(t.json("audit", "--refused", "--who", "token/")["items"][0]["operation"] == "submitRun", "by whom")


WHERE = """engine: {kind: local, region: REGION}
admission:
  - name: data-stays
    residency: [eu]
  - name: sizes
    kinds: [train]
    machines: ["Standard_ND96*"]
    remedy: ask the platform team for another size
  - name: small-notebooks
    kinds: [notebook]
    most_node_gpus: 1
  - name: spot-goes-on
    classes: [spot]
    checkpoints: true
  - name: bank-only
    organisations: [bank]
    most_gpus: 1
"""


def test_where_it_stands_and_plans_within_the_rules(t):
    """Residency by the region of the engine, nodes that are too wide, and what plan and dry run say of the same rules."""
    t.write("nodes.yaml", "nodes:\n  - {name: wide, vcpus: 8, memory: 16GiB, gpus: 8, gpu: H100}\n")
    t.up("--nodes", "nodes.yaml")
    t.call("config", "set", t.write("server.yaml", WHERE.replace("REGION", "eastus")))
    api = Caller(t)
    notebook = {"name": "nb", "kind": "notebook", **JOB}
    status, text = api.ask("POST", "/api/v1/runs", notebook)
    check(status == 403 and "local stands in eastus, and what it works on may not leave eu" in text, text)
    check("could be put on wide, which has 8 GPUs, at most 1 are allowed" in text and "(rule small-notebooks)" in text, text)
    status, dry = api.ask("POST", "/api/v1/runs?dry_run=true", notebook)
    check(status == 403 and json.loads(dry)["problems"] == json.loads(text)["problems"], dry)
    t.call("config", "set", t.write("server.yaml", WHERE.replace("REGION", "germanywestcentral")))
    status, text = api.ask("POST", "/api/v1/runs", {"name": "b", **JOB})
    check(status == 201, text)
    status, text = api.ask("POST", "/api/v1/runs", {"name": "s", "class": "spot", **JOB})
    check(status == 403 and "rule spot-goes-on" in text and "checkpoint: it writes none" in text, text)

    job = t.write("job.yaml", "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n")
    for source in ("server.yaml", "server"):
        plan = t.json("plan", job, "--policy", source)
        first = plan["candidates"][0]
        check(first["size"].startswith("Standard_ND96") and "europe" in first["region"] + "europe", str(first)[:300])
        names = {each["name"]: each for each in plan["policy"]["rules"]}
        check(names["sizes"]["narrows"] and "checkpoints" in names["spot-goes-on"]["asked_when_submitted"], str(names))
        check("bank-only" not in names or source == "server", "a rule of others: " + str(names))
        check(plan["policy"]["refused"] == [], str(plan["policy"]))
    said = t.call("plan", job, "--policy", "server.yaml").stdout
    check("planned within data-stays, sizes" in said and "1 rule about other" in said, said)
    wrong = t.write("wrong.yaml", "version: 1\nkind: training\nmodel: llama-3-8b\ndata: {tokens: 1B}\n"
                                  "where: {sizes: [Standard_NC96ads_A100_v4]}\n")
    said = t.call("plan", wrong, "--policy", "server.yaml", exit=3).stderr
    check("the machine is Standard_NC96ads_A100_v4, expected Standard_ND96* (rule sizes)" in said
          and "server.yaml:5:5" in said and "ask the platform team" in said, said)
    for name in ("medical", "security"):
        text = t.call("policy", "template", name).stdout
        done = t.call("config", "check", t.write(name + ".yaml", text))
        check("is a configuration" in done.stdout, done.stdout + done.stderr)
        check("would have refused" in t.call("policy", "test", name + ".yaml").stdout, name)
    check("medical" in t.call("policy", "template").stdout, "they are listed")


def test_mails_of_budgets_and_what_was_wasted(t):
    """A budget tells mail addresses once for each mark, by the sendmail that the configuration names; and what runs held."""
    mails = os.path.join(t.base, "mails")
    program = t.write("sendmail", f"#!/bin/sh\n{{ echo \"args $*\"; cat; echo; echo ---; }} >> {mails}\n")
    os.chmod(program, 0o700)
    t.write("server.yaml", "notify: {budgets: [finance@example.org], sendmail: " + program + "}\n"
                           "prices:\n  source: ours\n  prices: [{resource: cpu, usd_per_hour: 3600, valid_from: 2026-01-01}]\n"
                           "  markups: [{organisation: default, percent: 50}]\n")
    t.up("--config", "server.yaml")
    check("no mail address" in t.call("config", "check", t.write("bad.yaml", "notify: {budgets: [nobody]}\n"), exit=2).stderr, "bad")
    run = t.call("submit", "--name", "short", "--cpus", "1", "--", "true").stdout.strip()
    t.wait_state(run, "succeeded")
    invoice = wait_for("it is charged", lambda: (lambda i: i if i["total_microusd"] else None)(
        t.json("usage", "--month", time.strftime("%Y-%m", time.gmtime()))))
    line = invoice["items"][0]
    # 3600 dollars an hour and half as much again: one and a half dollars a second.
    check(abs(line["microusd"] - line["micro_hours"] * 5400) < 5400, str(line))
    rows = list(csv.DictReader(t.call("usage", "--month", invoice["month"], "--focus").stdout.splitlines()))
    check(sum(round(float(row["BilledCost"]) * 1e6) for row in rows) == invoice["total_microusd"], str(rows))
    t.call("budget", "set", "default/default", "--usd", "0.000001")
    text = wait_for("the mail of 100 %", lambda: (lambda m: m if "100 %" in m else None)(
        open(mails).read() if os.path.exists(mails) else ""))
    check("args -i -- finance@example.org" in text and "Subject: budget of project default/default: 100 %" in text, text)
    check(text.count("Subject: budget of project default/default: 100 %") == 1 and "stoker budget list" in text, text)
    waste = t.json("usage", "--waste", "--by", "project")
    check(waste["held"]["runs"] == 1 and waste["held"]["cpu_hours"] > 0 and waste["held"]["cost_microusd"] > 0, str(waste))
    free = {each["cause"]: each for each in waste["free"]}
    check(set(free) == {"unallocated"} and free["unallocated"]["cpu_hours"] > 0, str(waste))
    # A machine costs what it costs: an hour of a processor without the mark-up, held by somebody or by nobody.
    check(abs(free["unallocated"]["cost_microusd"] - free["unallocated"]["cpu_hours"] * 3600e6) < 2e3, str(waste))
    causes = {each["cause"] for each in waste["items"]}
    check(causes <= {"deployment"}, "a second of work is no waste: " + str(waste))
    said = t.call("usage", "--waste", "--by", "user").stdout
    check("of what was held" in said and "cause" in said, said)
    check("by node" in t.call("usage", "--waste", "--by", "node", exit=2).stderr, "by node")


def test_what_a_quota_keeps_idle_has_its_cause(t):
    """Processors that stand free beside work which its quota keeps waiting are told apart from those that nobody wants."""
    t.write("nodes.yaml", "nodes:\n  - {name: wide, vcpus: 8, memory: 16GiB}\n")
    t.up("--nodes", "nodes.yaml", "--prices", t.write("prices.yaml", "source: ours\nprices: [{resource: cpu, usd_per_hour: 3600, valid_from: 2026-01-01}]\n"))
    t.call("quota", "set", "default/default", "--resource", "cpu", "--limit", "3")
    first = t.call("submit", "--cpus", "2", "--", "sleep", "600").stdout.strip()
    t.wait_state(first, "running")
    free = {each["cause"]: each for each in t.json("usage", "--waste")["free"]}
    check(set(free) == {"unallocated"}, free)
    t.call("submit", "--cpus", "2", "--", "sleep", "600")
    time.sleep(0.5)
    free = {each["cause"]: each for each in t.json("usage", "--waste")["free"]}
    check(set(free) == {"unallocated", "waiting for quota"}, free)
    # Two of the six that are free would have been taken; a processor costs a dollar a second.
    kept = free["waiting for quota"]
    check(kept["cpu_hours"] > 0 and abs(kept["cost_microusd"] - kept["cpu_hours"] * 3600e6) < 2e3, free)
    check("waiting for quota" in t.call("usage", "--waste").stdout, "and it is shown")
    # Whoever is on call hears of it from Prometheus.
    t.call("budget", "set", "default/default", "--usd", "10000")
    gauges = Caller(t).ask("GET", "/metrics")[1]
    for name, value in (("held", 2), ("waiting", 2), ("limit", 3)):
        check(f'stoker_quota_{name}{{level="project default/default",resource="cpu"}} {value}\n' in gauges, gauges)
    check('stoker_budget_used_ratio{level="project default/default",unit="usd"} 0.' in gauges, gauges)


def test_the_bill_of_a_cloud_is_held_against_what_was_held(t):
    """stoker usage --against: a machine that is billed and held, one that nobody held, one that is on no bill."""
    t.write("nodes.yaml", "nodes:\n  - {name: gpu-vm-1, vcpus: 2, memory: 1GiB}\n  - {name: own-rack, vcpus: 4, memory: 1GiB}\n")
    t.up("--nodes", "nodes.yaml", "--prices", t.write("prices.yaml", "source: ours\nprices: [{resource: cpu, usd_per_hour: 3600, valid_from: 2026-01-01}]\n"))
    for cpus in ("4", "2"):
        t.wait_state(t.call("submit", "--cpus", cpus, "--", "true").stdout.strip(), "succeeded")
    day = time.strftime("%m/%d/%Y", time.gmtime())
    machine = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/"
    head = "Date,MeterCategory,UnitOfMeasure,Quantity,CostInBillingCurrency,BillingCurrencyCode,ResourceId\n"
    bill = t.write("azure.csv", head + f"{day},Virtual Machines,1 Hour,24,1000,USD,{machine}GPU-VM-1\n"
                   f"{day},Virtual Machines,1 Hour,24,77.5,USD,{machine}forgotten\n{day},Storage,1 GB,1,2.25,USD,/x/disks/os\n")
    told = json.loads(t.call("usage", "--against", bill, "-o", "json", exit=1).stdout)
    seen = {each["machine"]: each["result"] for each in told["items"]}
    check(seen == {"GPU-VM-1": "covered", "forgotten": "only_bill", "own-rack": "only_here"}, told)
    check(told["total_micro"] == 1079_750_000 and told["not_held_micro"] == 77_500_000 and told["others_micro"] == 2_250_000, told)
    check(0 < told["items"][0]["charged_micro"] < 1000_000_000, told)
    said = t.call("usage", "--against", bill, exit=1).stdout
    check("$77.50 of the bill is for machines that nobody held" in said, said)
    wrong = t.call("usage", "--against", t.write("cut.csv", head + f"{day},x,1 Hour,24,1O0,USD,x\n"), exit=2).stderr
    check("cut.csv:2:" in wrong and "its cost is '1O0'" in wrong, wrong)


if __name__ == "__main__":
    main(dict(globals()))
