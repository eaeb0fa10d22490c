// From a file to a run: written or taken from a template, planned, and submitted when one has seen what it will take.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, can, get, post, Problem } from "../api";
import type { RunSpecInput, Submitted, TemplateList, WhatIf, Endpoint } from "../api_types";
import { useLive } from "../live";
import { Choice, Do, Field, Section, Trouble } from "../parts";
import { go, type Route, withQuery } from "../route";
import { Configurator } from "./configurator";
import { Tabs } from "./money";
import { type Plan, PlanView } from "./plan_view";
import { WhatIfAnswer } from "./queue";

const kKept = "stoker.draft";
const kFirst = `version: 1
name: hello
run:
  command: [sh, -c, 'for i in 1 2 3; do echo step $i; sleep 1; done']
  ranks: 1
  cpus: 1
`;

interface Placed { place?: { line?: number; column?: number } }
/** Of the whole file: the API says 1:1. */
const isWhole = (each: Placed): boolean => (each.place?.line ?? 1) === 1 && (each.place?.column ?? 1) === 1;
/** Lines that a problem points to. */
export function marked(error: Error | undefined): Set<number> {
    return new Set(error instanceof Problem ? error.troubles.filter((each) => !isWhole(each)).map((each) => each.place!.line!) : []);
}

/** What both questions say of one file, each problem once. */
function together(one: Problem, other: Problem | undefined): Problem {
    const seen = new Set(one.troubles.map((each) => each.message));
    const all = [...one.troubles, ...(other?.troubles ?? []).filter((each) => !seen.has(each.message))];
    // What is wrong in a line comes before what is wrong with the whole.
    return new Problem(one.status, one.message, all.sort((a, b) => Number(isWhole(a)) - Number(isWhole(b))), one.trace);
}

function Editor({ text, set, marks }: { text: string; set: (text: string) => void; marks: Set<number> }): VNode {
    const gutter = useRef<HTMLPreElement>(null);
    const lines = text.split("\n").length;
    return (
        <div class="editor">
            <pre class="gutter" ref={gutter} aria-hidden="true">
                {Array.from({ length: lines }, (_, at) => (marks.has(at + 1) ? <b key={at}>{`● ${at + 1}\n`}</b> : `${at + 1}\n`))}
            </pre>
            <textarea aria-label="Workload file" spellcheck={false} autocomplete="off" value={text} wrap="off"
                onInput={(event) => set(event.currentTarget.value)}
                onScroll={(event) => { if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop; }} />
        </div>
    );
}

