// The frame of every page: who is logged in, where one can go, and whether the server is there.
import type { VNode } from "preact";
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Away, Problem, ask, caller, can, connection, forget, get, hasToken, mayBeKnown, setCsrf, takeToken } from "./api";
import type { Caller } from "./api_types";
import { followJournal, useStore } from "./live";
import { clock, Trouble } from "./parts";
import { seconds } from "./format";
import { type Route, useRoute } from "./route";
import { Login } from "./pages/login";
import { Overview } from "./pages/overview";
import { RunPage } from "./pages/run";
import { Runs } from "./pages/runs";
import { Queue } from "./pages/queue";
import { Submit } from "./pages/submit";
import { NodePage, Nodes } from "./pages/nodes";
import { EndpointPage, Endpoints } from "./pages/endpoints";
import { Money } from "./pages/money";
import { Access } from "./pages/access";

interface Page { path: string; title: string; may?: () => boolean; show: (route: Route) => VNode }

// A menu entry is there for who may ask what its page asks.
const kPages: Page[] = [
    { path: "", title: "Overview", show: () => <Overview /> },
    { path: "runs", title: "Runs", show: (route) => (route.path[1] ? <RunPage key={route.path[1]} id={route.path[1]} route={route} /> : <Runs route={route} />) },
    { path: "queue", title: "Queue", show: (route) => <Queue route={route} /> },
    { path: "submit", title: "Submit", may: () => can("submitRun"), show: (route) => <Submit route={route} /> },
    { path: "endpoints", title: "Endpoints", show: (route) => (route.path[1] ? <EndpointPage key={route.path[1]} name={route.path[1]} /> : <Endpoints />) },
    { path: "nodes", title: "Nodes and GPUs", show: (route) => (route.path[1] ? <NodePage key={route.path[1]} name={route.path[1]} /> : <Nodes />) },
    { path: "money", title: "Usage and money", show: (route) => <Money route={route} /> },
    { path: "access", title: "Access", show: (route) => <Access route={route} /> },
];

function Lost(): VNode | null {
    const { up, since } = useStore(connection);
    useStore(clock);
    if (up) return null;
    const gone = (performance.now() - since) / 1000;
    return (
        <div class="lost" role="status">
            The server does not answer. Reconnecting … {since > 0 ? `What is shown is ${seconds(Math.round(gone))} old.` : ""}
        </div>
    );
}

/** A fault of the page itself must not look like an empty page. */
class Guard extends Component<{ children: VNode; at: string }, { fault?: Error; at: string }> {
    override state: { fault?: Error; at: string } = { at: this.props.at };
    static override getDerivedStateFromError(fault: Error): { fault: Error } { return { fault }; }
    static override getDerivedStateFromProps(next: { at: string }, now: { at: string }): object | null {
        return next.at !== now.at ? { fault: undefined, at: next.at } : null;
    }
    render(): VNode {
        if (!this.state.fault) return this.props.children;
        return <div class="trouble" role="alert"><p>This page failed: {this.state.fault.message}<span class="remedy">Reload it; everything it would show is in stoker's commands, too.</span></p></div>;
    }
}

function Frame({ who }: { who: Caller }): VNode {
    const route = useRoute();
    const pages = kPages.filter((each) => !each.may || each.may());
    const page = pages.find((each) => each.path === (route.path[0] ?? ""));
    const main = useRef<HTMLElement>(null);
    const place = route.path.join("/");
    const first = useRef(true);
    useEffect(() => {
        document.title = `${route.path[1] ?? page?.title ?? "?"} · Stoker`;
        if (!first.current) {
            main.current?.focus({ preventScroll: true });
            window.scrollTo(0, 0);
        }
        first.current = false;
    }, [place]);
    useEffect(() => {
        const stop = new AbortController();
        void followJournal(stop.signal).catch(() => undefined);
        return () => stop.abort();
    }, [who]);
    const leave = async (): Promise<void> => {
        if (who.login) await ask("POST", "/api/v1/logout", { quiet: true }).catch(() => undefined);
        setCsrf("");
        forget("");
    };
    return (
        <div class="frame">
            <header>
                <a class="skip" href={`#/${route.text}`} onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>To the content</a>
                <a class="brand" href="#/">Stoker</a>
                <nav aria-label="Pages">
                    {pages.map((each) => (
                        <a key={each.path} href={`#/${each.path}`} {...(each === page ? { "aria-current": "page" as const } : {})}>{each.title}</a>
                    ))}
                </nav>
                <div class="who">
                    <span title={`${who.role} of the ${who.level}`}>{who.name}<span class="dim"> · {who.role}</span></span>
                    <span class="dim">{who.level === "provider" ? "all projects" : `${who.project.organisation_name ?? ""}/${who.project.name ?? ""}`}</span>
                    <button type="button" onClick={leave}>Log out</button>
                </div>
            </header>
            <Lost />
            <main ref={main} tabIndex={-1}>
                <Guard at={place}>
                    {page ? page.show(route) : <><h1>Not here</h1><p>There is no page <code>{route.text}</code>, or none for your role. <a href="#/">Overview</a></p></>}
                </Guard>
            </main>
        </div>
    );
}

export function App(): VNode {
    const who = useStore(caller);
    const { epoch } = useStore(connection);
    const [asked, setAsked] = useState(false);
    const [error, setError] = useState<Error>();
    const [again, setAgain] = useState(0);
    useEffect(() => {
        // A link with a token that is opened in a tab where the console is open already.
        const moved = (): void => {
            if (!takeToken()) return;
            caller.value = null;
            setAgain((value) => value + 1);
        };
        window.addEventListener("hashchange", moved);
        return () => window.removeEventListener("hashchange", moved);
    }, []);
    useEffect(() => {
        if (!mayBeKnown()) return setAsked(true);
        get<Caller>("/api/v1/whoami").then((found) => {
            setCsrf(found.csrf ?? "");
            caller.value = found;
            setAsked(true);
        }, (problem: Error) => {
            if (problem instanceof Away) return;  // asked again when it is there
            if (problem instanceof Problem && problem.status === 401) {
                forget(hasToken() ? "The token is not of this server." : "");
            } else setError(problem);
            setAsked(true);
        });
    }, [epoch, again]);
    if (who) return <Frame who={who} />;
    return <><Lost />{error ? <main><Trouble error={error} /></main> : asked ? <Login /> : <main class="login"><p class="dim">…</p></main>}</>;
}
