// Machines, what they have and how well they are; and each GPU as its agent tells of it.
import type { VNode } from "preact";
import { at, can, get, post } from "../api";
import type { FleetGpus, HealthCheck, Node, NodeGpus, NodeGpuSeries, NodeList, ReportedGpu } from "../api_types";
import { Chart } from "../chart";
import { bytes, count, milli, percent, seconds, short, words } from "../format";
import { useLive } from "../live";
import { Answer, Do, Empty, Facts, runLink, Section, State, Table, When } from "../parts";

const value = (board: ReportedGpu, name: string): number | undefined => board.values?.[name];
const kFine = new Set(["idle", "app_clocks", "sw_power_cap", "display"]);

/** Why the clocks are held just now; what is usual is told apart from what is not. */
export function heldBy(board: ReportedGpu): Array<{ reason: string; usual: boolean }> {
    return Object.entries(board.values ?? {})
        .filter(([name, on]) => name.startsWith("reason_") && on > 0)
        .map(([name]) => ({ reason: words(name.slice(7)), usual: kFine.has(name.slice(7)) }));
}

function Actions({ node, after }: { node: Node; after: () => void }): VNode {
    const path = `/api/v1/nodes/${at(node.name ?? "")}`;
    return (
        <span class="actions">
            {node.state === "ready" && can("drainNode") ? <Do label="Drain" ask="Nothing more starts there." does={() => post(`${path}/drain`)} after={after} /> : null}
            {(node.state === "draining" || node.state === "suspect") && can("readyNode") ? <Do label="Ready" does={() => post(`${path}/ready`)} after={after} /> : null}
            {node.state === "quarantined" && can("repairedNode") ? <Do label="Repaired" ask="It is checked again." does={() => post(`${path}/repaired`)} after={after} /> : null}
            {!node.under_check && can("checkNode") ? <Do label="Check" does={() => post(`${path}/check`, { level: "quick" })} after={after} /> : null}
        </span>
    );
}

const runs = (node: Node): VNode => <>{node.runs.slice(0, 4).map((each, index) => <>{index ? ", " : ""}{runLink(each)}</>)}{node.runs.length > 4 ? ` and ${node.runs.length - 4} more` : ""}</>;

export function Nodes(): VNode {
    const found = useLive<NodeList>("nodes", (signal) => get("/api/v1/nodes", {}, signal), 4000);
    const fleet = useLive<FleetGpus | null>("fleet", (signal) => (can("listGpus") ? get<FleetGpus>("/api/v1/gpus", {}, signal) : Promise.resolve(null)), 4000);
    const told = new Map((fleet.data?.items ?? []).map((each) => [each.node, each]));
    return (
        <>
            <h1>Nodes and GPUs</h1>
            <Answer of={found}>{(list) => {
                const listed = new Set(list.items.map((node) => node.name));
                const strangers = [...told.values()].filter((each) => !listed.has(each.node));
                return (
                    <>
                        {list.engines?.filter((each) => each.fault).map((each) => <p key={each.name} class="warn">Engine {each.name}: {each.fault}</p>)}
                        <Table label="Nodes" rows={list.items} id={(node) => node.name ?? ""} columns={[
                            { title: "Node", grow: true, of: (node) => <a class="name" href={`#/nodes/${at(node.name ?? "")}`}>{node.name}</a> },
                            { title: "State", of: (node) => <><State of={node.under_check ? "checking" : node.state} why={node.reason} />{node.reason ? <> <span class="why">{node.reason}</span></> : null}</> },
                            { title: "GPUs free", figure: true, of: (node) => (node.devices.length ? `${milli(node.gpu_milli_free)} of ${node.devices.length}` : <span class="dim">none</span>) },
                            { title: "GPU", wide: true, of: (node) => [...new Set(node.devices.map((each) => each.model))].join(", ") },
                            { title: "Busy", figure: true, of: (node) => { const agent = told.get(node.name); return agent ? (agent.silent ? "silent" : percent(agent.busy)) : <span class="dim">not told</span>; } },
                            { title: "Hottest", figure: true, wide: true, of: (node) => { const c = told.get(node.name)?.hottest_c; return c === undefined ? "" : `${short(c)} °C`; } },
                            { title: "CPUs free", figure: true, of: (node) => `${milli(node.cpu_milli_free)} of ${milli(node.cpu_milli)}` },
                            { title: "Memory free", figure: true, wide: true, of: (node) => `${bytes(node.memory_bytes_free)} of ${bytes(node.memory_bytes)}` },
                            { title: "Runs", of: runs },
                            { title: "Do", quiet: true, of: (node) => <Actions node={node} after={found.refresh} /> },
                        ]}><Empty command="stoker up --nodes nodes.yaml">No node has been seen.</Empty></Table>
                        {strangers.length ? (
                            <Section title="Told of by agents alone">
                                <Table label="Machines of agents" rows={strangers} id={(each) => each.node ?? ""} columns={[
                                    { title: "Node", grow: true, of: (each) => <a class="name" href={`#/nodes/${at(each.node ?? "")}`}>{each.node}</a> },
                                    { title: "GPUs", figure: true, of: (each) => `${each.present} of ${each.expected || each.present}` },
                                    { title: "Busy", figure: true, of: (each) => (each.silent ? "silent" : percent(each.busy)) },
                                    { title: "Told", figure: true, of: (each) => <When at={each.told_at} /> },
                                ]} />
                            </Section>
                        ) : null}
                    </>
                );
            }}</Answer>
        </>
    );
}

