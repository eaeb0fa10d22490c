// One run: what it does and why, against its plan, its figures, its log, and what may be done with it.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, at, Away, can, connection, get, post, Problem } from "../api";
import type { ArtifactList, EventPage, Run, Submitted } from "../api_types";
import { bytes, cause, count, many, milli, money, seconds, words } from "../format";
import { useLive, useStore } from "../live";
import { Answer, Do, Empty, Facts, Field, Figure, Form, runLink, saveAs, Section, setServerTime, State, Table, When, Why } from "../parts";
import { go, type Route } from "../route";
import { Charts } from "./run_charts";
import { Logs } from "./run_logs";
import { Against } from "./run_plan";

export const kEnded = ["succeeded", "failed", "cancelled", "expired"];
const kWaitS = 20;

/** The run as it is: asked again as soon as it has another version. */
function useRun(id: string): { data: Run | undefined; error: Error | undefined; refresh: () => void } {
    const [data, setData] = useState<Run>();
    const [error, setError] = useState<Error>();
    const [again, setAgain] = useState(0);
    const { epoch } = useStore(connection);
    useEffect(() => {
        const stop = new AbortController();
        const follow = async (): Promise<void> => {
            let version: number | undefined;
            while (!stop.signal.aborted) {
                const asked = performance.now();
                try {
                    const run: Run = await get<Run>(`/api/v1/runs/${at(id)}`, version === undefined ? {} : { version, wait_s: kWaitS }, stop.signal);
                    version = run.run.version;
                    setServerTime(run.now);
                    setData(run);
                    setError(undefined);
                    if (kEnded.includes(run.run.state)) await new Promise((resolve) => setTimeout(resolve, 3000));
                } catch (problem) {
                    if (stop.signal.aborted) return;
                    if (problem instanceof Away) return;  // the next epoch begins anew
                    setError(problem as Error);
                    if (problem instanceof Problem && problem.status === 404) return;
                }
                const spent = performance.now() - asked;
                if (spent < 500) await new Promise((resolve) => setTimeout(resolve, 500 - spent));
            }
        };
        void follow();
        return () => stop.abort();
    }, [id, epoch, again]);
    return { data, error, refresh: () => setAgain((value) => value + 1) };
}

function Actions({ run, refresh }: { run: Run; refresh: () => void }): VNode | null {
    const { id = "", state, held } = run.run;
    const [more, setMore] = useState("");
    const [hours, setHours] = useState("1");
    const path = `/api/v1/runs/${at(id)}`;
    const over = kEnded.includes(state), waits = state === "queued" || state === "requeued";
    const after = refresh;
    const buttons = [
        !over && !held && waits && can("holdRun") ? <Do key="hold" label="Hold" does={() => post(`${path}/hold`)} after={after} /> : null,
        !over && held && can("releaseRun") ? <Do key="release" label="Release" does={() => post(`${path}/release`)} after={after} /> : null,
        !over && !waits && can("evictRun") ? <Do key="evict" label="Evict" ask="It writes a checkpoint, stops and queues again." does={() => post(`${path}/evict`)} after={after} /> : null,
        !over && run.lease && can("renewLease") ? <button key="lease" type="button" aria-expanded={more === "lease"} onClick={() => setMore(more === "lease" ? "" : "lease")}>Extend lease</button> : null,
        !over && !waits && can("keepRun") ? <button key="keep" type="button" aria-expanded={more === "keep"} onClick={() => setMore(more === "keep" ? "" : "keep")}>Keep</button> : null,
        over && can("resumeRun") ? <Do key="resume" label={state === "succeeded" ? "Run again from its checkpoint" : "Resume"}
            does={async () => go(`/runs/${at((await post<Submitted>(`${path}/resume`)).run ?? "")}`)} /> : null,
        !over && can("cancelRun") ? <Do key="cancel" label="Cancel" tone="bad" ask="End it for good?" does={() => post(`${path}/cancel`)} after={after} /> : null,
    ].filter(Boolean);
    if (buttons.length === 0) return null;
    return (
        <>
            <div class="actions">{buttons}</div>
            {more === "lease" ? (
                <Form label="Extend" does={async () => { await post(`${path}/lease`, { extend_s: Math.round(Number(hours) * 3600) }); setMore(""); refresh(); }}>
                    <Field label="By hours" type="number" min="0.1" step="0.1" value={hours} set={setHours} required />
                </Form>
            ) : null}
            {more === "keep" ? (
                <Form label="Keep" does={async () => { await post(`${path}/keep`, { for_s: Math.round(Number(hours) * 3600) }); setMore(""); refresh(); }}>
                    <Field label="Leave it alone, however idle, for hours" type="number" min="0" step="0.5" value={hours} set={setHours} required />
                </Form>
            ) : null}
        </>
    );
}

