// What runs, what waits and why, what it costs, and what needs a person now.
import type { VNode } from "preact";
import { at, can, get } from "../api";
import type { Budget, BudgetList, EndpointItem, FleetGpus, IdleList, Invoice, NodeList, Run, RunItem, RunPage, Waste } from "../api_types";
import { endpointList, isUnwell } from "../endpoints";
import { cause, count, hours, many, money, percent, seconds } from "../format";
import { useLive } from "../live";
import { Bar, Empty, Figure, Section, setServerTime, Table, Trouble, When } from "../parts";
import { kActive, runColumns } from "./runs";

const kDayMs = 86_400_000, kMost = 200;

/** GPUs by what they do; what no agent tells of is not known, held or not. */
export function gpuUse(nodes: NodeList | undefined, fleet: FleetGpus | undefined): { all: number; busy: number; idle: number; unknown: number; held: number } {
    const use = { all: 0, busy: 0, idle: 0, unknown: 0, held: 0 };
    const told = new Map((fleet?.items ?? []).map((each) => [each.node, each]));
    for (const node of nodes?.items ?? []) {
        const devices = node.devices.length;
        use.all += devices;
        use.held += Math.max(0, devices - node.gpu_milli_free / 1000);
        const agent = told.get(node.name) ?? node.gpus_told;
        told.delete(node.name);
        if (!agent || agent.silent || agent.down) use.unknown += devices;
        else spread(use, agent.used_as, Math.max(devices, agent.present));
    }
    for (const agent of told.values()) {
        use.all += agent.present;
        if (agent.silent || agent.down) use.unknown += agent.present;
        else spread(use, agent.used_as, agent.present);
    }
    return use;
}

// What a GPU is said to be while it works, however badly (src/observe/gpu/allocation_state.h).
const kBusy = new Set(["busy", "underused", "host_bound"]);

function spread(use: { busy: number; idle: number; unknown: number }, as: Record<string, number> | undefined, all: number): void {
    let left = all;
    for (const [word, number] of Object.entries(as ?? {})) {
        if (word === "unknown") continue;
        if (kBusy.has(word)) use.busy += number;
        else use.idle += number;
        left -= number;
    }
    use.unknown += Math.max(0, left);
}

/** By cause, what cost most first. */
export function byCause(waste: Waste): Array<{ cause: string; micro: number; gpu: number; cpu: number; node: number }> {
    const sums = new Map<string, { cause: string; micro: number; gpu: number; cpu: number; node: number }>();
    for (const line of [...waste.items, ...waste.free]) {
        const sum = sums.get(line.cause ?? "") ?? { cause: line.cause ?? "", micro: 0, gpu: 0, cpu: 0, node: 0 };
        sum.micro += line.cost_microusd, sum.gpu += line.gpu_hours, sum.cpu += line.cpu_hours, sum.node += line.node_hours;
        sums.set(sum.cause, sum);
    }
    return [...sums.values()].sort((a, b) => b.micro - a.micro || b.gpu - a.gpu || b.cpu - a.cpu);
}

export const kWasteWords: Record<string, string> = {
    "no work": "held, and did no work", deployment: "being set up", forgotten: "forgotten by who held it",
    unallocated: "held by nobody", "waiting for quota": "held by nobody, because of a quota", "out of service": "drained, checked or kept away",
};

/** What nobody held is told below, and is nobody's waste. */
const kFree = new Set(["unallocated", "waiting for quota", "out of service"]);

interface Concern { key: string; text: VNode | string; href: string; tone: "bad" | "warn" }

// Of a run that waits: nothing that ends by itself will start it.
const kNever: Record<string, string> = { capacity_none: "it asks for more than there is", node_unhealthy: "no node that passed its check is large enough", engine_away: "its engine does not answer" };

