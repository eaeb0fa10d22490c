"""Files and batches of the gateway: handed in, answered line by line at the price of any other request, gone on with after kill -9,
cancelled; by plain HTTP, and by the official client of the OpenAI API."""

import json
import subprocess

from fake_upstream import Upstream
from gateway_clients_test import client_python
from gateway_harness import Gateway, ask, equal
from harness import check, main, wait_for


def lines_of(count, tokens=2, start=0, **more):
    return "".join(json.dumps({"custom_id": f"line-{i}", "method": "POST", "url": "/v1/chat/completions", "body": ask(tokens, **more)}) + "\n" for i in range(start, start + count))


def upload(g, text, key="anna", purpose="batch"):
    body = ("--xyz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose + "\r\n--xyz\r\n"
            "Content-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\nContent-Type: application/octet-stream\r\n\r\n" + text + "\r\n--xyz--\r\n")
    return g.post(body, "/v1/files", key=key, headers={"Content-Type": "multipart/form-data; boundary=xyz"})


def begin(g, text, key="anna", **more):
    status, _, file = upload(g, text, key)
    equal((status, file.get("object")), (200, "file"), str(file))
    status, _, batch = g.post(dict({"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}, **more), "/v1/batches", key=key)
    equal((status, batch.get("object")), (200, "batch"), str(batch))
    return batch["id"]


def ended(g, batch, limit_s=30):
    return wait_for("the batch has ended", lambda: (lambda b: b if b["status"] in ("completed", "failed", "cancelled", "expired") else None)(g.get(f"/v1/batches/{batch}")[1]), limit_s)



def content(g, file):
    text = g.get(f"/v1/files/{file}/content")[1]
    return [json.loads(line) for line in (text if isinstance(text, str) else json.dumps(text)).splitlines()]


def test_a_batch_is_answered_in_its_order_and_charged_as_any_other_request(t):
    g = Gateway(t, keys=[{"name": "anna"}, {"name": "ben", "project": "other"}]).start()
    text = lines_of(20) + lines_of(1, start=20, status=400)
    done = ended(g, begin(g, text, metadata={"of": "night"}))
    equal((done["status"], done["request_counts"], done["metadata"]), ("completed", {"total": 21, "completed": 20, "failed": 1}, {"of": "night"}), str(done))
    equal((done["usage"]["input_tokens"], done["usage"]["output_tokens"]), (140, 40), "usage")
    out = content(g, done["output_file_id"])
    equal([row["custom_id"] for row in out], [f"line-{i}" for i in range(20)], "in order")
    check(all(row["response"]["status_code"] == 200 and row["error"] is None and row["response"]["request_id"].startswith("req_") for row in out), str(out[0]))
    equal(out[0]["response"]["body"]["choices"][0]["message"]["content"], "tok tok ", "the answer")
    bad = content(g, done["error_file_id"])
    equal([(row["custom_id"], row["response"]["status_code"]) for row in bad], [("line-20", 400)], "what failed")
    row = g.settled(21)
    equal((row["tokens_out"], row["outcomes"]), (40, {"ok": 20, "rejected": 1}), "in the account of the key")
    # Another project sees nothing of it.
    equal((g.get(f"/v1/batches/{done['id']}", "ben")[0], g.get(f"/v1/files/{done['output_file_id']}", "ben")[0], g.get("/v1/batches", "ben")[1]["data"]), (404, 404, []), "hidden")
    equal([b["id"] for b in g.get("/v1/batches")[1]["data"]], [done["id"]], "listed")
    equal(len(g.get("/v1/files")[1]["data"]), 3, "files")
    for wrong, code in ((lines_of(2) + lines_of(1), "duplicate_custom_id"), ("{}\n", "missing_required_parameter"), ("", "empty_file")):
        failed = ended(g, begin(g, wrong))
        equal((failed["status"], failed["errors"]["data"][0]["code"]), ("failed", code), str(failed))
    equal(len(g.upstreams[0].requests), 21, "of a wrong file nothing is sent")
    equal(upload(g, "x", purpose="fine-tune")[0], 400, "purpose")
    equal(g.post({"input_file_id": "file-none", "endpoint": "/v1/chat/completions", "completion_window": "24h"}, "/v1/batches")[0], 400, "no file")
    equal(g.post({"input_file_id": "x", "endpoint": "/v1/files", "completion_window": "24h"}, "/v1/batches")[2]["error"]["param"], "endpoint", "endpoint")


def test_killed_in_the_middle_it_goes_on_where_it_was(t):
    up = Upstream()
    g = Gateway(t, [up], more="batches: {at_once: 2}\n").start()
    batch = begin(g, lines_of(40, delay=0.05))
    for stop in (6, 18):
        wait_for("some are answered", lambda: g.get(f"/v1/batches/{batch}")[1]["request_counts"]["completed"] >= stop)
        g.kill()
        g.start()
    done = ended(g, batch)
    equal((done["status"], done["request_counts"]), ("completed", {"total": 40, "completed": 40, "failed": 0}), str(done))
    equal([row["custom_id"] for row in content(g, done["output_file_id"])], [f"line-{i}" for i in range(40)], "each once, in order")
    equal((done["usage"]["input_tokens"], done["usage"]["output_tokens"]), (280, 80), "usage, over all three processes")
    # What was under way at a kill is asked once more; what was answered is not.
    check(40 <= len(up.requests) <= 40 + 2 * 2, f"{len(up.requests)} requests")
    row = g.row()
    check(row["outcomes"]["ok"] <= 40 + 2 * 2, str(row))
    equal(g.verify()["open"], 0, "all settled")


def test_a_batch_is_cancelled_and_its_key_revoked(t):
    g = Gateway(t, keys=[{"name": "anna"}, {"name": "ben"}], more="batches: {at_once: 2}\n").start()
    batch = begin(g, lines_of(200, delay=0.1))
    wait_for("it runs", lambda: g.get(f"/v1/batches/{batch}")[1]["request_counts"]["completed"] >= 2)
    equal(g.post("", f"/v1/batches/{batch}/cancel")[2]["status"], "cancelling", "asked")
    done = ended(g, batch)
    counts = done["request_counts"]
    equal((done["status"], counts["completed"] + counts["failed"]), ("cancelled", 200), str(done))
    left = content(g, done["error_file_id"])
    equal((left[-1]["error"]["code"], left[-1]["response"]), ("batch_cancelled", None), "what was not sent")
    equal(len(content(g, done["output_file_id"])), counts["completed"], "what was answered is kept")
    other = begin(g, lines_of(30, delay=0.1), key="ben")
    wait_for("it runs", lambda: g.get(f"/v1/batches/{other}", "ben")[1]["request_counts"]["completed"] >= 2)
    g.write([{"name": "anna"}, {"name": "ben", "revoked": True}])
    done = ended(g, other)
    check(done["request_counts"]["failed"] > 20, str(done))
    equal(content(g, done["error_file_id"])[-1]["response"]["status_code"], 401, "a key that is no longer valid asks nothing")
    # Over a limit it waits, as any client would.
    g.write([{"name": "anna", "requests_per_minute": 600, "request_burst": 2}])
    done = ended(g, begin(g, lines_of(8)))
    equal(done["request_counts"], {"total": 8, "completed": 8, "failed": 0}, "within its limit")
    equal(g.terminate(), 0, "exit")


CLIENT = """
import json, sys, time, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="stk_anna", max_retries=0)
file = client.files.create(file=open(sys.argv[2], "rb"), purpose="batch")
assert client.files.retrieve(file.id).bytes == file.bytes and [f.id for f in client.files.list()] == [file.id]
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"})
for _ in range(300):
    batch = client.batches.retrieve(batch.id)
    if batch.status == "completed":
        break
    time.sleep(0.05)
assert batch.status == "completed" and batch.request_counts.completed == 5 and batch.metadata == {"a": "b"}, batch
rows = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
assert [b.id for b in client.batches.list()] == [batch.id]
assert client.files.delete(file.id).deleted
print(len(rows))
"""


def test_the_official_client_hands_in_a_batch(t):
    python = client_python()
    g = Gateway(t).start()
    done = subprocess.run([python, "-c", CLIENT, g.told["url"], t.write("in.jsonl", lines_of(5))], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and done.stdout.strip() == "5", done.stdout + done.stderr[-1500:])


if __name__ == "__main__":
    main(dict(globals()))
