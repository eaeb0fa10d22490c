"""The account of a gateway in PostgreSQL, and a second gateway that takes over: nothing that was settled is lost, or there twice.

    python3 tests/e2e/gateway_postgres_test.py --stoker build/release/stoker [NAME...]      STOKER_E2E_KILLS=N kills more often"""

import json
import os
import signal
import threading
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, equal
from harness import check, main, wait_for
from postgres_test import Postgres

KILLS = int(os.environ.get("STOKER_E2E_KILLS", "3"))


def gateways(t, postgres, upstream, count=2):
    return [Gateway(t, [upstream], folder=f"g{i}", ledger=f"{{database: '{postgres.url}', segment: 64KiB}}") for i in range(count)]


def stand_by(gateway):
    """Started behind one that leads; says so and does not listen."""
    gateway.process = gateway.t.start("serve", "-o", "json", "--config", os.path.join(gateway.folder, "gateway.yaml"))
    wait_for("it stands by", lambda: "standing by" in open(gateway.process.err_path).read())
    return gateway


def takes_over(gateway):
    def ready():
        text = open(gateway.process.out_path).read()
        check(gateway.process.poll() is None, open(gateway.process.err_path).read())
        return json.loads(text) if text.strip().endswith("}") else None
    gateway.told = wait_for("it takes over", ready, 60)
    gateway.port = int(gateway.told["url"].rsplit(":", 1)[1])
    return gateway


def test_another_gateway_takes_over_and_settles_what_was_left_open(t):
    with Postgres() as postgres:
        upstream = Upstream()
        first, second = gateways(t, postgres, upstream)
        first.start()
        equal(first.told["ledger"], postgres.url, "where the account is")
        for _ in range(3):
            equal(first.post(ask(5))[0], 200, "an answer")
        streams = [first.stream(ask(2000, gap=0.02, user=f"s{i}")) for i in range(5)]
        shown = [len([stream.event() for _ in range(10)]) for stream in streams]
        stand_by(second)
        first.kill()
        began = time.monotonic()
        takes_over(second)
        print(f"    took over after {time.monotonic() - began:.1f} s")
        equal(second.told["recovered"], len(shown), "what was left open")
        row = second.settled(3 + len(shown))
        equal((row["outcomes"], row["recovered"]), ({"ok": 3, "gateway_crash": 5}, 5), "each once")
        equal(second.post(ask(5))[0], 200, "it goes on")
        second.settled(4 + len(shown))
        check(second.verify()["open"] == 0 and second.verify()["settled"] == 9, str(second.verify()))
        said = t.call("serve", "account", *second.whose()).stdout
        check("anna" in said and "demo" in said, said)
        equal(second.terminate(), 0, "it ends")


def test_killed_again_and_again_nothing_that_was_answered_is_lost_or_there_twice(t):
    with Postgres() as postgres:
        upstream = Upstream()
        pair = gateways(t, postgres, upstream)
        leader = pair[0].start()
        answered, stop, longest = [], threading.Event(), 0

        def client():
            while not stop.is_set():
                try:
                    status, heads, _ = leader.post(ask(2), timeout=5)
                    if status == 200:
                        answered.append(heads["x-request-id"])
                except OSError:  # nobody listens
                    time.sleep(0.05)
        clients = [threading.Thread(target=client) for _ in range(4)]
        for each in clients:
            each.start()
        try:
            for round_ in range(KILLS):
                before = len(answered)
                other = stand_by(pair[1 - round_ % 2])
                wait_for("some were answered", lambda: len(answered) > before + 20)
                pair[round_ % 2].kill()
                began = time.monotonic()
                leader = takes_over(other)
                longest = max(longest, time.monotonic() - began)
        finally:
            stop.set()
            for each in clients:
                each.join()
        print(f"    {KILLS} kills, {len(answered)} answered, {longest:.1f} s to the next at most")
        equal(leader.terminate(), 0, "it ends")
        equal(len(set(answered)), len(answered), "names")
        row = leader.row()
        check(row["outcomes"]["ok"] >= len(answered), f"{len(answered)} were answered: {row}")
        told = leader.verify()  # one that is settled twice is not sound
        equal((told["open"], told["reserved"]), (0, told["settled"]), "each reserved one is settled")


def test_one_that_slept_through_its_lease_writes_nothing_more(t):
    with Postgres() as postgres:
        upstream = Upstream()
        first, second = gateways(t, postgres, upstream)
        first.start()
        first.post(ask(3))
        stand_by(second)
        first.process.send_signal(signal.SIGSTOP)
        takes_over(second)
        second.post(ask(3))
        first.process.send_signal(signal.SIGCONT)
        equal(first.process.wait(timeout=60), 3, "it ends when it wakes")
        check("leads now" in open(first.process.err_path).read(), open(first.process.err_path).read())
        second.settled(2)
        check(second.verify()["sound"], "one account")
        equal(second.terminate(), 0, "it ends")


def test_the_database_may_restart(t):
    with Postgres() as postgres:
        g = gateways(t, postgres, Upstream(), 1)[0].start()
        stream = g.stream(ask(100, gap=0.02))
        stream.event()
        postgres.restart()
        equal(stream.rest()[-1], "[DONE]", "the stream")
        equal(g.post(ask(2))[0], 200, "a request")
        g.settled(2)
        equal(g.terminate(), 0, "it ends")


def test_what_cannot_be_is_told_before_it_listens(t):
    g = Gateway(t, ledger="{database: 'postgresql://me:secret@db/stoker'}")
    told = t.call("serve", exit=2).stderr
    check("secret" not in told and "password" in told, told)
    g.ledger = "{database: 'postgresql:///x?host=/nowhere'}"
    g.write()
    told = t.call("serve", exit=3).stderr
    check("/nowhere" in told, told)


if __name__ == "__main__":
    main(dict(globals()))
