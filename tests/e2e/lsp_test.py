"""stoker lsp with the client library that editors use (vscode-languageserver-protocol of npm, see lsp/client.cjs)."""

import json
import os
import pathlib
import re
import subprocess

from harness import Failure, check, main

HERE = pathlib.Path(__file__).resolve().parent
CLIENT = HERE.parent.parent / "build" / "lsp-client"
MOST_MS = 100  # the goal is 10 ms on a quiet machine; a busy one must not fail a test


def client(t, scenario):
    package = json.loads((HERE / "lsp" / "package.json").read_text())
    if not (CLIENT / "node_modules/vscode-languageserver-protocol").exists():
        CLIENT.mkdir(parents=True, exist_ok=True)
        words = [f"{name}@{version}" for name, version in package["dependencies"].items()]
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix",
                        CLIENT, *words], check=True, timeout=300, stdin=subprocess.DEVNULL)
    rules = ",".join(rule["id"] for rule in json.loads(t.call("check", "--list", "-o", "json").stdout))
    done = subprocess.run(["node", HERE / "lsp/client.cjs", t.binary, t.work, scenario], capture_output=True, text=True, timeout=120,
                          env=dict(t.environment, NODE_PATH=str(CLIENT / "node_modules"), STOKER_RULES=rules))
    if done.returncode != 0:
        raise Failure(f"{scenario}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def test_a_server_starts_and_ends_with_its_editor(t):
    client(t, "lifecycle")


def test_diagnostics_follow_edits_in_utf16(t):
    client(t, "edits")


def test_quick_fixes_and_ignores_are_offered(t):
    client(t, "actions")


def test_a_size_tells_what_it_is(t):
    client(t, "hover")


def test_the_workspace_configures_it(t):
    client(t, "configuration")


def test_rules_over_several_files_come_when_it_is_quiet(t):
    client(t, "joins")


def test_an_edit_of_a_long_file_is_answered_at_once(t):
    text = client(t, "latency")
    print(text.strip())
    check(float(re.search(r"p99 ([\d.]+)", text)[1]) < MOST_MS, text)


def test_what_is_no_message_ends_it(t):
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"x" * 5000, b"Content-Length: 99999999999\r\n\r\n"):
        done = subprocess.run([t.binary, "lsp"], input=text, capture_output=True, env=t.environment, timeout=30)
        check(done.returncode == 2 and b"language server protocol" in done.stderr, done)
    for body in (b"{", b"[]", b"{\"method\":\"initialize\"}", b"{\"id\":1,\"method\":\"textDocument/hover\"}",
                 b"{\"method\":\"textDocument/didOpen\",\"params\":{\"textDocument\":7}}",
                 b"{\"method\":\"textDocument/didChange\",\"params\":[]}"):
        framed = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        done = subprocess.run([t.binary, "lsp"], input=framed, capture_output=True, env=t.environment, timeout=30)
        check(done.returncode == 1 and not done.stderr, (body, done))


if __name__ == "__main__":
    main(globals())
