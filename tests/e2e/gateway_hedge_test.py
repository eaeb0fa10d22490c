"""A replica that does not begin to answer: with `hedge` the request goes to a second one as well, and whoever answers first is taken."""

import re
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, equal, tokens_of
from harness import check, main, wait_for


def counter(g, name):
    return int(re.search(rf"^stoker_gateway_{name} (\d+)$", g.get("/metrics")[1], re.M).group(1))


# The routing draws lots: ask until the slow one was first.
def hedged(g, send):
    for i in range(40):
        before = counter(g, "hedges_total")
        began = time.monotonic()
        answer = send(i)
        if counter(g, "hedges_total") > before:
            return answer, time.monotonic() - began, i + 1
    check(False, "the slow replica was never asked first")


# Whoever waits for a replica that hangs would wait as long as it does, though the next one is idle.
def test_a_second_replica_answers_for_one_that_does_not_begin(t):
    slow, quick = Upstream(), Upstream()
    slow.slow_s = 20
    g = Gateway(t, upstreams=[slow, quick], models=[{"name": "demo", "hedge": "300ms"}]).start()
    (status, headers, answer), took_s, asked = hedged(g, lambda i: g.post(ask(tokens=2, user=str(i))))
    equal((status, answer["usage"]["completion_tokens"]), (200, 2), "answered by the other one")
    check(took_s < 10, f"{took_s:.1f} s")
    check(re.fullmatch(r"[0-9a-f]{8}=outrun,[0-9a-f]{8}=ok", headers["x-stoker-attempts"]), headers["x-stoker-attempts"])
    # Given up at once: it computes for nobody.
    wait_for("the slow one is left", lambda: slow.open == 0)
    row = g.settled(asked)
    equal((row["outcomes"], row["tokens_out"]), ({"ok": asked}, 2 * asked), "charged once each")
    equal(counter(g, "hedges_won_total"), 1, "won")

    # The same of a stream.
    def stream(i):
        s = g.stream(ask(tokens=3, user=f"s{i}"))
        events = s.rest()
        s.close()
        return events
    events, took_s, more = hedged(g, stream)
    equal((tokens_of(events), events[-1]), (3, "[DONE]"), "a stream")
    check(took_s < 10, f"{took_s:.1f} s")
    equal(g.settled(asked + more)["outcomes"], {"ok": asked + more}, "charged once each")
    equal(g.verify()["open"], 0, "nothing is left open")


# A second replica that is busy, or dies, must not cost the answer that the first one is about to give.
def test_a_second_replica_that_refuses_costs_nothing(t):
    for order in ({"status": 429, "retry_after": 1}, {"status": 503}, {"status": 400}, {"die_after": -1}):
        slow, quick = Upstream(), Upstream()
        slow.slow_s, quick.orders = 1.5, order
        g = Gateway(t, upstreams=[slow, quick], models=[{"name": "demo", "hedge": "200ms"}], folder=str(order)[2:5] + str(order.get("status"))).start()
        slow.orders = {"status": None, "die_after": None}
        for i in range(20):
            status, headers, answer = g.post(ask(tokens=2, user=str(i)))
            if headers.get("x-stoker-attempts", "").endswith("=ok") and counter(g, "hedges_total") > 0:
                break
        equal(status, 200, f"{order}: {answer}")
        check(headers["x-stoker-attempts"].count("=") == 2, headers["x-stoker-attempts"])
        equal(counter(g, "hedges_won_total"), 0, f"{order}: won")
        g.kill()


# When all replicas are slow, twice the requests would be the end of them: of ten requests one goes twice.
def test_few_requests_go_to_two_replicas(t):
    slow = [Upstream(), Upstream()]
    for each in slow:
        each.slow_s = 0.5
    g = Gateway(t, upstreams=slow, models=[{"name": "demo", "hedge": "100ms"}]).start()
    for i in range(12):
        equal(g.post(ask(tokens=1, user=str(i)))[0], 200, "answered")
    equal(counter(g, "hedges_total"), 4, "three at once, and one of ten")
    equal(g.settled(12)["outcomes"], {"ok": 12}, "charged once each")


if __name__ == "__main__":
    main(dict(globals()))
