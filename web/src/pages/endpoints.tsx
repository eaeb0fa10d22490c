// Models that answer: their replicas, how they do against their plan, and what may be done with them.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { at, can, get, post } from "../api";
import type { Endpoint, EndpointItem } from "../api_types";
import { endpointList } from "../endpoints";
import { count, dollars, inUnit, many, seconds, short, words } from "../format";
import { useLive } from "../live";
import { Answer, Do, Empty, Field, Figure, Form, runLink, Section, State, Table, When } from "../parts";

const told = (value: number | undefined): VNode | string => (value === undefined ? <span class="dim">not told</span> : count(value));

// From the deployment that was accepted.
const first = (value: number | undefined): VNode | string => (value === undefined ? <span class="dim">not yet</span> : seconds(value));

export function Endpoints(): VNode {
    const found = useLive<EndpointItem[]>("endpoints", endpointList, 4000);
    return (
        <>
            <div class="head"><h1>Endpoints</h1>{can("deployEndpoint") ? <div class="side"><a class="button main" href="#/submit">Deploy one</a></div> : null}</div>
            <Answer of={found}>{(items) => (
                <Table label="Endpoints" rows={items} id={(each) => each.name ?? ""} columns={[
                    { title: "Endpoint", grow: true, of: (each) => <a class="name" href={`#/endpoints/${at(each.name ?? "")}`}>{each.name}</a> },
                    { title: "State", of: (each) => <State of={each.state ?? ""} why={each.state === "unkept" ? "no gateway keeps it: stoker serve" : ""} /> },
                    { title: "Ready", figure: true, of: (each) => (each.ready === undefined ? <span class="dim">not told</span> : `${each.ready} of ${each.wanted ?? "?"}`) },
                    { title: "May have", figure: true, of: (each) => `${each.least} to ${each.most}` },
                    { title: "Waiting", figure: true, of: (each) => told(each.queued) },
                    { title: "Requests", figure: true, of: (each) => told(each.requests) },
                    { title: "Failed", figure: true, wide: true, of: (each) => told(each.failed) },
                    { title: "First token after", figure: true, wide: true, of: (each) => first(each.first_token_s) },
                    { title: "Engine", wide: true, of: (each) => each.engine },
                    { title: "Revision", figure: true, wide: true, of: (each) => each.revision },
                    { title: "Who", wide: true, of: (each) => [each.user, each.project].filter(Boolean).join(", ") },
                ]}><Empty command="stoker deploy chat.yaml --least 0 --most 2">No model answers here yet. {can("deployEndpoint") ? <><a href="#/submit">Deploy a file of kind inference</a>, or from a terminal:</> : null}</Empty></Table>
            )}</Answer>
        </>
    );
}

// Why there are as many replicas as there are (src/serve/fleet/scale.h).
const kScale: Record<string, string> = { steady: "as many as the load wants", arrivals: "more is asked", backlog: "requests wait", first_request: "the first request woke it",
    less_load: "less is asked", idle: "nothing is asked", limit: "at its limit" };

export function EndpointPage({ name }: { name: string }): VNode {
    const path = `/api/v1/endpoints/${at(name)}`;
    const found = useLive<Endpoint>(`endpoint ${name}`, (signal) => get(path, {}, signal), 3000);
    return <Answer of={found}>{(view) => <Shown name={name} path={path} view={view} refresh={found.refresh} />}</Answer>;
}