function Checks({ of, none }: { of: HealthCheck[]; none: string }): VNode {
    return (
        <Table label="Checks" rows={of} id={(each, index) => `${each.name}${index}`} columns={[
            { title: "Check", of: (each) => each.name },
            { title: "Verdict", of: (each) => <State of={each.verdict} /> },
            { title: "Layer", wide: true, of: (each) => each.layer },
            { title: "What was found", grow: true, of: (each) => <>{each.detail}{each.fix ? <span class="remedy">{each.fix}</span> : null}</> },
            { title: "Measured", figure: true, of: (each) => (each.measured === undefined ? "" : `${short(each.measured)} ${each.unit ?? ""}`) },
            { title: "Expected", figure: true, of: (each) => (each.expected === undefined ? "" : `${short(each.expected)} ${each.unit ?? ""}`) },
        ]}><p class="calm">{none}</p></Table>
    );
}

function Holders({ board }: { board: ReportedGpu }): VNode {
    if (!board.processes_told) return <span class="dim">not told</span>;
    if (board.processes.length === 0) return <span class="dim">nobody</span>;
    return <>{board.processes.slice(0, 3).map((each) => (
        <span key={each.pid} class="holder">{each.run ? runLink(each.run) : each.pod ?? each.container ?? each.job ?? each.command ?? `pid ${each.pid}`}{each.rank ? ` rank ${each.rank}` : ""}{each.user ? <span class="dim"> {each.user}</span> : null}</span>
    ))}{board.processes.length > 3 ? ` and ${board.processes.length - 3} more` : ""}</>;
}

/** A figure of a board, with the very number in data-value: a test holds it against /metrics of the agent. */
function Of({ board, name, show }: { board: ReportedGpu; name: string; show: (value: number) => string }): VNode {
    const told = value(board, name);
    return told === undefined ? <span class="dim">not told</span> : <span data-figure={name} data-value={told}>{show(told)}</span>;
}

