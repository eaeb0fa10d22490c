// What every page is made of.
import type { ComponentChildren, JSX, VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Away, Problem, Store } from "./api";
import { absolute, ago, cause } from "./format";
import { useStore } from "./live";

// ------------------------------------------------------------------ times

/** Of the page, a second each; what a server says of its own clock moves it. */
export const clock = new Store(Date.now());
let ahead = 0;
export function setServerTime(now: string | undefined): void {
    if (now) ahead = new Date(now).getTime() - Date.now();
}
export function startClock(): void {
    setInterval(() => { if (!document.hidden) clock.value = Date.now() + ahead; }, 1000);
}

export function When({ at }: { at: string | undefined }): VNode {
    const now = useStore(clock);
    return at ? <time dateTime={at} title={absolute(at)}>{ago(at, now)}</time> : <span class="dim">–</span>;
}

// ------------------------------------------------------------------ errors and emptiness

/** calm: it hinders nothing. */
export function Trouble({ error, calm }: { error: Error | undefined; calm?: boolean }): VNode | null {
    if (!error || error instanceof Away) return null;
    if (!(error instanceof Problem)) return <div class="trouble" role="alert"><p>{error.message}</p></div>;
    return (
        <div class={calm ? "calm" : "trouble"} role={calm ? "status" : "alert"}>
            {error.troubles.slice(0, 20).map((each, index) => (
                <p key={index}>
                    {each.place?.line && !calm ? <span class="place">{`${each.place.line}:${each.place.column ?? 1}`}</span> : null}
                    {each.message}
                    {each.remedy ? <span class="remedy">{each.remedy}</span> : null}
                </p>
            ))}
            {error.trace && !calm ? <p class="dim small">trace {error.trace}</p> : null}
        </div>
    );
}

export function Empty({ children, command }: { children: ComponentChildren; command?: string }): VNode {
    return <div class="empty"><p>{children}</p>{command ? <p><code>{command}</code></p> : null}</div>;
}

export function Waiting(): VNode {
    return <p class="dim waiting">Asking …</p>;
}

/** The answer, or why there is none yet. */
export function Answer<T>({ of, children }: { of: { data: T | undefined; error: Error | undefined }; children: (data: T) => ComponentChildren }): VNode {
    return (
        <>
            <Trouble error={of.error} />
            {of.data !== undefined ? children(of.data) : of.error ? null : <Waiting />}
        </>
    );
}

// ------------------------------------------------------------------ structure

export function Section({ title, id, side, children }: { title: string; id?: string; side?: ComponentChildren; children: ComponentChildren }): VNode {
    const own = useId();
    return (
        <section aria-labelledby={own} {...(id ? { id } : {})}>
            <div class="head"><h2 id={own}>{title}</h2>{side ? <div class="side">{side}</div> : null}</div>
            {children}
        </section>
    );
}

export function Facts({ of }: { of: Array<[string, ComponentChildren] | null | false | undefined | "" | 0> }): VNode {
    return (
        <dl class="facts">
            {of.map((each) => (each ? <div key={each[0]}><dt>{each[0]}</dt><dd>{each[1]}</dd></div> : null))}
        </dl>
    );
}

export function Figure({ title, value, note, href, tone }: { title: string; value: ComponentChildren; note?: ComponentChildren; href?: string; tone?: Tone }): VNode {
    const inner = <><span class="title">{title}</span><span class="value">{value}</span><span class="note">{note ?? "\u00a0"}</span></>;
    return href ? <a class={`figure ${tone ?? ""}`} href={href}>{inner}</a> : <div class={`figure ${tone ?? ""}`}>{inner}</div>;
}

// ------------------------------------------------------------------ states

export type Tone = "good" | "busy" | "warn" | "bad" | "calm";
const kTones: Record<string, Tone> = {
    serving: "good", slow_start: "busy", failing: "bad", ejected: "bad", unkept: "warn", stopping: "warn",
    running: "busy", starting: "busy", checkpointing: "busy", launching: "busy", ending: "busy", checking: "busy",
    succeeded: "good", ready: "good", pass: "good", valid: "good", active: "good", inside: "good", ok: "good",
    failed: "bad", lost: "bad", expired: "bad", quarantined: "bad", fail: "bad", outside: "bad",
    requeued: "warn", cancelling: "warn", draining: "warn", suspect: "warn", warn: "warn", torn: "warn",
};

export function State({ of, why }: { of: string; why?: string | undefined }): VNode {
    return <span class={`state ${kTones[of] ?? "calm"}`} title={why ?? ""}>{of.replaceAll("_", " ")}</span>;
}

export function Why({ code, text }: { code: string | undefined; text?: string | undefined }): VNode | null {
    const words = text || cause(code);
    return words ? <span class="why">{words}</span> : null;
}

/** How much of how much. The figures are beside it in words: this is the picture. */
export function Bar({ share, tone }: { share: number; tone?: Tone }): VNode {
    const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    return <span class="bar" aria-hidden="true"><span class={tone ?? (share > 1 ? "bad" : share > 0.8 ? "warn" : "good")} style={{ width }} /></span>;
}

