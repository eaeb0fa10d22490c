"""The official client of the OpenAI API (PyPI, pinned in requirements_clients.txt) against the gateway: whoever changes a base URL
and a key gets what they are used to. Also over TLS."""

import fcntl
import json
import os
import pathlib
import subprocess
import sys

from gateway_harness import Gateway
from harness import Skipped, check, main

HERE = pathlib.Path(__file__).resolve().parent


def pinned_python(requirements, name, *options):
    """A Python with pinned packages, in build/NAME; made once, again when their file changes. Test programs run beside each other and
    some want the same one: one makes it, the others wait (made by two at once, it stayed broken and its stamp said that it was not)."""
    wanted, venv = requirements.read_text(), HERE.parents[1] / "build" / name
    python, stamp = venv / "bin" / "python", venv / "pinned.txt"
    venv.parent.mkdir(exist_ok=True)
    with open(venv.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            make_venv(requirements, wanted, venv, options)
    return str(python)


def make_venv(requirements, wanted, venv, options):
    python, stamp = venv / "bin" / "python", venv / "pinned.txt"
    try:
        for words in ([sys.executable, "-m", "venv", "--clear", str(venv)],
                      [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "20", "--retries", "2",
                       *options, "-r", str(requirements)]):
            done = subprocess.run(words, capture_output=True, text=True, timeout=240)
            if done.returncode != 0:
                raise Skipped(f"no {wanted.split()} from PyPI: {done.stderr.strip()[-300:]}")
    except subprocess.TimeoutExpired:
        raise Skipped(f"no {wanted.split()} from PyPI within 240 s") from None
    stamp.write_text(wanted)


def client_python():
    return pinned_python(HERE / "requirements_clients.txt", "clients-venv")


def calls(t, python, url, more=None):
    done = subprocess.run([python, str(HERE / "openai_calls.py"), url + "/v1", "stk_anna", "demo"], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, **(more or {})))
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    check(done.returncode == 0 and len(seen) == 12 and all(each["ok"] for each in seen), f"{done.stdout}{done.stderr[-2000:]}")
    return {each["call"]: each["saw"] for each in seen}


def test_every_call_of_the_official_client(t):
    python = client_python()
    g = Gateway(t).start()
    seen = calls(t, python, g.told["url"])
    check(seen["chat"] == 5 and seen["chat_stream_usage"] == 5, str(seen))
    check(seen["errors"] == ["invalid_api_key", "model_not_found", "invalid_type"], str(seen))
    row = g.settled(18)
    check(row["outcomes"]["ok"] + row["outcomes"].get("client_cancel", 0) == 18, str(row))


def test_the_same_over_tls(t):
    python = client_python()
    for words in (["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                   "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],):
        made = subprocess.run(["openssl", *words], cwd=t.work, capture_output=True, text=True)
        check(made.returncode == 0, made.stderr)
    g = Gateway(t, more="tls_cert: cert.pem\ntls_key: key.pem\n").start()
    check(g.told["url"].startswith("https://"), str(g.told))
    calls(t, python, g.told["url"], {"SSL_CERT_FILE": os.path.join(t.work, "cert.pem")})
    g.settled(18)


if __name__ == "__main__":
    main(dict(globals()))