function Boards({ of }: { of: ReportedGpu[] }): VNode {
    const watts = (told: number): string => `${short(told)} W`, celsius = (told: number): string => `${short(told)} °C`;
    return (
        <Table label="GPUs" rows={of} id={(board) => board.uuid || `${board.index} ${board.gpu_instance}`} columns={[
            { title: "GPU", of: (board) => <b>{board.index}{board.gpu_instance >= 0 && board.mig_profile ? ` ${board.mig_profile}` : ""}</b> },
            { title: "Model", grow: true, of: (board) => <span title={board.uuid ?? ""}>{board.name}</span> },
            { title: "State", of: (board) => <State of={board.state || "ok"} why={board.stuck_call} /> },
            { title: "Busy", figure: true, of: (board) => <Of board={board} name="utilization" show={percent} /> },
            { title: "Memory", figure: true, of: (board) => <><Of board={board} name="memory_used" show={bytes} /> <span class="dim">of {bytes(value(board, "memory_size"))}</span></> },
            { title: "Temperature", figure: true, of: (board) => <Of board={board} name="temperature_gpu" show={celsius} /> },
            { title: "Power", figure: true, of: (board) => <><Of board={board} name={value(board, "power_instant") !== undefined ? "power_instant" : "power_average"} show={watts} /> <span class="dim">of {short(value(board, "power_limit"))} W</span></> },
            { title: "Held by", of: (board) => <Holders board={board} /> },
            { title: "Held back by", of: (board) => heldBy(board).map((each) => <span key={each.reason} class={each.usual ? "dim" : "warn"}>{each.reason} </span>) },
            { title: "Does", of: (board) => words(board.used_as || "") },
            { title: "SM", figure: true, wide: true, of: (board) => <Of board={board} name="sm_active" show={percent} /> },
            { title: "Tensor", figure: true, wide: true, of: (board) => <Of board={board} name="tensor_active" show={percent} /> },
            { title: "Clock", figure: true, wide: true, of: (board) => <Of board={board} name="clock_sm" show={(told) => `${count(Math.round(told / 1e6))} MHz`} /> },
            { title: "Xids", wide: true, of: (board) => board.xids.map((each) => <span key={each.code} class="warn" title={`${each.count} times, last ${seconds(Math.round(each.ago_s))} ago`}>{each.code} </span>) },
        ]}><Empty>The agent tells of no GPU.</Empty></Table>
    );
}

const kCharts: Array<{ metric: string; title: string; show: (value: number) => string; most?: number; zero?: boolean; binary?: boolean }> = [
    { metric: "gpu_util", title: "A kernel was resident", show: percent, most: 1, zero: true },
    { metric: "gpu_sm", title: "Multiprocessors active", show: percent, most: 1, zero: true },
    { metric: "gpu_tensor", title: "Tensor pipes active", show: percent, most: 1, zero: true },
    { metric: "gpu_memory", title: "Memory held", show: bytes, zero: true, binary: true },
    { metric: "gpu_power", title: "Power", show: (told) => `${short(told)} W`, zero: true },
    { metric: "gpu_temperature", title: "Temperature", show: (told) => `${short(told)} °C` },
];

function GpuCharts({ name }: { name: string }): VNode {
    const found = useLive<NodeGpuSeries>(`gpu series ${name}`, (signal) => get(`/api/v1/nodes/${at(name)}/gpus/series`, { metric: kCharts.map((each) => each.metric).join(","), max_points: 240 }, signal), 10_000);
    return (
        <Section title="GPUs, the last hour">
            <Answer of={found}>{(page) => {
                const seen = kCharts.filter((kind) => page.series.some((each) => each.metric === kind.metric && each.points.length));
                if (!seen.length) return <Empty>No point yet: they are ten seconds apart.</Empty>;
                return <div class="charts">{seen.map((kind) => (
                    <Chart key={kind.metric} title={kind.title} show={kind.show} time zero={kind.zero ?? false} most={kind.most} binary={kind.binary ?? false} lines={page.series.filter((each) => each.metric === kind.metric)
                        .map((each) => ({ name: `GPU ${each.gpu}`, points: each.points.map((point): [number, number] => [point[0] ?? 0, point[2] ?? 0]) }))} />
                ))}</div>;
            }}</Answer>
        </Section>
    );
}

