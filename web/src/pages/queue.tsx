// What waits, in its order, and why; and what would change it.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { at, get, post } from "../api";
import type { Run, RunPage, WhatIf } from "../api_types";
import { cause, count } from "../format";
import { useLive } from "../live";
import { Answer, Choice, Empty, Facts, Field, Form, runLink, Section, setServerTime, State, Table, When } from "../parts";
import type { Route } from "../route";

const kMost = 25;

export function WhatIfAnswer({ of }: { of: WhatIf }): VNode {
    return (
        <div class="answer" role="status">
            <p><b>{of.starts_now ? "It would start now." : "It would wait."}</b> {of.why?.text || cause(of.why?.code)}</p>
            {of.why?.unblock.map((each) => <p key={each} class="remedy">{each}</p>)}
            <Facts of={[
                of.chosen && ["Where", of.chosen],
                !of.starts_now && of.eta?.text && ["Starts", of.eta.text],
                of.places.length > 0 && ["Places", `${count(of.places.length)}: ${[...new Set(of.places.map((each) => each.node ?? ""))].slice(0, 6).join(", ")}`],
            ]} />
        </div>
    );
}

export function Queue({ route }: { route: Route }): VNode {
    const waiting = useLive<{ runs: Run[]; more: boolean }>("queue", async (signal) => {
        const page = await get<RunPage>("/api/v1/runs", { state: "queued,requeued", order: "oldest", limit: kMost }, signal);
        setServerTime(page.now);
        const runs = await Promise.all(page.items.map((each) => get<Run>(`/api/v1/runs/${at(each.id ?? "")}`, {}, signal)));
        runs.sort((a, b) => b.run.priority - a.run.priority);
        return { runs, more: Boolean(page.next_cursor) };
    }, 6000);
    return (
        <>
            <h1>Queue</h1>
            <Answer of={waiting}>{({ runs, more }) => (
                <>
                    <Table label="Runs that wait" rows={runs} id={(run) => run.run.id ?? ""} columns={[
                        { title: "Run", of: (run) => runLink(run.run.id) },
                        { title: "Name", of: (run) => <span class="name">{run.run.name}</span> },
                        { title: "State", of: (run) => <State of={run.run.held ? "held" : run.run.state} /> },
                        { title: "Why it waits", grow: true, of: (run) => <>{run.run.held ? "held by hand" : run.why?.text || cause(run.why?.code)}{run.why?.unblock.length ? <span class="remedy">{run.why.unblock.join("; ")}</span> : null}</> },
                        { title: "Behind", wide: true, of: (run) => run.why?.blockers.slice(0, 4).map((each, index) => <>{index ? ", " : ""}{/^r-\d/.test(each) ? runLink(each) : each}</>) ?? "" },
                        { title: "Starts", of: (run) => run.eta?.text ?? "" },
                        { title: "Class", wide: true, of: (run) => run.run.class },
                        { title: "Priority", figure: true, wide: true, of: (run) => run.run.priority },
                        { title: "Waits since", figure: true, of: (run) => <When at={run.run.submitted_at} /> },
                    ]}><Empty>Nothing waits.</Empty></Table>
                    {more ? <p class="dim small">The {kMost} that wait longest. <a href="#/runs?state=queued,requeued">All that wait</a></p> : null}
                    {runs.length ? <Ask runs={runs} first={route.query.get("run") ?? ""} /> : null}
                </>
            )}</Answer>
        </>
    );
}

function Ask({ runs, first }: { runs: Run[]; first: string }): VNode {
    const [run, setRun] = useState(first || (runs[0]?.run.id ?? ""));
    const [ranks, setRanks] = useState("");
    const [priority, setPriority] = useState("");
    const [answer, setAnswer] = useState<WhatIf>();
    const asked = async (): Promise<void> => {
        const changes: Record<string, number> = {};
        if (ranks) changes["ranks"] = Number(ranks);
        if (priority) changes["priority"] = Number(priority);
        setAnswer(await post<WhatIf>("/api/v1/whatif", { run, ...(Object.keys(changes).length ? { changes } : {}) }));
    };
    return (
        <Section title="What if">
            <Form label="Ask" does={asked}>
                <Choice label="Run" value={run} set={(value) => { setRun(value); setAnswer(undefined); }} options={runs.map((each): [string, string] => [each.run.id ?? "", `${each.run.id} ${each.run.name ?? ""}`])} />
                <Field label="With ranks" type="number" min="1" value={ranks} set={setRanks} placeholder="as it is" />
                <Field label="With priority" type="number" value={priority} set={setPriority} placeholder="as it is" />
            </Form>
            {answer ? <WhatIfAnswer of={answer} /> : <p class="dim small">Nothing is changed by asking.</p>}
        </Section>
    );
}
