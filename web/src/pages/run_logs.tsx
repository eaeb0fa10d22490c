// What a rank wrote, as it writes it; never more of it in the page than can be read.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, at, Away, connection, get } from "../api";
import type { LogMatches, Run } from "../api_types";
import { many, plain } from "../format";
import { useStore } from "../live";
import { Choice, Do, Empty, Field, saveAs, Section, Trouble } from "../parts";

export const kMostLines = 2000, kMostLetters = 400_000, kTail = 500;

/** The end of a text, whole lines, within the bounds of the page. */
export function bounded(text: string): { text: string; cut: boolean } {
    let from = Math.max(0, text.length - kMostLetters);
    if (from > 0) from = text.indexOf("\n", from) + 1 || from;
    let lines = 0;
    for (let i = text.length - 1; i >= from; --i)
        if (text[i] === "\n" && i !== text.length - 1 && ++lines >= kMostLines) {
            from = i + 1;
            break;
        }
    return { text: from ? text.slice(from) : text, cut: from > 0 };
}

function useLog(id: string, attempt: number, rank: number, over: boolean): { text: string; cut: boolean; gap: boolean; error: Error | undefined } {
    const [state, set] = useState({ text: "", cut: false, gap: false });
    const [error, setError] = useState<Error>();
    const { epoch } = useStore(connection);
    useEffect(() => {
        const stop = new AbortController();
        let held = "", cut = false, gap = false;
        const show = (): void => {
            const kept = bounded(held);
            held = kept.text;
            cut ||= kept.cut;
            set({ text: held, cut, gap });
        };
        const follow = async (): Promise<void> => {
            let next: string | null = null;
            while (!stop.signal.aborted) {
                const began = performance.now();
                try {
                    const answer: Response = await ask("GET", `/api/v1/runs/${at(id)}/logs`, {
                        query: { attempt: attempt || undefined, rank, ...(next === null ? { tail: kTail } : { offset: next, wait_s: over ? 0 : 20 }) },
                        signal: stop.signal,
                    });
                    const text = await answer.text();
                    if (next === null) cut = text.split("\n").length > kTail;
                    held += text;
                    gap ||= answer.headers.get("Stoker-Log-Gap") === "true";
                    next = answer.headers.get("Stoker-Log-Next") ?? next;
                    setError(undefined);
                    show();
                    if (answer.headers.get("Stoker-Log-End") === "true") return;
                    if (next === null || (over && text === "")) await new Promise((resolve) => setTimeout(resolve, 3000));
                } catch (problem) {
                    if (stop.signal.aborted || problem instanceof Away) return;
                    setError(problem as Error);
                    await new Promise((resolve) => setTimeout(resolve, 5000));
                }
                const spent = performance.now() - began;
                if (spent < 300) await new Promise((resolve) => setTimeout(resolve, 300 - spent));
            }
        };
        set({ text: "", cut: false, gap: false });
        void follow();
        return () => stop.abort();
    }, [id, attempt, rank, over, epoch]);
    return { ...state, error };
}

function Found({ id, attempt, rank, search }: { id: string; attempt: number; rank: number; search: string }): VNode {
    const [found, set] = useState<LogMatches>();
    const [error, setError] = useState<Error>();
    useEffect(() => {
        const stop = new AbortController();
        set(undefined);
        get<LogMatches>(`/api/v1/runs/${at(id)}/logs`, { attempt: attempt || undefined, rank, search }, stop.signal).then(set, (problem: Error) => {
            if (!stop.signal.aborted) setError(problem);
        });
        return () => stop.abort();
    }, [id, attempt, rank, search]);
    if (!found) return <Trouble error={error} />;
    const rows = found.items.slice(0, 500);
    return (
        <>
            <p class="small">{many(found.items.length, "line")} with this{found.cut || rows.length < found.items.length ? `; the first ${rows.length} are shown` : ""}</p>
            {rows.length ? <pre class="log" tabIndex={0} aria-label="Lines found">{rows.map((each) => `${String(each.line).padStart(7)}  ${plain(each.text ?? "")}`).join("\n")}</pre> : null}
        </>
    );
}

export function Logs({ id, run, over }: { id: string; run: Run; over: boolean }): VNode {
    const tries = run.run.attempts;
    const [rank, setRank] = useState(0);
    const [attempt, setAttempt] = useState(0);
    const [typed, setTyped] = useState("");
    const [search, setSearch] = useState("");
    const [follows, setFollows] = useState(true);
    const log = useLog(id, attempt, rank, over);
    const box = useRef<HTMLPreElement>(null);
    useEffect(() => {
        if (follows && box.current) box.current.scrollTop = box.current.scrollHeight;
    }, [log.text, follows]);
    const scrolled = (): void => {
        const at_ = box.current;
        if (at_) setFollows(at_.scrollHeight - at_.scrollTop - at_.clientHeight < 40);
    };
    const save = async (): Promise<void> => {
        const answer = await ask("GET", `/api/v1/runs/${at(id)}/logs`, { query: { attempt: attempt || undefined, rank, limit: 1_048_576 } });
        saveAs(`${id}-rank-${rank}.log`, await answer.blob());
    };
    const look = (event: Event): void => {
        event.preventDefault();
        setSearch(typed);
    };
    return (
        <Section title="Log" id="log" side={<Do label="Save the first MiB" does={save} />}>
            <form class="filters" role="search" aria-label="Log" onSubmit={look}>
                {run.run.ranks > 1 ? <Choice label="Rank" value={String(rank)} set={(value) => setRank(Number(value))}
                    options={Array.from({ length: Math.min(512, run.run.ranks) }, (_, each) => String(each))} /> : null}
                {tries > 1 ? <Choice label="Attempt" value={String(attempt)} set={(value) => setAttempt(Number(value))}
                    options={[["0", "the last"], ...Array.from({ length: Math.min(100, tries) }, (_, each): [string, string] => [String(each + 1), String(each + 1)])]} /> : null}
                <Field label="Only lines with" value={typed} set={setTyped} />
                <button type="submit">Search</button>
                {search ? <button type="button" onClick={() => { setSearch(""); setTyped(""); }}>Show all</button> : null}
            </form>
            {search ? <Found id={id} attempt={attempt} rank={rank} search={search} /> : (
                <>
                    <Trouble error={log.error} />
                    {log.cut ? <p class="dim small">Older lines are left out here. All of it: <code>stoker logs {id} --rank {rank}</code></p> : null}
                    {log.gap ? <p class="warn small">Rotation took some lines in between.</p> : null}
                    {log.text ? <pre class="log" ref={box} tabIndex={0} aria-label="Log" onScroll={scrolled}>{plain(log.text)}</pre>
                        : <Empty>{over ? "It wrote nothing." : "It has written nothing yet."}</Empty>}
                    {!over && log.text && !follows ? <p><button type="button" onClick={() => setFollows(true)}>Follow the end</button></p> : null}
                </>
            )}
        </Section>
    );
}