export function Overview(): VNode {
    const active = useLive<RunPage>("overview runs", async (signal) => {
        const page = await get<RunPage>("/api/v1/runs", { state: kActive, limit: kMost, order: "oldest" }, signal);
        setServerTime(page.now);
        return page;
    }, 4000);
    const failed = useLive<RunPage>("overview failed", (signal) => get("/api/v1/runs", { state: "failed", limit: 50 }, signal), 15_000);
    const stuck = useLive<RunPage>("overview stuck", (signal) => get("/api/v1/runs", { state: "queued,requeued", limit: 200, order: "oldest", wait_causes: true }, signal), 15_000);
    const nodes = useLive<NodeList>("overview nodes", (signal) => get("/api/v1/nodes", {}, signal), 6000);
    const fleet = useLive<FleetGpus | null>("overview gpus", (signal) => (can("listGpus") ? get<FleetGpus>("/api/v1/gpus", {}, signal) : Promise.resolve(null)), 6000);
    const idle = useLive<IdleList>("overview idle", (signal) => get("/api/v1/idle", {}, signal), 30_000);
    const invoice = useLive<Invoice>("overview invoice", (signal) => get("/api/v1/invoice", {}, signal), 60_000);
    const budgets = useLive<BudgetList>("overview budgets", (signal) => get("/api/v1/budgets", {}, signal), 60_000);
    const waste = useLive<Waste>("overview waste", (signal) => get("/api/v1/waste", {}, signal), 60_000);
    const endpoints = useLive<EndpointItem[]>("overview endpoints", endpointList, 15_000);

    const items = active.data?.items ?? [], more = active.data?.next_cursor ? "+" : "";
    const waiting = items.filter((run) => run.state === "queued" || run.state === "requeued");
    const running = items.filter((run) => !waiting.includes(run));
    const first = waiting.find((run) => !run.held);
    const why = useLive<Run | null>(`overview first ${first?.id}`, (signal) => (first?.id ? get<Run>(`/api/v1/runs/${at(first.id)}`, {}, signal) : Promise.resolve(null)), 15_000);

    const gpus = gpuUse(nodes.data, fleet.data ?? undefined);
    const limit = tightest(budgets.data?.items ?? []);
    const causes = waste.data ? byCause(waste.data) : [];
    const held = causes.filter((each) => !kFree.has(each.cause));
    const sum = held.reduce((all, each) => ({ micro: all.micro + each.micro, gpu: all.gpu + each.gpu, cpu: all.cpu + each.cpu }), { micro: 0, gpu: 0, cpu: 0 });
    const wasted = sum.micro ? money(sum.micro, waste.data?.currency) : sum.gpu ? `${hours(sum.gpu)} of GPUs` : sum.cpu ? `${hours(sum.cpu)} of CPUs` : "none seen";
    const now = active.data?.now ? Date.parse(active.data.now) : Date.now();
    const concerns: Concern[] = [
        ...(nodes.data?.items ?? []).filter((node) => node.state !== "ready" && node.state !== "checking").map((node): Concern => ({
            key: `node ${node.name}`, href: `#/nodes/${at(node.name ?? "")}`, tone: node.state === "draining" ? "warn" : "bad",
            text: <>Node {node.name} is {node.state}{node.reason ? `: ${node.reason}` : ""}</>,
        })),
        ...(fleet.data?.items ?? []).filter((node) => node.not_well.length || node.silent || node.down).map((node): Concern => ({
            key: `gpus ${node.node}`, href: `#/nodes/${at(node.node ?? "")}`, tone: node.down || node.silent ? "warn" : "bad",
            text: <>GPUs of {node.node}: {node.silent ? "its agent is silent" : node.down || node.not_well.join(", ")}</>,
        })),
        ...(idle.data?.items ?? []).filter((run) => run.next_at).map((run): Concern => ({
            key: `idle ${run.run}`, href: `#/runs/${at(run.run ?? "")}`, tone: "warn",
            text: <>{run.run} {run.name} does nothing since {seconds(Math.round(run.idle_s))}: {run.state} <When at={run.next_at} /></>,
        })),
        ...(stuck.data?.items ?? []).filter((run) => kNever[run.wait_cause ?? ""]).slice(0, 20).map((run): Concern => ({
            key: `never ${run.id}`, href: `#/runs/${at(run.id ?? "")}`, tone: "bad",
            text: <>{run.id} {run.name} cannot start: {kNever[run.wait_cause ?? ""]}</>,
        })),
        ...(endpoints.data ?? []).filter(isUnwell).map((each): Concern => ({
            key: `endpoint ${each.name}`, href: `#/endpoints/${at(each.name ?? "")}`, tone: each.state === "unkept" ? "warn" : "bad",
            text: <>Endpoint {each.name} is {each.state === "unkept" ? "kept by no gateway" : each.state}</>,
        })),
        ...(failed.data?.items ?? []).filter((run) => run.ended_at && now - Date.parse(run.ended_at) < kDayMs).slice(0, 20).map((run): Concern => ({
            key: `failed ${run.id}`, href: `#/runs/${at(run.id ?? "")}`, tone: "bad", text: <>{run.id} {run.name} failed <When at={run.ended_at} />: {run.detail || cause(run.cause)}</>,
        })),
    ];
    const known = active.data && nodes.data && failed.data;

    return (
        <>
            <h1>Overview</h1>
            <Trouble error={active.error ?? nodes.error} />
            <div class="figures">
                <Figure title="Running" value={active.data ? `${count(running.length)}${more}` : "…"} note={running.length ? `${many(running.reduce((sum, run) => sum + run.ranks, 0), "rank")}, ${many(running.reduce((sum, run) => sum + run.gpus, 0), "GPU")}` : "nothing"} href="#/runs?state=running,checkpointing" />
                <Figure title="Waiting" value={active.data ? `${count(waiting.length)}${more}` : "…"} note={first ? why.data?.why?.text || cause(why.data?.why?.code) || "the first waits" : "nothing waits"} href="#/queue" {...(waiting.length ? { tone: "warn" as const } : {})} />
                <Figure title="GPUs" value={nodes.data ? (gpus.all ? `${gpus.busy} of ${gpus.all} busy` : "none") : "…"} note={gpus.all ? `${gpus.idle} idle, ${gpus.unknown} not known; ${count(gpus.held)} held` : "no node has one"} href="#/nodes" />
                <Figure title="This month" value={invoice.data ? (invoice.data.priced ? money(invoice.data.total_microusd, invoice.data.currency) : "no prices") : "…"}
                    note={limit ? <>{percent(limit.used_micro / limit.limit_micro)} of {limit.unit === "usd" ? money(limit.limit_micro) : hours(limit.limit_micro / 1e6)} of {limit.scope_name ?? limit.scope}<Bar share={limit.used_micro / limit.limit_micro} /></> : "no budget is set"} href="#/money" />
                <Figure title="Waste, last week" value={waste.data ? wasted : "…"}
                    note={held[0] ? `most: ${kWasteWords[held[0].cause] ?? held[0].cause}` : "what was held worked"} href="#/money?view=waste" />
            </div>
            <Section title="Needs a person">
                {concerns.length ? (
                    <ul class="concerns">{concerns.slice(0, 50).map((each) => <li key={each.key} class={each.tone}><a href={each.href}>{each.text}</a></li>)}</ul>
                ) : <p class="calm">{known ? "Nothing: no run failed in the last day, every node takes work." : "…"}</p>}
            </Section>
            <Section title="Now" side={<a href="#/runs">All runs</a>}>
                {active.data ? (
                    <Table<RunItem> label="Runs that have not ended" rows={[...running, ...waiting].slice(0, 12)} id={(run) => run.id ?? ""} columns={runColumns()}>
                        <Empty command="stoker submit job.yaml">Nothing runs and nothing waits.{can("submitRun") ? <> <a href="#/submit">Submit a run</a>, or from a terminal:</> : null}</Empty>
                    </Table>
                ) : null}
            </Section>
            {causes.length ? (
                <Section title="Waste by cause, last week" side={<a href="#/money?view=waste">Who</a>}>
                    <Table label="Waste by cause" rows={causes} id={(each) => each.cause} columns={[
                        { title: "Cause", grow: true, of: (each) => kWasteWords[each.cause] ?? each.cause },
                        { title: "GPUs", figure: true, of: (each) => hours(each.gpu) },
                        { title: "Processors", figure: true, of: (each) => hours(each.cpu) },
                        { title: "Cost", figure: true, of: (each) => (each.micro ? money(each.micro, waste.data?.currency) : "no price") },
                    ]} />
                </Section>
            ) : null}
        </>
    );
}

function tightest(all: Budget[]): Budget | undefined {
    return [...all].filter((each) => each.limit_micro > 0).sort((a, b) => b.used_micro / b.limit_micro - a.used_micro / a.limit_micro)[0];
}