/** What became of it, in one line that a person would say. */
function Story({ run }: { run: Run }): VNode {
    const { state, cause: code, detail } = run.run;
    const lease = run.lease as { stop_at?: string } | undefined;
    return (
        <div class="story">
            {run.why?.text || (run.why && run.why.code !== "none") ? (
                <p class="why-line"><strong>{run.run.waits_at_engine ? "Waits at the engine: " : "Waits: "}</strong>{run.why?.text || cause(run.why?.code)}</p>
            ) : null}
            {run.why?.blockers.length ? <p>Before it: {run.why.blockers.slice(0, 12).map((each, index) => <>{index ? ", " : ""}{/^r-\d/.test(each) ? runLink(each) : each}</>)}</p> : null}
            {run.why?.unblock.map((each) => <p key={each} class="remedy">{each}</p>)}
            {run.eta?.text && (state === "queued" || state === "requeued") ? <p>Starts: {run.eta.text}</p> : null}
            {detail || (code !== "none" && code !== "ok") ? <p><strong>{words(state)}:</strong> {detail || cause(code)}</p> : null}
            {lease?.stop_at && !kEnded.includes(state) ? <p>Its lease ends <When at={lease.stop_at} /></p> : null}
            {run.stored?.warning ? <p class="warn">{run.stored.warning}</p> : null}
        </div>
    );
}

function Attempts({ run }: { run: Run }): VNode {
    const rows = [...run.attempts].reverse();
    return (
        <Section title="Attempts">
            <Table label="Attempts" rows={rows} id={(each) => each.id ?? ""} columns={[
                { title: "Attempt", of: (each) => each.id },
                { title: "State", of: (each) => <State of={each.state} /> },
                { title: "Why it ended", grow: true, of: (each) => each.detail || cause(each.cause) || (each.engine_wait ? each.engine_wait.detail : "") },
                { title: "Where", of: (each) => [...new Set(each.ranks.map((rank) => rank.node))].slice(0, 4).join(", ") },
                { title: "From step", figure: true, wide: true, of: (each) => (each.resume_step ? count(each.resume_step) : "start") },
                { title: "Placed", figure: true, wide: true, of: (each) => <When at={each.created_at} /> },
                { title: "Ran from", figure: true, of: (each) => <When at={each.running_at} /> },
                { title: "For", figure: true, of: (each) => (each.running_at && each.ended_at ? seconds(Math.round((Date.parse(each.ended_at) - Date.parse(each.running_at)) / 100) / 10) : "") },
                { title: "Exit", figure: true, wide: true, of: (each) => [...new Set(each.ranks.filter((rank) => rank.ended).map((rank) => (rank.signal ? `signal ${rank.signal}` : rank.exit_code ?? "")))].join(", ") },
            ]}><Empty>It has not been started yet.</Empty></Table>
        </Section>
    );
}

