"""Logging in by single sign-on at a real OpenID Connect provider (oidc-provider of npm, certified): code flow with PKCE,
device flow, roles by groups, and tokens that must not open anything.

    python3 tests/e2e/sso_test.py --stoker build/release/stoker [NAME...]

The provider comes from npm into build/e2e-oidc (3 MB)."""

import base64
import hashlib
import html
import http.cookiejar
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import LIMIT_S, Skipped, check, main, wait_for

HERE = pathlib.Path(__file__).resolve().parent
NODE = HERE.parent.parent / "build" / "e2e-oidc"
PACKAGE = "oidc-provider@9.13.3"
CONFIG = """oidc:
  issuer: {issuer}
  client_id: stoker
  groups:
    - {{group: ml, role: developer, project: hospital/imaging}}
    - {{group: leads, role: admin, level: organisation, project: hospital/imaging}}
"""


def provider_here(t, people):
    """Starts it; its address. `people` is read anew at each login."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skipped("node and npm are missing: apt-get install nodejs npm")
    if not (NODE / "node_modules" / "oidc-provider").exists():
        NODE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock",
                               "--prefix", str(NODE), PACKAGE], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Skipped(f"npm could not get {PACKAGE}: {done.stderr[-300:]}")
    shutil.copy(HERE / "oidc" / "provider.mjs", NODE / "provider.mjs")
    t.write("people.json", json.dumps(people))
    out = open(os.path.join(t.base, "provider.out"), "w+")
    process = subprocess.Popen(["node", "provider.mjs", os.path.join(t.work, "people.json")], cwd=NODE, stdout=out,
                               stderr=subprocess.DEVNULL)
    process.out_path = process.err_path = out.name
    t.servers.append(process)
    issuer = wait_for("the provider", lambda: process.poll() is not None or open(out.name).read().strip())
    check(isinstance(issuer, str), "the provider ended")
    return issuer


class LoopbackIsSecure(http.cookiejar.DefaultCookiePolicy):
    """As browsers have it: 127.0.0.1 gets its secure cookies back without TLS."""

    def return_ok_secure(self, cookie, request):
        return True


class Browser:
    """What a person does: opens an address, fills in forms until there is none."""

    def __init__(self, person, *handlers):
        self.person = person
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar(LoopbackIsSecure())), *handlers)

    def open(self, url, data=None):
        try:
            with self.opener.open(url, data=data, timeout=LIMIT_S) as answer:
                return answer.geturl(), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.geturl(), error.read().decode()

    def log_in(self, url):
        url, text = self.open(url)
        for _ in range(8):
            form = re.search(r"<form[^>]*>.*?</form>", text, re.S)
            if not form:
                return text
            action = re.search(r'action="([^"]*)"', form.group(0))
            fields = {}
            for field in re.findall(r"<input[^>]*>", form.group(0)):
                name = re.search(r'name="([^"]*)"', field)
                value = re.search(r'value="([^"]*)"', field)
                if name:
                    fields[name.group(1)] = html.unescape(value.group(1)) if value else ""
            if "password" in fields:
                fields.update({"login" if "login" in fields else "username": self.person, "password": "any"})
            fields.pop("cancel", None)  # Keycloak's other button, where it asks whether the device may
            target = urllib.parse.urljoin(url, html.unescape(action.group(1)) if action else url)
            url, text = self.open(target, urllib.parse.urlencode(fields).encode())
        raise AssertionError("forms without an end: " + text[:500])


def server(t, people):
    issuer = provider_here(t, people)
    t.up("--listen", "127.0.0.1:0", "--config", t.write("server.yaml", CONFIG.format(issuer=issuer)))
    t.call("org", "make", "hospital", "--project", "imaging")
    t.environment["XDG_CONFIG_HOME"] = os.path.join(t.base, "config")
    return issuer, json.load(open(os.path.join(t.folder, "server.json")))["url"]


def log_in(t, url, person, *options):
    """stoker login beside a person at a browser; the command, ended."""
    command = t.start("login", "--sso", *options, "--server", url)
    told = wait_for("the address is told",
                    lambda: re.search(r"open +(http\S+)$", open(command.err_path).read(), re.M) or command.poll() is not None)
    if told is True:
        return command, open(command.err_path).read()
    if "--device" in options:
        told = wait_for("the code is told", lambda: re.search(r"or open +(http\S+)", open(command.err_path).read()))
    page = Browser(person).log_in(told.group(1))
    wait_for("stoker login ends", lambda: command.poll() is not None)
    # Lines of errors are broken where a terminal ends.
    return command, " ".join((open(command.out_path).read() + open(command.err_path).read() + page).split())


ANNA = {"anna": {"email": "anna@example.org", "email_verified": True, "groups": ["ml"]},
        "eve": {"email": "eve@example.org", "email_verified": True, "groups": ["sales"]},
        "mallory": {"email": "anna@example.org", "email_verified": False, "groups": ["ml", "leads"]}}


def test_both_flows_and_roles_by_group(t):
    """By the browser and by a code; roles come and go with the groups; who is in none is nobody."""
    _, url = server(t, ANNA)
    command, said = log_in(t, url, "anna")
    check(command.returncode == 0 and "anna@example.org, developer of the project, in hospital/imaging" in said, said)
    there = ("--server", url)
    check("anna@example.org" in t.call("whoami", *there).stdout, "who")
    run = t.call("submit", "--name", "hers", *there, "--", "true").stdout.strip()
    check("user/anna@example.org" in t.call("journal", "show", "--object", "run/" + run).stdout, "in the journal")
    command, said = log_in(t, url, "eve")
    check(command.returncode == 3 and "no group of sales has a role" in said and "stoker user make eve@example.org" in said, said)
    command, said = log_in(t, url, "mallory")
    check(command.returncode == 3 and "not verified" in said, said)
    t.write("people.json", json.dumps({"anna": dict(ANNA["anna"], groups=["leads"])}))
    command, said = log_in(t, url, "anna", "--device", "--project", "imaging", "--expires", "1h")
    check(command.returncode == 0 and "admin of the organisation" in said, said)
    roles = t.json("user", "list")["items"][0]["roles"]
    check([(role["role"], role["level"]) for role in roles] == [("admin", "organisation")], "of the group that she left: " + str(roles))
    t.call("logout", *there)
    check("there is no token" in t.call("ps", *there, exit=3).stderr, "logged out")


def test_tokens_that_open_nothing(t):
    """A token for another client, shown twice, changed, or of nobody; and a server without a provider."""
    issuer, url = server(t, ANNA)

    def token_of(client):
        verifier = "v" * 50
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        seen = {}

        class NoCallback(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, request, file, code, message, headers, url):
                if "/callback?" in url:
                    seen["url"] = url
                    return None
                return super().redirect_request(request, file, code, message, headers, url)
        browser = Browser("anna", NoCallback)
        browser.log_in(issuer + "/auth?" + urllib.parse.urlencode(
            {"client_id": client, "response_type": "code", "scope": "openid email profile", "nonce": "n", "state": "s",
             "redirect_uri": "http://127.0.0.1/callback", "code_challenge": challenge, "code_challenge_method": "S256"}))
        check("url" in seen, "no code came back")
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(seen["url"]).query)["code"][0]
        _, text = browser.open(issuer + "/token", urllib.parse.urlencode(
            {"grant_type": "authorization_code", "code": code, "client_id": client, "code_verifier": verifier,
             "redirect_uri": "http://127.0.0.1/callback"}).encode())
        return json.loads(text)["id_token"]

    def show(token, nonce="n"):
        request = urllib.request.Request(url + "/api/v1/login/oidc", json.dumps({"token": token, "nonce": nonce}).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
    token = token_of("stoker")
    status, answer = show(token, "")
    check(status == 401 and "somebody else" in answer["detail"], str(answer))
    status, answer = show(token)
    check(status == 201 and answer["caller"]["name"] == "anna@example.org", str(answer))
    status, answer = show(token)
    check(status == 401 and "used already" in answer["detail"], str(answer))
    # The same token with another last letter of its signature is another text, and the same token.
    status, answer = show(token_of("another"))
    check(status == 401 and "is for another" in answer["detail"], str(answer))
    head, body, signature = token_of("stoker").split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["groups"] = ["leads"]
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    status, answer = show(f"{head}.{forged}.{signature}")
    check(status == 401 and "signature" in answer["detail"], str(answer))
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    status, answer = show(f"{none}.{forged}.")
    check(status == 401 and "signed by none" in answer["detail"], str(answer))
    refused = t.call("audit", "--refused", "-o", "json").stdout
    check(refused.count('"signOn"') >= 5, refused)


def test_a_server_without_a_provider_says_so(t):
    t.up("--listen", "127.0.0.1:0")
    url = json.load(open(os.path.join(t.folder, "server.json")))["url"]
    said = t.call("login", "--sso", "--server", url, exit=None).stderr
    check("no provider for single sign-on" in said and "oidc:" in said, said)
    wrong = t.write("bad.yaml", "oidc: {issuer: http://login.example.org, client_id: x, groups: [{group: a, role: king, "
                                "project: b}]}\n")
    said = t.call("config", "check", wrong, exit=2).stderr
    check("without TLS" in said and "king" in said and "'b' is no project" in said, said)


if __name__ == "__main__":
    main(dict(globals()))
