"""Machines and tokens in one ledger: a server charges what its gateways have settled, beside what runs held; usage, invoice, FOCUS
and budgets come to the same micro-dollar, with a mark-up for each organisation, whoever is killed meanwhile. A view that leaves
one of the two out fails here."""

import csv
import datetime
import json
import os

from gateway_harness import Gateway, ask, equal
from harness import check, main, wait_for

PRICES = ("prices:\n  source: e2e\n  prices: [{resource: cpu, usd_per_hour: 3600, valid_from: 2026-01-01}]\n"
          "  markups: [{organisation: hospital, percent: 25}]\n")


def config(t, ledger, more=""):
    return t.write("server.yaml", PRICES + "tokens:\n  - account: " + ledger + "\n    projects: [{gateway: red, charge: hospital/imaging}]\n"
                   "    others: default/default\n" + more)


def test_one_invoice_of_machines_and_tokens(t):
    g = Gateway(t, keys=[{"name": "anna", "project": "red"}, {"name": "ben"}], price="{input: 1.37, output: 2.11}").start()
    for tokens, key in ((3, "anna"), (9, "anna"), (5, "ben")):
        equal(g.post(ask(tokens), key=key)[0], 200, "a request")
    server = t.up("--config", config(t, os.path.join(t.work, "ledger")))
    t.call("org", "make", "hospital", "--project", "imaging")
    t.wait_state(t.call("submit", "--", "sleep", "0.3").stdout.strip(), "succeeded")
    month = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m")

    def whole(requests):
        invoice = t.json("usage", "--month", month)
        return invoice if sum(line["requests"] for line in invoice["items"]) == requests and any(
            line["resource"] == "cpu" for line in invoice["items"]) else None
    invoice = wait_for("both are charged", lambda: whole(3), 60)
    # A server that is killed and goes on charges nothing twice; what came meanwhile is charged.
    equal(g.post(ask(7), key="anna")[0], 200, "one more")
    g.settled(3)
    server.kill()
    server.wait()
    t.up("--config", os.path.join(t.work, "server.yaml"))
    invoice = wait_for("the last one is charged", lambda: whole(4), 60)

    # To the micro-dollar: the lines, the charges, and the gateway's own account with the mark-up.
    equal(sum(line["microusd"] for line in invoice["items"]), invoice["total_microusd"], "the sum of the lines")
    rows = list(csv.DictReader(t.call("usage", "--month", month, "--focus").stdout.splitlines()))
    equal(sum(round(float(row["BilledCost"]) * 1e6) for row in rows), invoice["total_microusd"], "FOCUS")
    equal({row["ResourceType"] for row in rows}, {"run", "model"}, "machines and tokens")
    usd = {row["key"]: float(row["usd"]) for row in g.account()["rows"]}
    lines = {line["user"]: line for line in invoice["items"] if line["resource"] == "tokens"}
    equal((lines["anna"]["organisation"], lines["anna"]["project"], lines["ben"]["project"]), ("hospital", "imaging", "default"), "to whom")
    equal(lines["anna"]["microusd"], int(usd["anna"] * 1e6 * 1.25 + 1e-6), "with the mark-up")
    equal(lines["ben"]["microusd"], int(usd["ben"] * 1e6 + 1e-6), "without")
    tags = [json.loads(row["Tags"]) for row in rows if row["ResourceType"] == "model"]
    equal({tag["account"] for tag in tags}, {"gateway/0"}, "whose account")
    check(all(tag["price_version"] for tag in tags), str(tags))
    text = t.call("usage", "--month", month).stdout
    check("tokens demo" in text and "in all" in text, text)

    usage = t.json("usage", "--by", "project")
    equal(sum(line["tokens"] for line in usage["items"]), sum(line["tokens"] for line in invoice["items"]), "tokens of usage")
    check(usage["total"]["cost_microusd"] == sum(line["cost_microusd"] for line in usage["items"]) and usage["total"]["cpu_hours"] > 0, str(usage))
    by_user = t.call("usage").stdout
    check("tokens" in by_user and "anna" in by_user, by_user)

    # A budget that knew machines alone would be empty: nothing ran in this project.
    t.call("budget", "set", "hospital/imaging", "--usd", "0.000001")
    budget = wait_for("the budget is told", lambda: next((b for b in t.json("budget", "list")["items"] if "100" in b["told"]), None), 30)
    equal(budget["used_micro"], lines["anna"]["microusd"], "used by tokens alone")
    key = t.call("key", "make", "ci", "--service", "--role", "developer", "--project", "hospital/imaging").stdout.strip()
    run = t.call("submit", "--", "true", env={"STOKER_TOKEN": key}).stdout.strip()
    check("budget" in wait_for("it waits for its budget", lambda: (lambda text: text if "budget" in text else None)(
        t.call("describe", run).stdout), 30), run)


def test_what_cannot_be_charged_is_said(t):
    for text, wanted in (("tokens: [{account: ledger}]\n", "others"),
                         ("tokens: [{account: ledger, others: default}]\n", "expected ORGANISATION/PROJECT"),
                         ("tokens: [{account: 'postgresql://db/stoker', others: default/default}]\n", "gateway"),
                         ("tokens: [{account: a, gateway: 2, others: default/default}]\n", "leave gateway out")):
        said = t.call("config", "check", t.write("bad.yaml", text), exit=2).stderr
        check(wanted in said and "bad.yaml:1:" in said, said)
    log = os.path.join(t.work, "log")
    t.up("--log-file", log, "--config", t.write("server.yaml", "tokens: [{account: /nowhere/ledger, others: default/default}]\n"))
    wait_for("it is said", lambda: "tokens.failed" in open(log).read() and "/nowhere/ledger" in open(log).read(), 30)


if __name__ == "__main__":
    main(dict(globals()))
