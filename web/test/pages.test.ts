import assert from "node:assert/strict";
import { test } from "node:test";
import { kLongestPauseMs, pauseAfter, problemOf, Store, address, at } from "../src/api";
import { aligned, summary } from "../src/chart";
import { machineFile } from "../src/pages/configurator";
import { csv } from "../src/pages/money";
import { gpuUse } from "../src/pages/overview";
import { bounded, kMostLetters, kMostLines } from "../src/pages/run_logs";
import { kindOf } from "../src/pages/submit";
import { parseRoute, withQuery } from "../src/route";

test("a refusal keeps each problem with its place and remedy, and a proxy's page is one, too", () => {
    const told = problemOf(422, JSON.stringify({ title: "Invalid", problems: [{ message: "unknown key", remedy: "did you mean", place: { in: "x.yaml", line: 6, column: 3 } }] }));
    assert.deepEqual([told.troubles[0]?.place?.line, told.troubles[0]?.remedy], [6, "did you mean"]);
    assert.equal(problemOf(500, "<html>").troubles[0]?.message, "the server answered 500");
});

test("a server that is away is asked ever more seldom, and never later than every five seconds", () => {
    assert.ok(pauseAfter(0) < pauseAfter(1));
    assert.equal(pauseAfter(50), kLongestPauseMs);
});

test("a follower hears of another value only", () => {
    const store = new Store(1);
    let heard = 0;
    const leave = store.follow(() => ++heard);
    store.value = 1;
    store.value = 2;
    leave();
    store.value = 3;
    assert.equal(heard, 1);
});

test("addresses: names of others are one segment, and empty filters are left out", () => {
    assert.equal(address(`/runs/${at("../x?y")}`, { a: "", b: "1&2", c: undefined }), "/runs/..%2Fx%3Fy?b=1%262");
    assert.deepEqual(parseRoute("#/runs/r-7?state=failed").path, ["runs", "r-7"]);
    assert.deepEqual(parseRoute("#/runs/%E0%A4%A").path, ["runs", "%E0%A4%A"], "what is no text is shown as it stands");
    assert.equal(withQuery(parseRoute("#/runs?state=failed&cursor=x"), { cursor: "", user: "ann" }), "#/runs?state=failed&user=ann");
});

test("a log in the page is bounded, and cut at the end of a line", () => {
    const many = Array.from({ length: kMostLines + 10 }, (_, each) => `line ${each}`).join("\n") + "\n";
    const kept = bounded(many);
    assert.ok(kept.cut && kept.text.startsWith("line 10\n"), kept.text.slice(0, 20));
    const long = "x".repeat(300_000) + "\n" + "y".repeat(300_000) + "\n";
    assert.equal(bounded(long).text, "y".repeat(300_000) + "\n");
    assert.ok(bounded("z".repeat(kMostLetters * 2)).text.length <= kMostLetters);
    assert.deepEqual(bounded("a\nb\n"), { text: "a\nb\n", cut: false });
});

test("lines of several ranks share their times, and what is missing is a gap", () => {
    const lines = [{ name: "a", points: [[1, 10], [3, 30]] as Array<[number, number]> }, { name: "b", points: [[2, 5]] as Array<[number, number]> }];
    assert.deepEqual(aligned(lines), [[1, 2, 3], [10, null, 30], [null, 5, null]]);
    assert.deepEqual(summary(lines), { least: 5, middle: 10, greatest: 30, last: 30 });
    assert.equal(summary([]), null);
});

test("GPUs that nobody tells of are not known, held or not", () => {
    const node = (name: string, devices: number, free: number) => ({ name, devices: Array.from({ length: devices }, () => ({})), gpu_milli_free: free * 1000 });
    const nodes = { items: [node("told", 4, 0), node("dark", 2, 2)] } as never;
    const fleet = { items: [{ node: "told", present: 4, silent: false, used_as: { busy: 2, allocated_idle: 1 } }] } as never;
    assert.deepEqual(gpuUse(nodes, fleet), { all: 6, busy: 2, idle: 1, unknown: 3, held: 4 });
});

test("a machine for a while is the file that one would have written, and no text breaks out of it", () => {
    const wish = { cloud: "azure", gpu: "T4", size: "", region: "westeurope, eastus}\nrun: {command: [rm]", hours: "10", spot: "never", memory: "" };
    assert.equal(machineFile(wish), "version: 1\nname: gpu-machine\nkind: notebook\nperiod: 10h\nobjective: {minimize: cost}\n" +
        "where: {cloud: azure, regions: [westeurope, eastus, run, command, rm], accelerators: [T4], spot: never}\n");
    assert.equal(kindOf("version: 1\nkind: inference # x\n"), "inference");
});

test("a name that begins like a formula is none in a spreadsheet", () => {
    const line = { organisation: "o", project: "p", user: '=cmd|"x"', resource: "gpu", micro_hours: 2e6, gpu_micro_hours: 2e6, microusd: 1500000, priced: true, requests: 0, tokens: 0 } as never;
    assert.equal(csv([line], "USD").split("\n")[1], `o,p,"'=cmd|""x""",gpu,,2,2,0,0,1.5`);
});