function Artifacts({ id, over }: { id: string; over: boolean }): VNode {
    const found = useLive<ArtifactList>(`artifacts ${id}`, (signal) => get(`/api/v1/runs/${at(id)}/artifacts`, {}, signal), over ? 60_000 : 10_000);
    const save = async (path: string): Promise<void> => {
        const answer = await ask("GET", `/api/v1/runs/${at(id)}/artifacts/${path.split("/").map(at).join("/")}`);
        saveAs(path.split("/").pop() ?? "artifact", await answer.blob());
    };
    return (
        <Section title="Artifacts">
            <Answer of={found}>{(list) => (
                <Table label="Artifacts" rows={list.items} id={(each) => each.path ?? ""} columns={[
                    { title: "File", grow: true, of: (each) => <span class="name">{each.path}</span> },
                    { title: "Size", figure: true, of: (each) => bytes(each.bytes) },
                    { title: "Written", figure: true, of: (each) => <When at={each.modified_at} /> },
                    { title: "Do", quiet: true, of: (each) => ((each.bytes ?? 0) <= 16 * 1024 * 1024 ? <Do label="Save" does={() => save(each.path ?? "")} /> : <span class="dim small">larger than 16 MiB: stoker export {id}</span>) },
                ]}><Empty>What it writes to <code>$STOKER_ARTIFACT_DIR</code> is listed here.</Empty></Table>
            )}</Answer>
        </Section>
    );
}

function Events({ id, version }: { id: string; version: number }): VNode {
    const found = useLive<EventPage>(`events ${id} ${version}`, (signal) => get(`/api/v1/runs/${at(id)}/events`, { limit: 500 }, signal), 60_000);
    return (
        <details class="fold">
            <summary>What happened, record by record</summary>
            <Answer of={found}>{(page) => (
                <Table label="Events" rows={[...page.items].reverse()} id={(each) => String(each.seq)} columns={[
                    { title: "Record", figure: true, of: (each) => each.seq },
                    { title: "When", of: (each) => <When at={each.at} /> },
                    { title: "What", grow: true, of: (each) => <><b>{each.kind}</b> {each.cause && each.cause !== "none" ? cause(each.cause) : ""}</> },
                    { title: "Of what", wide: true, of: (each) => each.object },
                    { title: "By", of: (each) => each.actor },
                ]}><Empty>Nothing yet.</Empty></Table>
            )}</Answer>
        </details>
    );
}

function Checkpoints({ run }: { run: Run }): VNode | null {
    const kept = run.checkpoints;
    if (!kept || (kept.items.length === 0 && !run.spec.checkpoint.interval_s)) return null;
    return (
        <Section title="Checkpoints">
            <Table label="Checkpoints" rows={kept.items} id={(each) => String(each.step)} columns={[
                { title: "Step", of: (each) => count(each.step) },
                { title: "State", of: (each) => <State of={each.complete ? "ok" : "torn"} why={each.fault} /> },
                { title: "Folder", grow: true, of: (each) => <span class="name">{each.folder}</span> },
            ]}><Empty>None complete yet{run.spec.checkpoint.interval_s ? `; one is due every ${seconds(run.spec.checkpoint.interval_s)}` : ""}.</Empty></Table>
            {run.stored ? <p class="small">Stored: step {count(run.stored.step)} in {run.stored.url}, {bytes(run.stored.bytes)}, <When at={run.stored.stored_at} /></p> : null}
        </Section>
    );
}

