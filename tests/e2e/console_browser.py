"""A real Chromium for tests of the web console: one page, driven line by line by console/drive.cjs."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import urllib.request

from harness import Failure, Skipped, check

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
CHROMIUM = os.environ.get("STOKER_CHROMIUM", "/usr/bin/chromium")
SHOTS = os.environ.get("STOKER_CONSOLE_SHOTS", "")

def packages():
    """web/node_modules, as the lock says."""
    if not shutil.which("npm"):
        raise Skipped("npm is missing: apt-get install nodejs npm")
    stamp, lock = WEB / "node_modules" / ".stoker-lock", (WEB / "package-lock.json").read_bytes()
    wanted = hashlib.sha256(lock).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        done = subprocess.run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=WEB, capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Skipped(f"npm ci in web/: {done.stderr.strip()[-300:] or done.stdout.strip()[-300:]}")
        stamp.write_text(wanted)


class Browser:
    """One page, driven line by line."""

    def __init__(self, t):
        packages()
        if not os.access(CHROMIUM, os.X_OK):
            raise Skipped(f"{CHROMIUM} is missing: apt-get install chromium")
        self.t = t
        self.process = subprocess.Popen(["node", str(ROOT / "tests/e2e/console/drive.cjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(os.path.join(t.base, "browser.err"), "w"), text=True,
                                        env=dict(t.environment, NODE_PATH=str(WEB / "node_modules"), STOKER_CHROMIUM=CHROMIUM))
        self.open()

    def __call__(self, act, **what):
        try:
            self.process.stdin.write(json.dumps({"act": act, **what}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failure("the browser is gone: " + open(os.path.join(self.t.base, "browser.err")).read()[-2000:])
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(f"{act} {what}: {answer['error'][:600]}\n--- the page\n{answer.get('page', '')}")
        return answer["value"]

    def open(self, **how):
        self("open", **how)

    def see(self, text, **how):
        self("wait", text=text, **how)

    def gone(self, **what):
        self("wait", state="detached", **what)

    def click(self, name, role="button"):
        self("click", role=role, name=name)

    def fill(self, label, value):
        self("fill", label=label, value=value)

    def page(self, path):
        self("hash", hash=path)

    def menu(self):
        return [each.strip() for each in self("texts", css="header nav a")]

    def text(self, css="main"):
        return self("text", css=css)

    def well(self):
        """Nothing was refused by the policy of the page, and no script failed."""
        heard = self("heard")
        for kind, found in heard.items():
            check(not found, f"{kind}: {found[:3]}")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


@contextlib.contextmanager
def browser(t):
    made = Browser(t)
    try:
        yield made
        made.well()
    finally:
        made.close()


def url(t):
    return json.load(open(os.path.join(t.folder, "server.json")))["url"]


def token(t):
    return open(os.path.join(t.folder, "token")).read().strip()


def ask(t, method, path, body=None, secret=None):
    asked = urllib.request.Request(url(t) + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                   headers={"Authorization": "Bearer " + (secret or token(t)), "Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def by_token(t, b):
    b("goto", url=url(t) + "/#token=" + token(t))
    b("wait", css="header nav")


def by_password(t, b, name, password):
    b.open()
    b("goto", url=url(t) + "/")
    b.fill("Name", name)
    b.fill("Password", password)
    b.click("Log in")
    b("wait", css="header nav")


def people(t):
    """ann develops in p-2, root is admin of everything; a run in p-2 and one in p-1."""
    ask(t, "POST", "/api/v1/organisations", {"name": "hospital", "project": "imaging"})
    ask(t, "POST", "/api/v1/users", {"name": "ann", "role": "developer", "project": "p-2", "password": "a long enough word"})
    ask(t, "POST", "/api/v1/users", {"name": "root", "role": "admin", "level": "provider", "project": "p-1", "password": "another long word"})


def look(b, name, how):
    if SHOTS:
        os.makedirs(SHOTS, exist_ok=True)
        b("shot", path=os.path.join(SHOTS, f"{name}-{how}.png"))
    found = b("axe")
    wide = b("eval", code="document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        found.append(f"{wide} px wider than the window")
    return [f"{name}, {how}: {each}" for each in found]
