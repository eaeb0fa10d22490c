// Pages that stay true: what is shown is asked again when something happened, when the server is back, and every few seconds.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Away, can, connection, get, lost, ask, type Store } from "./api";
import { Store as Kept } from "./api";
import type { Version } from "./api_types";

export function useStore<T>(store: Store<T>): T {
    const [value, set] = useState(store.value);
    useEffect(() => {
        set(() => store.value);
        return store.follow(() => set(() => store.value));
    }, [store]);
    return value;
}

/** Grows when the journal has something new. Who may not read the journal asks more often instead. */
export const happened = new Kept(0);

export interface Live<T> {
    data: T | undefined;
    error: Error | undefined;
    refresh: () => void;
}

/** `ask` anew with each change of `key`; every: ms between two answers. The last answer stays while the server is away. */
export function useLive<T>(key: string, fetcher: (signal: AbortSignal) => Promise<T>, every = 5000): Live<T> {
    const [state, set] = useState<{ key: string; data?: T; error?: Error }>({ key });
    const latest = useRef(fetcher);
    latest.current = fetcher;
    const [again, setAgain] = useState(0);
    const refresh = useCallback(() => setAgain((value) => value + 1), []);
    const { epoch } = useStore(connection);

    useEffect(() => {
        let over = false, timer: ReturnType<typeof setTimeout> | undefined, busy = false, wanted = false;
        const stop = new AbortController();
        const round = async (): Promise<void> => {
            if (over || busy) return void (wanted = true);
            if (document.hidden) return void (timer = setTimeout(round, every));
            busy = true;
            wanted = false;
            clearTimeout(timer);
            try {
                const data = await latest.current(stop.signal);
                if (!over) set({ key, data });
            } catch (error) {
                if (!over && !(error instanceof Away))
                    set((old) => ({ key, ...(old.key === key && old.data !== undefined ? { data: old.data } : {}), error: error as Error }));
            }
            busy = false;
            if (!over) timer = setTimeout(round, wanted ? 300 : every);
        };
        void round();
        const unfollow = happened.follow(() => void round());
        const seen = (): void => void (document.hidden || round());
        document.addEventListener("visibilitychange", seen);
        return () => {
            over = true;
            clearTimeout(timer);
            stop.abort();
            unfollow();
            document.removeEventListener("visibilitychange", seen);
        };
    }, [key, again, epoch, every]);
    return { data: state.key === key ? state.data : undefined, error: state.key === key ? state.error : undefined, refresh };
}

/** Follows the journal for as long as the caller may read it; ends with the signal. */
export async function followJournal(signal: AbortSignal): Promise<void> {
    if (!can("listEvents")) return;
    let after = (await get<Version>("/api/v1/version", {}, signal)).seq;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ring = (): void => {
        timer ??= setTimeout(() => {
            timer = undefined;
            happened.value = happened.value + 1;
        }, 400);
    };
    while (!signal.aborted) {
        try {
            const answer = await ask("GET", "/api/v1/events", { query: { after }, headers: { Accept: "text/event-stream" }, signal });
            const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
            for (let rest = ""; ;) {
                const { done, value } = await reader.read();
                if (done) break;
                rest += value;
                const cut = rest.lastIndexOf("\n");
                for (const line of rest.slice(0, cut + 1).split("\n"))
                    if (line.startsWith("id:")) after = Number(line.slice(3)) || after, ring();
                rest = rest.slice(cut + 1);
            }
        } catch (error) {
            if (signal.aborted) return;
            if (error instanceof TypeError) lost();  // it broke off in the middle
            else if (!(error instanceof Away)) return;
        }
        await new Promise((resolve) => setTimeout(resolve, 1000));
    }
}
