import assert from "node:assert/strict";
import { test } from "node:test";
import { many, absolute, ago, bytes, dollars, hours, inUnit, money, percent, plain, seconds, short } from "../src/format";

test("a span of time keeps the digits that matter, and its unit", () => {
    assert.deepEqual([0, 0.00000042, 0.431, 12.44, 200, 3600, 15_000, 300_000].map(seconds),
        ["0 s", "0.42 µs", "431 ms", "12.4 s", "3 min 20 s", "1 h", "4 h 10 min", "3.5 d"]);
    assert.equal(seconds(3599.6), "1 h", "never 60 min");
    assert.equal(seconds(undefined), "–");
    assert.equal(seconds(Number.NaN), "–", "what is not known is not 0");
});

test("bytes, money and shares", () => {
    assert.deepEqual([0, 1023, 1024, 25_276_502_016].map(bytes), ["0 B", "1023 B", "1.0 KiB", "23.5 GiB"]);
    assert.deepEqual([0, 1200, 20_000, 6_919_112_000].map((each) => money(each)), ["$0.00", "$0.0012", "$0.02", "$6,919"]);
    assert.equal(dollars(12, "EUR"), "EUR 12.00");
    assert.deepEqual([0, 0.004, 0.37, 1].map(percent), ["0 %", "0.4 %", "37 %", "100 %"]);
    assert.equal(hours(0.001), "< 0.01 h", "little is not nothing");
    assert.equal(inUnit(582_250_823, "bytes"), "555 MiB");
    assert.equal(short(0.45), "0.45");
    assert.equal(inUnit(89, "microusd"), "$0.000089");
    assert.deepEqual([many(1, "rank"), many(0, "rank")], ["1 rank", "0 ranks"]);
});

test("times are told from now, with the absolute one", () => {
    const now = Date.parse("2026-11-28T12:00:00Z");
    assert.equal(ago("2026-11-28T11:58:30Z", now), "1 min ago");
    assert.equal(ago("2026-11-28T14:00:00Z", now), "in 2 h");
    assert.equal(absolute("2026-11-28T11:58:30.123456Z"), "2026-11-28 11:58:30 UTC");
    assert.equal(ago("not a time", now), "not a time");
});

test("a log is text: no colours, no moves of the cursor, nothing that turns its direction", () => {
    assert.equal(plain("\x1b[31mred\x1b[0m \x1b]0;title\x07x"), "red x");
    assert.equal(plain("10 %\r 20 %\r 30 %\ndone\r\n"), " 30 %\ndone\n", "of a bar that is written over, its last state");
    assert.ok(!/[\u202e\x08]/.test(plain("a\u202eb\x08")));
});