export const kindOf = (text: string): string => /^kind:\s*["']?([\w-]+)/m.exec(text)?.[1] ?? "";
const nameOf = (text: string): string => (/^name:\s*["']?([\w.-]+)/m.exec(text)?.[1] ?? "workload") + ".yaml";

const drafts = (): Storage | null => {
    try {
        return window.sessionStorage;
    } catch {
        return null;
    }
};

export function Submit({ route }: { route: Route }): VNode {
    const guided = route.query.get("view") === "machine";
    return (
        <>
            <h1>Submit</h1>
            <Tabs of={[["", "A workload file"], ["machine", "A GPU machine for a while"]]} at={guided ? "machine" : ""} param="view" route={route} label="Ways to submit" />
            {guided ? <Configurator take={(text) => { drafts()?.setItem(kKept, text); go(withQuery(route, { view: "" })); }} /> : <FromFile />}
        </>
    );
}

type Body = { text: string; name: string; folder?: string };

function FromFile(): VNode {
    const [text, setText] = useState(() => drafts()?.getItem(kKept) ?? kFirst);
    const [folder, setFolder] = useState("");
    const [least, setLeast] = useState("1");
    const [most, setMost] = useState("2");
    const [picked, setPicked] = useState("");
    const [plans, setPlans] = useState<Plan[]>();
    const [spec, setSpec] = useState<RunSpecInput>();
    const [foresight, setForesight] = useState<WhatIf>();
    const [error, setError] = useState<Error>();
    const [noPlan, setNoPlan] = useState<Error>();
    const [noRun, setNoRun] = useState<Error>();
    const key = useRef("");
    const templates = useLive<TemplateList>("templates", (signal) => get("/api/v1/templates", {}, signal), 600_000);
    useEffect(() => { drafts()?.setItem(kKept, text); }, [text]);
    const serves = kindOf(text) === "inference" || kindOf(text) === "embedding";
    const body = (): Body => ({ text, name: nameOf(text), ...(folder.trim() ? { folder: folder.trim() } : {}) });

    const changed = (next: string): void => {
        setText(next);
        setPlans(undefined), setSpec(undefined), setForesight(undefined), setError(undefined), setNoRun(undefined), setNoPlan(undefined);
        key.current = "";
    };
    const specOf = async (): Promise<RunSpecInput> => (await post<{ run: RunSpecInput }>("/api/v1/spec", body())).run;
    const plan = async (): Promise<void> => {
        setError(undefined), setNoRun(undefined), setNoPlan(undefined), setPlans(undefined), setForesight(undefined), setSpec(undefined);
        const [planned, run] = await Promise.allSettled([
            post<{ plan: Plan | Plan[] }>("/api/v1/plan", body()), serves ? Promise.resolve(undefined) : specOf()]);
        for (const each of [planned, run])
            if (each.status === "rejected" && !(each.reason instanceof Problem && each.reason.status === 422)) throw each.reason;
        if (planned.status === "rejected" && (serves || run.status === "rejected"))
            return setError(together(planned.reason as Problem, run.status === "rejected" ? (run.reason as Problem) : undefined));
        if (planned.status === "fulfilled") setPlans(Array.isArray(planned.value.plan) ? planned.value.plan : [planned.value.plan]);
        else setNoPlan(planned.reason as Error);
        if (run.status === "rejected") return setNoRun(run.reason as Error);
        if (!run.value) return;
        setSpec(run.value);
        setForesight(await post<WhatIf>("/api/v1/runs", run.value, { dry_run: true }));
    };
    // The same click twice is one run: the key is of this text.
    const submit = async (): Promise<void> => {
        setError(undefined), setNoRun(undefined);
        key.current ||= Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, "0")).join("");
        let run: RunSpecInput;
        try {
            run = spec ?? (await specOf());
        } catch (problem) {
            setError(problem as Error);
            return;
        }
        const answer = await ask("POST", "/api/v1/runs", { body: run, headers: { "Idempotency-Key": key.current } });
        key.current = "";
        go(`/runs/${encodeURIComponent(((await answer.json()) as Submitted).run ?? "")}`);
    };
    const deploy = async (): Promise<void> => {
        setError(undefined);
        try {
            const made = await post<Endpoint>("/api/v1/endpoints", { ...body(), least: Number(least), most: Number(most) });
            go(`/endpoints/${encodeURIComponent(made.endpoint.name ?? "")}`);
        } catch (problem) {
            setError(problem as Error);
        }
    };
    return (
        <div class="columns">
            <Section title="The file">
                <div class="filters">
                    <Choice label="Start from a template" value={picked} set={(name) => { setPicked(name); const found = templates.data?.items.find((each) => each.name === name); changed(found?.text ?? kFirst); }}
                        options={[["", "a small run"], ...(templates.data?.items ?? []).map((each): [string, string] => [each.name ?? "", each.title ?? each.name ?? ""])]} />
                    <Field label="Folder on the server" value={folder} set={(next) => { setFolder(next); setSpec(undefined); }} placeholder="the server's own" />
                </div>
                <Editor text={text} set={changed} marks={marked(error)} />
                <Trouble error={error} />
                {serves && can("deployEndpoint") ? (
                    <div class="filters">
                        <Field label="Replicas at least" type="number" min="0" value={least} set={setLeast} hint="0: it sleeps, and wakes" />
                        <Field label="At most" type="number" min="1" value={most} set={setMost} />
                    </div>
                ) : null}
                <p class="actions">
                    <Do label="Plan" does={plan} />
                    {serves ? (can("deployEndpoint") ? <Do label="Deploy" tone="main" does={deploy} /> : null) : <Do label="Submit" tone="main" does={submit} />}
                </p>
                <p class="dim small">The same from a terminal: <code>stoker plan {nameOf(text)}</code> and <code>{serves ? "stoker deploy" : "stoker submit"} {nameOf(text)}</code></p>
            </Section>
            <div>
                {foresight ? <Section title="If it were submitted now"><WhatIfAnswer of={foresight} /></Section> : null}
                {plans?.map((each, at) => <PlanView key={at} plan={each} />)}
                {noRun ? <Section title="Planned, and not to be run as it is"><Trouble error={noRun} calm /></Section> : null}
                {noPlan ? <Section title="The plan"><Trouble error={noPlan} calm /></Section> : null}
                {!plans && !foresight && !noRun ? <Section title="The plan"><p class="dim">Plan says where it would run, how long, how sure, for how much, and why the others lost, before anything is started.</p></Section> : null}
            </div>
        </div>
    );
}
