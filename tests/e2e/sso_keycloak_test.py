"""Logging in by single sign-on at Keycloak, the provider that most teams run themselves: code flow with PKCE, device flow,
roles by its groups, and people whose address nobody verified.

    STOKER_KEYCLOAK=1 python3 tests/e2e/sso_keycloak_test.py --stoker build/release/stoker

Needs Java 17 and Maven (apt-get install default-jre-headless maven); Keycloak comes from Maven into build/e2e-keycloak (165 MB)
and takes a minute to begin: by hand, not in ./dev test. tests/e2e/sso_test.py asks more, of another provider, at each run."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import zipfile

from harness import LIMIT_S, Skipped, check, main, wait_for
from sso_test import CONFIG, log_in

VERSION = "26.2.5"
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "e2e-keycloak"
HOME = FOLDER / f"keycloak-{VERSION}"
PEOPLE = {"anna": ("anna@example.org", True, ["ml"]), "eve": ("eve@example.org", True, ["sales"]),
          "mallory": ("leader@example.org", False, ["ml", "leads"])}


def installed():
    if os.environ.get("STOKER_KEYCLOAK") != "1":
        raise Skipped("STOKER_KEYCLOAK=1 fetches Keycloak and runs it")
    if not shutil.which("java") or not shutil.which("mvn"):
        raise Skipped("java or mvn is missing: apt-get install default-jre-headless maven")
    if HOME.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mvn", "-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
                           f"-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:zip", f"-DoutputDirectory={FOLDER}"],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise Skipped(f"Maven could not get Keycloak {VERSION}: {done.stdout[-300:]}")
    with zipfile.ZipFile(FOLDER / f"keycloak-quarkus-dist-{VERSION}.zip") as packed:
        packed.extractall(FOLDER)
    os.chmod(HOME / "bin" / "kc.sh", 0o755)


def realm():
    return {
        "realm": "lab", "enabled": True, "sslRequired": "none",
        "groups": [{"name": name} for name in ("ml", "leads", "sales")],
        "users": [{"username": name, "enabled": True, "email": email, "emailVerified": verified, "firstName": name, "lastName": "of the lab",
                   "groups": groups, "credentials": [{"type": "password", "value": "any"}]} for name, (email, verified, groups) in PEOPLE.items()],
        "clients": [{
            "clientId": "stoker", "publicClient": True, "standardFlowEnabled": True, "redirectUris": ["http://127.0.0.1/callback"],
            "attributes": {"pkce.code.challenge.method": "S256", "oauth2.device.authorization.grant.enabled": "true"},
            "protocolMappers": [{"name": "groups", "protocol": "openid-connect", "protocolMapper": "oidc-group-membership-mapper",
                                 "config": {"claim.name": "groups", "full.path": "false", "id.token.claim": "true"}}]}]}


class Keycloak:
    def __init__(self, t):
        installed()
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            port = any_port.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        # A data folder of its own: nothing of an earlier run is imported over.
        home = os.path.join(t.base, "keycloak")
        shutil.copytree(HOME, home, symlinks=True)
        os.makedirs(os.path.join(home, "data", "import"))
        with open(os.path.join(home, "data", "import", "lab-realm.json"), "w") as file:
            json.dump(realm(), file)
        out = open(os.path.join(t.base, "keycloak.out"), "w+")
        process = subprocess.Popen([os.path.join(home, "bin", "kc.sh"), "start-dev", f"--http-port={port}", "--http-host=127.0.0.1", "--import-realm"],
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                   env=dict(os.environ, JAVA_OPTS_APPEND="-Xmx300m", KC_BOOTSTRAP_ADMIN_USERNAME="root",
                                            KC_BOOTSTRAP_ADMIN_PASSWORD="root"))
        process.out_path = process.err_path = out.name
        t.servers.append(process)
        self.issuer = self.url + "/realms/lab"

        def answers():
            check(process.poll() is None, "Keycloak ended: " + open(out.name).read()[-2000:])
            try:
                with urllib.request.urlopen(self.issuer + "/.well-known/openid-configuration", timeout=5) as answer:
                    return answer.status == 200
            except OSError:
                return False
        wait_for("Keycloak", answers, 300)

    def call(self, method, path, body=None, token=None):
        headers = {"Content-Type": "application/json" if token else "application/x-www-form-urlencoded"}
        if token:
            headers["Authorization"] = "Bearer " + token
        data = None if body is None else json.dumps(body).encode() if token else urllib.parse.urlencode(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers, method=method), timeout=LIMIT_S) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def move(self, person, left, joined):
        """Takes a person out of one group and into another, as an administrator does."""
        token = self.call("POST", "/realms/master/protocol/openid-connect/token",
                          {"grant_type": "password", "client_id": "admin-cli", "username": "root", "password": "root"})["access_token"]
        user = self.call("GET", f"/admin/realms/lab/users?username={person}", token=token)[0]["id"]
        groups = {each["name"]: each["id"] for each in self.call("GET", "/admin/realms/lab/groups", token=token)}
        self.call("DELETE", f"/admin/realms/lab/users/{user}/groups/{groups[left]}", token=token)
        self.call("PUT", f"/admin/realms/lab/users/{user}/groups/{groups[joined]}", token=token)


def test_both_flows_and_roles_by_group(t):
    keycloak = Keycloak(t)
    t.up("--listen", "127.0.0.1:0", "--config", t.write("server.yaml", CONFIG.format(issuer=keycloak.issuer)))
    t.call("org", "make", "hospital", "--project", "imaging")
    t.environment["XDG_CONFIG_HOME"] = os.path.join(t.base, "config")
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    there = ("--server", url)
    command, said = log_in(t, url, "anna")
    check(command.returncode == 0 and "anna@example.org, developer of the project, in hospital/imaging" in said, said)
    run = t.call("submit", "--name", "hers", *there, "--", "true").stdout.strip()
    check("user/anna@example.org" in t.call("journal", "show", "--object", "run/" + run).stdout, "in the journal")
    command, said = log_in(t, url, "eve")
    check(command.returncode == 3 and "no group of sales has a role" in said, said)
    command, said = log_in(t, url, "mallory")
    check(command.returncode == 3 and "not verified" in said, said)
    keycloak.move("anna", "ml", "leads")
    command, said = log_in(t, url, "anna", "--device", "--project", "imaging", "--expires", "1h")
    check(command.returncode == 0 and "admin of the organisation" in said, said)
    roles = t.json("user", "list")["items"][0]["roles"]
    check([(role["role"], role["level"]) for role in roles] == [("admin", "organisation")], "of the group that she left: " + str(roles))
    t.call("logout", *there)
    check("there is no token" in t.call("ps", *there, exit=3).stderr, "logged out")


if __name__ == "__main__":
    main(dict(globals()))