function Needs({ run }: { run: Run }): VNode {
    const { spec } = run, needs = spec.per_rank;
    return (
        <details class="fold">
            <summary>What was submitted</summary>
            <Facts of={[
                ["Command", <code class="wrap">{spec.command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")}</code>],
                ["Each rank", [`${milli(needs.cpu_milli)} CPU`, needs.memory_bytes ? bytes(needs.memory_bytes) : "", needs.gpus ? `${needs.gpus} ${needs.gpu_model ?? "GPU"}` : ""].filter(Boolean).join(", ")],
                ["Ranks", `${spec.ranks}${spec.nodes ? ` on ${spec.nodes} nodes` : ""}`],
                ["Class and priority", `${spec.class}, ${spec.priority}`],
                spec.image && ["Image", spec.image],
                spec.folder && ["Folder", spec.folder],
                run.folder && ["What it keeps", run.folder],
                spec.source?.commit && ["Commit", `${spec.source.commit.slice(0, 12)}${spec.source.dirty_sha256 ? ", with changes" : ""}`],
                ["Restarts", `${spec.max_restarts} of its own faults, ${spec.max_attempts} attempts in all`],
                spec.timeout_s && ["Timeout", seconds(spec.timeout_s)],
                run.digest && ["Digest", <code>{run.digest.slice(0, 16)}</code>],
            ]} />
        </details>
    );
}

export function RunPage({ id }: { id: string; route: Route }): VNode {
    const live = useRun(id);
    return <Answer of={live}>{(run) => <Shown id={id} run={run} refresh={live.refresh} />}</Answer>;
}

function Shown({ id, run, refresh }: { id: string; run: Run; refresh: () => void }): VNode {
    const item = run.run, over = kEnded.includes(item.state), plan = run.spec.prediction;
    const steps = run.metrics?.["step"] ?? undefined;
    return (
        <>
            <div class="head">
                <h1><span class="dim">{item.id}</span> <span class="name">{item.name}</span> <State of={item.held && item.state === "queued" ? "held" : item.state} /></h1>
                <div class="side"><Actions run={run} refresh={refresh} /></div>
            </div>
            <Story run={run} />
            <div class="figures">
                <Figure title="Held machines" value={item.used_s ? seconds(Math.round(item.used_s)) : "–"} note={plan?.run_s ? `plan ${seconds(plan.run_s)} (${seconds(plan.run_low_s)} to ${seconds(plan.run_high_s)})` : many(item.attempts, "attempt")} />
                <Figure title="Cost so far" value={run.cost_microusd === undefined ? "no price" : money(run.cost_microusd)} note={plan?.cost_microusd ? `plan ${money(plan.cost_microusd)}` : run.cost_microusd === undefined ? "stoker up --prices" : ""} />
                <Figure title="Ranks" value={item.ranks} note={item.gpus ? many(item.gpus, "GPU") : `${milli(run.spec.per_rank.cpu_milli)} CPU each`} />
                <Figure title="Submitted" value={<When at={item.submitted_at} />} note={`by ${item.user ?? ""}, ${item.project ?? ""}`} />
                <Figure title={over ? "Ended" : "Started"} value={<When at={over ? item.ended_at : item.started_at} />} note={steps !== undefined ? `step ${count(steps)}` : item.nodes.slice(0, 3).join(", ")} />
            </div>
            {run.steps.length ? (
                <Section title="Steps">
                    <Table label="Steps" rows={run.steps} id={(each) => each.step ?? ""} columns={[
                        { title: "Step", grow: true, of: (each) => each.step },
                        { title: "Run", of: (each) => (each.run ? runLink(each.run) : "") },
                        { title: "State", of: (each) => <><State of={each.state} /> <Why code={each.cause === "ok" ? "none" : each.cause} /></> },
                        { title: "After", of: (each) => each.needs.join(", ") },
                    ]} />
                </Section>
            ) : null}
            {item.kind !== "graph" && item.started_at ? <Against id={id} over={over} version={item.version} /> : null}
            {item.kind !== "graph" && item.started_at ? <Charts id={id} over={over} plan={plan} /> : null}
            {item.kind !== "graph" ? <Logs id={id} run={run} over={over} /> : null}
            <Attempts run={run} />
            <Checkpoints run={run} />
            {item.started_at && item.kind !== "graph" ? <Artifacts id={id} over={over} /> : null}
            <Needs run={run} />
            <Events id={id} version={item.version} />
        </>
    );
}
