// All runs that the caller reaches, page by page, newest first.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { can, get } from "../api";
import type { RunItem, RunPage as Page } from "../api_types";
import { seconds } from "../format";
import { useLive } from "../live";
import { Answer, Choice, type Column, Empty, Field, runLink, setServerTime, State, Table, When, Why } from "../parts";
import { go, type Route, withQuery } from "../route";

export const kActive = "queued,starting,running,checkpointing,requeued,cancelling";
const kStates: Array<[string, string]> = [
    ["", "all states"], [kActive, "not ended"], ["queued,requeued", "waiting"], ["running,checkpointing", "running"],
    ["succeeded", "succeeded"], ["failed", "failed"], ["cancelled,expired", "cancelled or expired"],
];

export function runColumns(): Array<Column<RunItem> | null> {
    return [
        { title: "Run", of: (run) => runLink(run.id) },
        { title: "Name", grow: true, of: (run) => <a class="name" href={`#/runs/${encodeURIComponent(run.id ?? "")}`}>{run.name}</a> },
        { title: "State", of: (run) => <><State of={run.held && run.state === "queued" ? "held" : run.state} />{run.state === "failed" || run.state === "requeued" || run.state === "expired" ? <> <Why code={run.cause} text={run.detail} /></> : null}</> },
        { title: "Who", wide: true, of: (run) => run.user },
        { title: "Project", wide: true, of: (run) => run.project },
        { title: "Ranks", figure: true, wide: true, of: (run) => (run.kind === "graph" ? "steps" : run.ranks) },
        { title: "GPUs", figure: true, of: (run) => run.gpus || <span class="dim">0</span> },
        { title: "Where", wide: true, of: (run) => run.nodes.slice(0, 2).join(", ") + (run.nodes.length > 2 ? ` and ${run.nodes.length - 2} more` : "") },
        { title: "Submitted", figure: true, of: (run) => <When at={run.submitted_at} /> },
        { title: "Held machines", figure: true, of: (run) => (run.used_s ? seconds(Math.round(run.used_s)) : <span class="dim">–</span>) },
    ];
}

export function Runs({ route }: { route: Route }): VNode {
    const state = route.query.get("state") ?? "", user = route.query.get("user") ?? "", name = route.query.get("name") ?? "";
    const cursor = route.query.get("cursor") ?? "";
    const [typedUser, setUser] = useState(user);
    const [typedName, setName] = useState(name);
    const page = useLive<Page>(`runs ${route.text}`, async (signal) => {
        const found = await get<Page>("/api/v1/runs", { state, user, name, cursor, limit: 50 }, signal);
        setServerTime(found.now);
        return found;
    }, 4000);
    const filtered = Boolean(state || user || name);
    const filter = (event: Event): void => {
        event.preventDefault();
        go(withQuery(route, { user: typedUser.trim(), name: typedName.trim(), cursor: "" }));
    };
    return (
        <>
            <div class="head"><h1>Runs</h1>{can("submitRun") ? <div class="side"><a class="button main" href="#/submit">Submit a run</a></div> : null}</div>
            <form class="filters" role="search" aria-label="Filter runs" onSubmit={filter}>
                <Choice label="State" value={state} options={kStates.some(([each]) => each === state) ? kStates : [...kStates, state]}
                    set={(value) => go(withQuery(route, { state: value, cursor: "" }))} />
                <Field label="Name, exactly" value={typedName} set={setName} />
                <Field label="Who" value={typedUser} set={setUser} />
                <button type="submit">Filter</button>
                {filtered ? <a href="#/runs">Show all</a> : null}
            </form>
            <Answer of={page}>
                {(found) => (
                    <>
                        <Table label="Runs" rows={found.items} id={(run) => run.id ?? ""} columns={runColumns()}>
                            {filtered || cursor ? <Empty>No run is like this here.</Empty>
                                : <Empty command="stoker submit job.yaml">{can("submitRun") ? <>Nothing has been submitted yet. <a href="#/submit">Submit a run</a>, or from a terminal:</> : "Nothing has been submitted yet."}</Empty>}
                        </Table>
                        <p class="pages">
                            {cursor ? <a href={withQuery(route, { cursor: "" })}>Newest</a> : null}
                            {found.next_cursor ? <a href={withQuery(route, { cursor: found.next_cursor })}>Older</a> : null}
                        </p>
                    </>
                )}
            </Answer>
        </>
    );
}
