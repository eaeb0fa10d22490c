"""Several gateways that share limits and budgets: real processes, one of them the home, killed at the worst moments. Only counts
are looked at: what was admitted is held against what the time that really passed allows."""

import http.client
import math
import threading
import time

from fake_upstream import Upstream
from gateway_harness import Gateway, ask, free_port
from harness import check, main, wait_for

BURST, PER_MINUTE = 60, 6
KEYS = [{"name": "anna", "requests_per_minute": PER_MINUTE, "request_burst": BURST}, {"name": "ben", "concurrent": 4},
        {"name": "carl", "budget": "$5"}, {"name": "dora", "tokens_per_minute": 600, "token_burst": 1000},
        {"name": "eve"}]
PRICE = "{request: 1000000}"  # a dollar each


class Four:
    def __init__(self, t):
        t.environment["GATEWAYS_SECRET"] = "of-the-four"
        self.t, self.upstreams, self.port = t, [Upstream()], free_port()
        self.all = [self.make(i) for i in range(4)]
        self.began = time.monotonic()
        for gateway in self.all:
            self.begin(gateway)

    def make(self, i):
        home = "" if i == 0 else f"home: 'http://127.0.0.1:{self.port}', "
        return Gateway(self.t, self.upstreams, keys=KEYS, price=PRICE, folder=f"g{i}",
                       more=f"name: {i + 1}\nshared_limits: {{{home}secret_env: GATEWAYS_SECRET}}\n")

    def begin(self, gateway):
        return gateway.start(*(["--listen", f"127.0.0.1:{self.port}"] if gateway is self.all[0] else []))

    def post(self, key, each, gateways=None):
        """So many requests through each of them, all at once; how many had which status, and the codes of those refused."""
        seen, codes, lock = {}, set(), threading.Lock()

        def some(gateway):
            for _ in range(each):
                try:
                    status, headers, body = gateway.post(ask(max_tokens=4), key=key)
                except OSError:  # it was killed
                    status = 0
                if status not in (0, 200):
                    check(int(headers["retry-after"]) >= 1, str(headers))
                with lock:
                    seen[status] = seen.get(status, 0) + 1
                    if status not in (0, 200):
                        codes.add(body["error"]["code"])
        threads = [threading.Thread(target=some, args=(gateway,)) for gateway in gateways or self.all]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen, codes

    def allowed(self):
        return BURST + math.ceil((time.monotonic() - self.began) * PER_MINUTE / 60)


def test_f28_f29_four_gateways_exceed_no_limit_whoever_is_killed(t):
    four = Four(t)
    home, second, third, fourth = four.all
    admitted = 0
    seen, _ = four.post("anna", 8)
    check(seen == {200: 32}, str(seen))
    admitted += 32
    # One is killed while requests go through it; what it had admitted stays counted.
    killer = threading.Timer(0.05, fourth.kill)
    killer.start()
    seen, codes = four.post("anna", 20)
    killer.join()
    admitted += seen.get(200, 0)
    check(codes <= {"rate_limit_exceeded"} and 429 in seen, f"{seen} {codes}")
    check(admitted <= four.allowed() * 1.01, f"{admitted} of {four.allowed()}")
    check(admitted >= BURST - 1, f"{admitted}: one at most may be lost with the gateway that was killed")

    # Streams at once: as many as one may have over all of them, and those of a gateway that is gone come back.
    streams = [gateway.stream(ask(tokens=5000, gap=0.05), key="ben") for gateway in (home, second, third, third)]
    check([s.status for s in streams] == [200] * 4, str([s.status for s in streams]))
    for gateway in (home, second, third):
        status, _, body = gateway.post(ask(), key="ben")
        check(status == 429 and body["error"]["code"] == "concurrency_exceeded", f"{status} {body}")
    third.kill()
    wait_for("the streams of the third are forgotten", lambda: second.post(ask(), key="ben")[0] == 200, 60)
    check(second.metric("limit_home_reached") == 1 and home.metric("limit_gateways") == 1, "who is there")
    four.begin(third)

    # Money.
    seen, codes = four.post("carl", 4, [home, second, third])
    check(seen == {200: 5, 429: 7} and codes == {"budget_exceeded"}, f"{seen} {codes}")

    # Without the home nothing that has a limit begins, what goes on goes on, and who has no limit does not notice.
    home.kill()
    status, headers, body = second.post(ask(), key="anna")
    check(status == 503 and body["error"]["code"] == "limits_unavailable" and headers["retry-after"] == "1", f"{status} {body}")
    check(second.post(ask(), key="eve")[0] == 200, "a key without limits")
    check(streams[1].event() is not None, "a stream under way")
    four.begin(home)
    wait_for("the home decides again", lambda: second.post(ask(), key="anna")[0] in (200, 429), 60)
    seen, codes = four.post("anna", 10, [home, second, third])
    check(seen.get(200, 0) <= math.ceil((time.monotonic() - four.began) * PER_MINUTE / 60) and codes <= {"rate_limit_exceeded"},
          f"{seen} {codes}: the burst is not had a second time")
    seen, codes = four.post("carl", 3, [home, second, third])
    check(seen == {429: 9} and codes == {"budget_exceeded"}, f"{seen} {codes}")
    # The one stream that is left, of the second, counts: three more begin.
    more = [gateway.stream(ask(tokens=5000, gap=0.05), key="ben") for gateway in (home, second, third)]
    check([s.status for s in more] == [200] * 3, str([s.status for s in more]))
    check(third.post(ask(), key="ben")[0] == 429, "the fifth")
    for stream in [streams[1], *more]:
        stream.close()
    wait_for("those who left are counted no more", lambda: third.post(ask(), key="ben")[0] == 200, 60)

    # Each account is sound, and all of them together charged carl what his budget is.
    for gateway in (home, second, third):
        gateway.terminate()
    check(sum(float(row["usd"]) for gateway in four.all for row in gateway.account()["rows"] if row["key"] == "carl") == 5.0, "five dollars")
    for gateway in (home, second, third):
        check(gateway.verify()["open"] == 0, "nothing is left open")


def test_tokens_that_were_not_used_come_back_at_the_home(t):
    """Four requests each set aside most of what fits at once, one after the other, and use a tenth of it."""
    four = Four(t)
    for gateway in four.all:
        status, _, body = wait_for("there is room", lambda: (lambda got: got if got[0] != 429 else None)(gateway.post(ask(tokens=3, max_tokens=800), key="dora")), 60)
        check(status == 200, f"{status} {body}")
    check(time.monotonic() - four.began < 120, "at 600 a minute 3,200 set aside and kept would take 220 s")


def test_who_does_not_know_the_secret_is_told_nothing(t):
    four = Four(t)
    home, second = four.all[:2]
    for key, status, code in (("anna", 401, "invalid_api_key"),):
        got, _, body = home.post("{}", path="/stoker/limits", key=key)
        check(got == status and body["error"]["code"] == code, f"{got} {body}")
    connection = http.client.HTTPConnection("127.0.0.1", second.port, timeout=30)
    connection.request("POST", "/stoker/limits", "{}", {"Authorization": "Bearer of-the-four"})
    answer = connection.getresponse()
    check(answer.status == 400 and b"counts no limits" in answer.read(), str(answer.status))


if __name__ == "__main__":
    main(dict(globals()))
