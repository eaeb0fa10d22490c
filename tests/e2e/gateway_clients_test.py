"""The official client of the OpenAI API (PyPI, pinned in requirements_clients.txt) against the gateway: whoever changes a base URL
and a key gets what they are used to. Also over TLS."""

import json
import os
import pathlib
import subprocess

from gateway_harness import Gateway
from harness import check, main
from pythons import pinned_python

HERE = pathlib.Path(__file__).resolve().parent


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