// ------------------------------------------------------------------ tables

export interface Column<T> {
    title: string;
    of: (row: T) => ComponentChildren;
    figure?: boolean;
    /** Left out where there is little room. */
    wide?: boolean;
    grow?: boolean;
    /** The title is for readers of screens alone. */
    quiet?: boolean;
}
const kMostRows = 500;

export function Table<T>({ rows, columns, id, label, children }: {
    rows: T[]; columns: Array<Column<T> | null | false>; id: (row: T, index: number) => string; label: string; children?: ComponentChildren;
}): VNode {
    const shown = columns.filter((each): each is Column<T> => Boolean(each));
    if (rows.length === 0) return <>{children}</>;
    const kind = (each: Column<T>): string => [each.figure ? "n" : "", each.wide ? "wide" : "", each.grow ? "grow" : ""].join(" ").trim();
    return (
        <div class="table" role="region" aria-label={`${label}: table`} tabIndex={0}>
            <table>
                <thead><tr>{shown.map((each) => <th key={each.title} scope="col" class={kind(each)}>{each.quiet ? <span class="unseen">{each.title}</span> : each.title}</th>)}</tr></thead>
                <tbody>
                    {rows.slice(0, kMostRows).map((row, index) => (
                        <tr key={id(row, index)}>{shown.map((each) => <td key={each.title} class={kind(each)}>{each.of(row)}</td>)}</tr>
                    ))}
                </tbody>
            </table>
            {rows.length > kMostRows ? <p class="dim small">The first {kMostRows} of {rows.length.toLocaleString("en-US")}.</p> : null}
        </div>
    );
}

// ------------------------------------------------------------------ doing

/** A button that does one thing, says while it does, and shows what came of it where it stands. */
export function Do({ label, does, after, tone, ask, disabled }: {
    label: string; does: () => Promise<unknown>; after?: () => void; tone?: "bad" | "main"; ask?: string; disabled?: boolean;
}): VNode {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<Error>();
    const [sure, setSure] = useState(false);
    const here = useRef(true);
    useEffect(() => () => void (here.current = false), []);
    const go = async (): Promise<void> => {
        setSure(false);
        setBusy(true);
        setError(undefined);
        try {
            await does();
            after?.();
        } catch (problem) {
            if (here.current) setError(problem instanceof Away ? new Error("the server does not answer: nothing was done") : (problem as Error));
        }
        if (here.current) setBusy(false);
    };
    return (
        <span class="do">
            {sure ? (
                <span class="sure" role="group" aria-label={ask}>
                    {ask} <button type="button" class={tone ?? ""} onClick={go} autoFocus>{label}</button>
                    <button type="button" onClick={() => setSure(false)}>no</button>
                </span>
            ) : (
                <button type="button" class={tone ?? ""} disabled={busy || disabled} onClick={() => (ask ? setSure(true) : void go())}>
                    {busy ? `${label} …` : label}
                </button>
            )}
            <Trouble error={error} />
        </span>
    );
}

type InputProps = JSX.IntrinsicElements["input"];
export function Field({ label, hint, value, set, ...rest }: { label: string; hint?: string; value: string; set: (value: string) => void } & Omit<InputProps, "value" | "onInput" | "ref" | "label">): VNode {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>{label}</label>
            <input {...(rest as object)} id={id} value={value} onInput={(event) => set((event.currentTarget as HTMLInputElement).value)}
                {...(hint ? { "aria-describedby": `${id}-hint` } : {})} />
            {hint ? <span class="hint" id={`${id}-hint`}>{hint}</span> : null}
        </div>
    );
}

export function Choice({ label, value, set, options }: { label: string; value: string; set: (value: string) => void; options: Array<string | [string, string]> }): VNode {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>{label}</label>
            <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
                {options.map((each) => {
                    const [name, words] = typeof each === "string" ? [each, each] : each;
                    return <option key={name} value={name} selected={name === value}>{words}</option>;
                })}
            </select>
        </div>
    );
}

/** A form that is sent once at a time. */
export function Form({ label, does, children, disabled }: { label: string; does: () => Promise<unknown>; children: ComponentChildren; disabled?: boolean }): VNode {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<Error>();
    const send = async (event: Event): Promise<void> => {
        event.preventDefault();
        if (busy) return;
        setBusy(true);
        setError(undefined);
        try {
            await does();
        } catch (problem) {
            setError(problem instanceof Away ? new Error("the server does not answer: nothing was done") : (problem as Error));
        }
        setBusy(false);
    };
    return (
        <form onSubmit={send}>
            <div class="fields">{children}<button type="submit" class="main" disabled={busy || disabled}>{busy ? `${label} …` : label}</button></div>
            <Trouble error={error} />
        </form>
    );
}

/** A text that is kept by the browser's user as a file. */
export function saveAs(name: string, data: Blob): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(data);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const runLink = (id: string | undefined): VNode => <a class="id" href={`#/runs/${encodeURIComponent(id ?? "")}`}>{id}</a>;
