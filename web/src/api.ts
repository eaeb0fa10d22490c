// The door to the server: who asks, what came back, and whether anybody is there at all.
import type { Caller, Problem as ProblemBody } from "./api_types";

export interface Place { in?: string; line?: number; column?: number }
export interface Trouble { message: string; remedy?: string; place?: Place }

/** An answer of the API that says no, with what to do about it. */
export class Problem extends Error {
    readonly status: number;
    readonly troubles: Trouble[];
    readonly trace: string;
    constructor(status: number, title: string, troubles: Trouble[], trace: string) {
        super(title);
        this.status = status;
        this.troubles = troubles;
        this.trace = trace;
    }
}

/** Nobody answered: the server is away, or on its way back. */
export class Away extends Error {}

export function problemOf(status: number, text: string): Problem {
    let body: Partial<ProblemBody> = {};
    try {
        body = JSON.parse(text) as Partial<ProblemBody>;
    } catch {
        // A proxy in between answers with a page.
    }
    const troubles = Array.isArray(body.problems) ? (body.problems as Trouble[]) : [];
    const title = body.title ?? `the server answered ${status}`;
    if (troubles.length === 0) troubles.push({ message: body.detail ?? title });
    return new Problem(status, title, troubles, body.trace_id ?? "");
}

// ------------------------------------------------------------------ a value that components follow

export class Store<T> {
    private readonly followers = new Set<() => void>();
    constructor(private value_: T) {}
    get value(): T { return this.value_; }
    set value(next: T) {
        if (Object.is(next, this.value_)) return;
        this.value_ = next;
        for (const each of [...this.followers]) each();
    }
    follow(each: () => void): () => void {
        this.followers.add(each);
        return () => void this.followers.delete(each);
    }
}

/** since: of the last answer, in ms of performance.now(); epoch grows whenever the server is back. */
export interface Connection { up: boolean; since: number; epoch: number }
export const connection = new Store<Connection>({ up: true, since: 0, epoch: 0 });
export const caller = new Store<Caller | null>(null);
/** Why somebody has to log in again. */
export const farewell = new Store<string>("");

// ------------------------------------------------------------------ who asks

const kToken = "stoker.token";
let token = "", csrf = "";

const kept = (): Storage | null => {
    try {
        return window.sessionStorage;
    } catch {
        return null;
    }
};

export function setToken(next: string): void {
    token = next;
    csrf = "";
    if (next) kept()?.setItem(kToken, next);
    else kept()?.removeItem(kToken);
}
export function setCsrf(next: string): void { csrf = next; }

// That there is a login by cookie, which no script can see: without one nobody is asked who this is, since each such question
// would stand in the audit trail as refused.
const kCookie = "stoker.cookie";
export function noteCookie(there: boolean): void {
    try {
        if (there) window.localStorage.setItem(kCookie, "1");
        else window.localStorage.removeItem(kCookie);
    } catch {
        // Then it is asked each time.
    }
}
export function mayBeKnown(): boolean {
    try {
        return hasToken() || window.localStorage.getItem(kCookie) !== null;
    } catch {
        return true;
    }
}
export const hasToken = (): boolean => token !== "";

/** A token in the fragment of the address, as `stoker console` prints it, is taken out of it before anything else happens. */
export function takeToken(): boolean {
    const found = /^#token=([^&]+)/.exec(window.location.hash);
    if (found?.[1]) {
        setToken(decodeURIComponent(found[1]));
        window.history.replaceState(null, "", window.location.pathname + "#/");
        return true;
    }
    token ||= kept()?.getItem(kToken) ?? "";
    return false;
}

export function forget(why: string): void {
    setToken("");
    noteCookie(false);
    farewell.value = why;
    caller.value = null;
}

declare const RIGHTS: Record<string, [number, ...string[]]>;
const kLevels = ["project", "organisation", "provider"];

/** By the same table as the server's: src/server/routes*.cpp, through docs/reference/openapi.json. */
export function can(operation: string): boolean {
    const right = RIGHTS[operation], who = caller.value;
    if (!right || !who) return false;
    const [level, ...roles] = right;
    return roles.length === 0 || (roles.includes(who.role) && kLevels.indexOf(who.level) >= level);
}

// ------------------------------------------------------------------ asking

export type Query = Record<string, string | number | boolean | undefined | null>;
export interface Ask {
    query?: Query;
    body?: unknown;
    signal?: AbortSignal | undefined;
    headers?: Record<string, string>;
    /** Neither a missing login nor a missing server is more than this request's own. */
    quiet?: boolean;
}

export function address(path: string, query?: Query): string {
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {}))
        if (value !== undefined && value !== null && value !== "") words.set(name, String(value));
    const text = words.toString();
    return text ? `${path}?${text}` : path;
}

/** A segment of a path: names of runs and nodes are other people's texts. */
export const at = (text: string): string => encodeURIComponent(text);

export async function ask(method: string, path: string, options: Ask = {}): Promise<Response> {
    const headers: Record<string, string> = { ...options.headers };
    if (token) headers["Authorization"] = `Bearer ${token}`;
    if (csrf && method !== "GET") headers["X-CSRF-Token"] = csrf;
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store", redirect: "error" };
    if (options.signal) init.signal = options.signal;
    if (options.body !== undefined) {
        headers["Content-Type"] = "application/json";
        init.body = JSON.stringify(options.body);
    }
    let answer: Response;
    try {
        answer = await fetch(address(path, options.query), init);
    } catch (error) {
        if (options.signal?.aborted) throw error;
        if (!options.quiet) lost();
        throw new Away("the server does not answer");
    }
    if (answer.ok) {
        heard();
        return answer;
    }
    const text = await answer.text();
    const problem = problemOf(answer.status, text);
    if (answer.status === 502 || answer.status === 504) {  // of a proxy, in whose back the server is away
        if (!options.quiet) lost();
        throw new Away("the server does not answer");
    }
    heard();
    if (answer.status === 401 && caller.value && !options.quiet)
        forget("You are logged out: the login has ended, or was ended.");
    throw problem;
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
    const answer = await ask("GET", path, { query: query ?? {}, signal });
    return body<T>(answer);
}

export async function post<T>(path: string, body_?: unknown, query?: Query): Promise<T> {
    const answer = await ask("POST", path, { body: body_, query: query ?? {} });
    return body<T>(answer);
}

async function body<T>(answer: Response): Promise<T> {
    if (answer.status === 204) return undefined as T;
    try {
        return (await answer.json()) as T;
    } catch {
        lost();  // cut short: the server went while it spoke
        throw new Away("the answer was cut short");
    }
}

// ------------------------------------------------------------------ is anybody there?

export const kLeastPauseMs = 400, kLongestPauseMs = 5000;
export const pauseAfter = (tries: number): number => Math.min(kLongestPauseMs, kLeastPauseMs * 2 ** tries);

let probing = false;

function heard(): void {
    const now = connection.value;
    // While it is down the probe alone says that it is up again, so that everything is asked anew, once.
    if (now.up) connection.value = { ...now, since: performance.now() };
}

export function lost(): void {
    if (!probing) void probe();
}

async function probe(): Promise<void> {
    probing = true;
    connection.value = { ...connection.value, up: false };
    for (let tries = 0; ; ++tries) {
        await new Promise((resolve) => setTimeout(resolve, pauseAfter(tries)));
        try {
            const answer = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(5000) });
            if (answer.ok) break;
        } catch {
            // Not yet.
        }
    }
    probing = false;
    connection.value = { up: true, since: performance.now(), epoch: connection.value.epoch + 1 };
}