function Shown({ name, path, view, refresh }: { name: string; path: string; view: Endpoint; refresh: () => void }): VNode {
    const item = view.endpoint, status = view.status;
    const newest = view.revisions.at(-1);
    return (
        <>
            <div class="head">
                <h1><span class="name">{item.name}</span> <State of={item.state ?? ""} /></h1>
                <div class="side actions">
                    {!item.stopped && can("stopEndpoint") ? <Do label="Stop" tone="bad" ask="Requests under way end first." does={() => post(`${path}/stop`)} after={refresh} /> : null}
                    {item.stopped && can("startEndpoint") ? <Do label="Start" tone="main" does={() => post(`${path}/start`)} after={refresh} /> : null}
                    {view.revisions.length > 1 && can("rollBackEndpoint") ? <Do label="Roll back" ask="To the revision before." does={() => post(`${path}/rollback`)} after={refresh} /> : null}
                </div>
            </div>
            {item.state === "unkept" ? <p class="why-line">No gateway keeps it. <code>stoker serve</code> on the server's machine does.</p> : null}
            {status?.last_failure ? <p class="warn">{status.last_failure}</p> : null}
            <div class="figures">
                <Figure title="Replicas ready" value={item.ready === undefined ? "not told" : `${item.ready} of ${item.wanted ?? "?"}`} note={`may have ${item.least} to ${item.most}`} {...(item.state === "unkept" ? { tone: "warn" as const } : {})} />
                <Figure title="Waiting" value={told(item.queued)} note="requests held for a replica" />
                <Figure title="Requests" value={told(item.requests)} note={item.failed === undefined ? "" : `${count(item.failed)} failed`} />
                <Figure title="Revision" value={item.revision} note={newest?.model ?? ""} />
                <Figure title="Cold start" value={status?.cold_start_s ? seconds(status.cold_start_s) : "–"} note={view.idle_s ? `sleeps after ${seconds(view.idle_s)} without a request` : ""} />
            </div>
            <Section title="Against the plan, the last ten minutes">
                <Table label="Planned and measured" rows={view.figures} id={(each) => each.figure ?? ""} columns={[
                    { title: "Figure", grow: true, of: (each) => words(each.figure ?? "") },
                    { title: "Measured", figure: true, of: (each) => <b>{inUnit(each.measured, each.unit)}</b> },
                    { title: "Planned", figure: true, of: (each) => inUnit(each.planned, each.unit) },
                    { title: "Interval", figure: true, wide: true, of: (each) => `${inUnit(each.low, each.unit)} to ${inUnit(each.high, each.unit)}` },
                    { title: "Verdict", quiet: true, of: (each) => (each.worse ? <State of="outside" why="worse than the interval" /> : <State of="inside" why={each.better ? "better than the interval" : ""} />) },
                ]}><Empty>Too little was asked in the last ten minutes to be held against {newest?.planned.requests_per_s ? `the ${short(newest.planned.requests_per_s)} requests/s that were planned` : "a plan"}.</Empty></Table>
                {view.causes.map((each) => (
                    <article class="cause" key={each.cause}>
                        <h3>{each.cause}</h3><p>{each.what}</p><ul>{each.evidence.map((one) => <li key={one}>{one}</li>)}</ul>
                        {each.cost_s ? <p>costs {seconds(each.cost_s)} a request</p> : null}{each.fix ? <p class="fix"><b>Do:</b> {each.fix}</p> : null}
                    </article>
                ))}
            </Section>
            <Section title="Replicas" side={status?.cause ? <span class="dim">{kScale[status.cause] ?? words(status.cause)}</span> : null}>
                <Table label="Replicas" rows={status?.replicas ?? []} id={(each) => each.name ?? ""} columns={[
                    { title: "Replica", of: (each) => each.name }, { title: "Run", of: (each) => (each.run ? runLink(each.run) : "") },
                    { title: "State", grow: true, of: (each) => <><State of={each.state ?? ""} /> <span class="why">{each.why}</span></> },
                    { title: "Under way", figure: true, of: (each) => count(each.in_flight) }, { title: "Taken", figure: true, of: (each) => count(each.taken) },
                    { title: "Revision", figure: true, wide: true, of: (each) => each.revision }, { title: "Since", figure: true, wide: true, of: (each) => seconds(Math.round(each.age_s)) },
                    { title: "Started in", figure: true, wide: true, of: (each) => (each.start_s ? seconds(each.start_s) : "–") },
                ]}><Empty>{item.stopped ? "It is stopped." : item.state === "unkept" ? "Nobody keeps it." : "It sleeps: the first request wakes it."}</Empty></Table>
            </Section>
            {can("scaleEndpoint") ? <Scale path={path} item={item} refresh={refresh} /> : null}
            <Section title="Ask it">
                <Empty command={`curl ${status?.gateway || "GATEWAY"}/v1/chat/completions -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d '{"model":"${name}","messages":[{"role":"user","content":"hello"}]}'`}>
                    {status?.gateway ? "" : <>GATEWAY is where <code>stoker serve</code> listens. </>}KEY is one of the gateway's keys.</Empty>
            </Section>
            <Section title="Revisions">
                <Table label="Revisions" rows={[...view.revisions].reverse()} id={(each) => String(each.revision)} columns={[
                    { title: "Revision", of: (each) => <b>{each.revision}</b> }, { title: "Model", grow: true, of: (each) => <span class="name">{each.model}</span> },
                    { title: "Engine", of: (each) => each.engine }, { title: "Share", figure: true, of: (each) => view.split?.[String(each.revision)] ?? (each.revision === item.revision ? "all" : "") },
                    { title: "Planned", figure: true, wide: true, of: (each) => (each.planned.requests_per_s ? `${short(each.planned.requests_per_s)} requests/s on ${many(each.planned.replicas, "replica")}` : each.planned.clients ? many(each.planned.clients, "client") : "–") },
                    { title: "First token, p95", figure: true, wide: true, of: (each) => (each.planned.ttft_p95_s.mid ? seconds(each.planned.ttft_p95_s.mid) : "–") },
                    { title: "Costs", figure: true, wide: true, of: (each) => (each.planned.usd_per_hour ? `${dollars(each.planned.usd_per_hour)}/h` : "no price") },
                    { title: "Made", figure: true, of: (each) => <When at={each.created_at} /> },
                    { title: "Ready after", figure: true, wide: true, of: (each) => first(each.first_ready_s) },
                    { title: "First token after", figure: true, of: (each) => first(each.first_token_s) },
                    { title: "Do", quiet: true, of: (each) => (can("rollBackEndpoint") && each.revision !== item.revision ? <Do label="Go to it" does={() => post(`${path}/rollback`, { revision: each.revision })} after={refresh} /> : null) },
                ]} />
            </Section>
            <p class="dim small">From a terminal: <code>stoker endpoints describe {item.name}</code></p>
        </>
    );
}

function Scale({ path, item, refresh }: { path: string; item: EndpointItem; refresh: () => void }): VNode {
    const [least, setLeast] = useState(String(item.least));
    const [most, setMost] = useState(String(item.most));
    const [idle, setIdle] = useState("");
    return (
        <Section title="Scale">
            <Form label="Scale" does={async () => { await post(`${path}/scale`, { least: Number(least), most: Number(most), ...(idle ? { idle_s: Number(idle) * 60 } : {}) }); refresh(); }}>
                <Field label="At least" type="number" min="0" value={least} set={setLeast} required />
                <Field label="At most" type="number" min="1" value={most} set={setMost} required />
                <Field label="Sleeps after minutes" type="number" min="0.1" step="0.1" value={idle} set={setIdle} placeholder="as it is" />
            </Form>
        </Section>
    );
}