/** null: no agent tells of this node. */
async function gpusOf(name: string, signal: AbortSignal): Promise<NodeGpus | null> {
    const fleet = await get<FleetGpus>("/api/v1/gpus", {}, signal);
    return fleet.items.some((each) => each.node === name) ? get<NodeGpus>(`/api/v1/nodes/${at(name)}/gpus`, {}, signal) : null;
}

export function NodePage({ name }: { name: string }): VNode {
    const list = useLive<NodeList>("nodes", (signal) => get("/api/v1/nodes", {}, signal), 4000);
    const gpus = useLive<NodeGpus | null>(`node gpus ${name}`, (signal) => (can("getNodeGpus") ? gpusOf(name, signal) : Promise.resolve(null)), 2000);
    const node = list.data?.items.find((each) => each.name === name);
    const told = gpus.data?.gpus;
    return (
        <>
            <div class="head">
                <h1><span class="name">{name}</span> {node ? <State of={node.under_check ? "checking" : node.state} /> : null}</h1>
                <div class="side">{node ? <Actions node={node} after={list.refresh} /> : null}</div>
            </div>
            <Answer of={list}>{() => (node ? (
                <>
                    {node.reason ? <p class="why-line">{node.reason}</p> : null}
                    {node.repairs.map((each) => <p key={each} class="remedy">{each}</p>)}
                    <Facts of={[
                        ["Takes", words(node.takes)],
                        ["Processors", `${milli(node.cpu_milli_free)} of ${milli(node.cpu_milli)} free`],
                        ["Memory", `${bytes(node.memory_bytes_free)} of ${bytes(node.memory_bytes)} free`],
                        node.devices.length > 0 && ["GPUs", `${milli(node.gpu_milli_free)} of ${node.devices.length} free`],
                        node.engine && ["Engine", node.engine],
                        node.topology && ["Where it hangs", node.topology],
                        node.runs.length > 0 && ["Runs", runs(node)],
                        node.since && ["So since", <When at={node.since} />],
                    ]} />
                </>
            ) : <p class="dim">The server gives no work to a node of this name.</p>)}</Answer>
            {told && gpus.data ? (
                <>
                    <Section title="GPUs" side={<span class="dim">told <When at={gpus.data.told_at} />{gpus.data.silent ? ": the agent is silent" : ""}, driver {told.nvidia_driver ?? "–"}</span>}>
                        {told.down ? <p class="warn">The driver is not there: {told.down} {told.detail}</p> : null}
                        <Boards of={told.boards} />
                    </Section>
                    {gpus.data.not_well.length ? <Section title="Not well"><Checks of={gpus.data.not_well} none="" /></Section> : null}
                    <GpuCharts name={name} />
                </>
            ) : gpus.error ? <p class="warn">{gpus.error.message}</p> : can("getNodeGpus") ? (
                <Section title="GPUs"><Empty command={`stoker agent --server URL --token-file FILE --node ${name}`}>No agent tells of the GPUs of this node. On it:</Empty></Section>
            ) : null}
            {node?.check ? (
                <Section title="Last check" side={<span class="dim">{node.check.level}, <When at={node.check.at} /></span>}>
                    <Checks of={node.check.not_passed} none={`All ${node.check.passed} checks passed.`} />
                </Section>
            ) : null}
            {node?.blames.length ? (
                <Section title="Blamed by runs">
                    <Table label="Blames" rows={node.blames} id={(each, index) => `${each.attempt}${index}`} columns={[
                        { title: "Attempt", of: (each) => each.attempt },
                        { title: "With", grow: true, of: (each) => each.nodes.join(", ") },
                        { title: "Share", figure: true, of: (each) => percent(each.share) },
                        { title: "When", figure: true, of: (each) => <When at={each.at} /> },
                    ]} />
                </Section>
            ) : null}
        </>
    );
}
