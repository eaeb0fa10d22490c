"""Whatever a key of each role sends, the answer is what the OpenAPI says, and no word of another organisation stands in it:
schemathesis once for each role, against a server with two organisations that have runs, users, keys, files.

    python3 tests/e2e/api_roles_test.py --stoker build/release/stoker [NAME...]

STOKER_E2E_EXAMPLES=N tries N bodies per operation (1); STOKER_E2E_ROLES=all asks for every role (3 min), or name some; two
without it: who reads most, and who writes."""

import json
import os
import re
import subprocess

from api_test import CHECKS, HERE, schemathesis_python
from harness import check, main, wait_for
from teams_test import ROLES, Caller, two_organisations


def test_each_role_is_told_what_is_its_own(t):
    python = schemathesis_python()
    t.up("--virtual-nodes", "2")
    admin = Caller(t)
    places = two_organisations(admin, t.work)
    for place in places.values():
        wait_for("its end", lambda: admin.json("GET", f"/api/v1/runs/{place['run']}")["run"]["state"] == "succeeded")
    # The hook is seen to see: the same words are told to whom they belong.
    foreign = places["p-4"]["canary"]
    check(foreign in admin.ask("GET", f"/api/v1/runs/{places['p-4']['run']}")[1], "the canary is nowhere")
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    environment = dict(os.environ, PYTHONPATH=str(HERE), SCHEMATHESIS_HOOKS="no_word_of_others", STOKER_E2E_CANARIES=foreign)
    roles = os.environ.get("STOKER_E2E_ROLES", "auditor developer")
    for role in ROLES if roles == "all" else roles.split():
        key = admin.json("POST", "/api/v1/keys", {"name": "reader", "role": role, "level": "organisation", "project": "p-2"})
        done = subprocess.run(
            [python, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run",
             url + "/api/v1/openapi.json", "-H", "Authorization: Bearer " + key["secret"],
             "--checks", CHECKS + ",no_word_of_others", "--phases", "examples,coverage,fuzzing",
             "-n", os.environ.get("STOKER_E2E_EXAMPLES", "1"), "--seed", "1", "--request-timeout", "60",
             "--suppress-health-check", "all", "--no-color"],
            cwd=t.work, timeout=900, capture_output=True, text=True, errors="replace", env=environment)
        lines = done.stdout.splitlines()
        check(done.returncode == 0, f"as {role}\n" + "\n".join(lines[-150:]) + done.stderr[-2000:])
        print(f"    {role}:", " ".join(line.strip() for line in lines[-12:] if re.search("generated|passed", line)))
    check(t.call("journal", "verify").returncode == 0, "and the journal is whole")


if __name__ == "__main__":
    main(dict(globals()))
