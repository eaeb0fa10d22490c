// Who used what, what it cost, what was wasted, and what is left of the budgets.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { can, get, post } from "../api";
import type { Budget, BudgetList, IdleList, Invoice, InvoiceLine, Usage, Waste } from "../api_types";
import { count, hours, money, percent, seconds } from "../format";
import { useLive } from "../live";
import { Answer, Bar, Choice, Do, Empty, Facts, Field, Form, runLink, saveAs, Section, Table, When } from "../parts";
import { go, type Route, withQuery } from "../route";
import { kWasteWords } from "./overview";

const kViews: Array<[string, string]> = [["", "Usage"], ["budgets", "Budgets"], ["waste", "Waste"], ["invoice", "Invoice"]];

export function Tabs({ of, at, param, route, label }: { of: Array<[string, string]>; at: string; param: string; route: Route; label: string }): VNode {
    return (
        <nav class="tabs" aria-label={label}>
            {of.map(([name, title]) => <a key={name} href={withQuery(route, { [param]: name })} {...(name === at ? { "aria-current": "page" as const } : {})}>{title}</a>)}
        </nav>
    );
}

export function Money({ route }: { route: Route }): VNode {
    const view = route.query.get("view") ?? "";
    return (
        <>
            <h1>Usage and money</h1>
            <Tabs of={kViews} at={view} param="view" route={route} label="Views of usage" />
            {view === "budgets" ? <Budgets /> : view === "waste" ? <WasteView route={route} /> : view === "invoice" ? <InvoiceView route={route} /> : <UsageView route={route} />}
        </>
    );
}

/** From a span that a person picks to the parameter `from`; to the hour, so that the question stays the same for a while. */
export function since(span: string, nowMs: number): string | undefined {
    const days = { day: 1, week: 7, month: 30 }[span];
    return days === undefined ? undefined : new Date(Math.floor((nowMs - days * 86_400_000) / 3_600_000) * 3_600_000).toISOString().replace(".000", "");
}

function UsageView({ route }: { route: Route }): VNode {
    const by = route.query.get("by") ?? "user", span = route.query.get("span") ?? "week";
    const from = since(span, Date.now());
    const found = useLive<Usage>(`usage ${by} ${span}`, (signal) => get("/api/v1/usage", { by, from }, signal), 20_000);
    return (
        <Section title="Usage">
            <div class="filters">
                <Choice label="A line for each" value={by} set={(value) => go(withQuery(route, { by: value }))} options={["user", "project", "run", "node", "engine"]} />
                <Choice label="Of the last" value={span} set={(value) => go(withQuery(route, { span: value }))} options={[["day", "day"], ["week", "7 days"], ["month", "30 days"], ["ever", "since ever"]]} />
            </div>
            <Answer of={found}>{(usage) => (
                <>
                    <Table label="Usage" rows={[...usage.items.slice(0, 499), { ...usage.total, key: "in all" }]} id={(line) => line.key ?? ""} columns={[
                        { title: by[0]!.toUpperCase() + by.slice(1), grow: true, of: (line) => (line.key === "in all" ? <b>in all</b> : by === "run" && line.key?.startsWith("r-") ? runLink(line.key) : <span class="name">{line.key}</span>) },
                        { title: "GPUs", figure: true, of: (line) => hours(line.gpu_hours) },
                        { title: "Processors", figure: true, of: (line) => hours(line.cpu_hours) },
                        { title: "Whole nodes", figure: true, wide: true, of: (line) => hours(line.node_hours) },
                        { title: "Tokens", figure: true, wide: true, of: (line) => (line.tokens ? `${count(line.tokens)} in ${count(line.requests)} requests` : "0") },
                        { title: "Cost", figure: true, of: (line) => (line.priced || line.cost_microusd ? <b>{money(line.cost_microusd, usage.currency)}</b> : <span class="dim">no price</span>) },
                    ]} />
                    <p class="dim small">From intervals in which runs held machines, times the price book{usage.source ? `: ${usage.source}` : ""}. {usage.total.priced ? "" : "Without prices: stoker up --prices FILE."}</p>
                </>
            )}</Answer>
        </Section>
    );
}

export function budgetWords(budget: Budget): { used: string; limit: string; share: number } {
    const show = (micro: number): string => (budget.unit === "usd" ? money(micro) : hours(micro / 1e6));
    return { used: show(budget.used_micro), limit: show(budget.limit_micro), share: budget.limit_micro ? budget.used_micro / budget.limit_micro : 0 };
}

function Budgets(): VNode {
    const found = useLive<BudgetList>("budgets", (signal) => get("/api/v1/budgets", {}, signal), 15_000);
    return (
        <>
            <Section title="Budgets">
                <Answer of={found}>{(list) => (
                    <Table label="Budgets" rows={list.items} id={(each) => `${each.scope} ${each.unit}`} columns={[
                        { title: "Of", grow: true, of: (each) => each.scope_name ?? each.scope },
                        { title: "Used this month", figure: true, of: (each) => budgetWords(each).used },
                        { title: "Limit", figure: true, of: (each) => budgetWords(each).limit },
                        { title: "Share", quiet: true, of: (each) => <><Bar share={budgetWords(each).share} /> {percent(budgetWords(each).share)}</> },
                        { title: "Goes at", figure: true, wide: true, of: (each) => (each.rate_micro_per_h ? `${each.unit === "usd" ? money(each.rate_micro_per_h) : hours(each.rate_micro_per_h / 1e6)}/h` : "–") },
                        { title: "Used up", figure: true, of: (each) => <When at={each.ends_at} /> },
                        { title: "Then", wide: true, of: (each) => (each.on_exhausted === "stop_all" ? "what runs is stopped" : "nothing new starts") },
                        can("setBudget") && { title: "Do", quiet: true, of: (each) => <Do label="Remove" ask="End this budget?" does={() => post("/api/v1/budgets", { scope: each.scope, unit: each.unit, remove: true })} after={found.refresh} /> },
                    ]}><Empty {...(can("setBudget") ? { command: "stoker budget set default/default --usd 500" } : {})}>No budget is set: nothing is stopped for money.</Empty></Table>
                )}</Answer>
            </Section>
            {can("setBudget") ? <NewBudget after={found.refresh} /> : null}
        </>
    );
}

function NewBudget({ after }: { after: () => void }): VNode {
    const [scope, setScope] = useState("");
    const [limit, setLimit] = useState("");
    const [unit, setUnit] = useState("usd");
    const [then, setThen] = useState("block_new");
    return (
        <Section title="Set a budget">
            <Form label="Set" does={async () => { await post("/api/v1/budgets", { scope, unit, limit_micro: Math.round(Number(limit) * 1e6), on_exhausted: then }); after(); }}>
                <Field label="Of" value={scope} set={setScope} required placeholder="o-1, p-1 or p-1/anna" />
                <Field label="A month" type="number" min="0.01" step="0.01" value={limit} set={setLimit} required />
                <Choice label="In" value={unit} set={setUnit} options={[["usd", "dollars"], ["gpu_hours", "GPU hours"]]} />
                <Choice label="When it is used up" value={then} set={setThen} options={[["block_new", "nothing new starts"], ["stop_all", "what runs is stopped, too"]]} />
            </Form>
        </Section>
    );
}

function WasteView({ route }: { route: Route }): VNode {
    const by = route.query.get("by") === "run" || route.query.get("by") === "project" ? route.query.get("by")! : "user";
    const found = useLive<Waste>(`waste ${by}`, (signal) => get("/api/v1/waste", { by }, signal), 30_000);
    const idle = useLive<IdleList>("idle", (signal) => get("/api/v1/idle", {}, signal), 20_000);
    return (
        <>
            <Section title="Waste, the last week">
                <div class="filters"><Choice label="A line for each" value={by} set={(value) => go(withQuery(route, { by: value }))} options={["user", "project", "run"]} /></div>
                <Answer of={found}>{(waste) => (
                    <>
                        <Facts of={[
                            ["Held in all", `${hours(waste.held.gpu_hours)} of GPUs, ${hours(waste.held.cpu_hours)} of processors, ${count(waste.held.runs)} runs${waste.held.cost_microusd ? `, ${money(waste.held.cost_microusd, waste.currency)}` : ""}`],
                            waste.unknown > 0 && ["Not known", `${count(waste.unknown)} runs of which nothing was measured count as busy`],
                            waste.left_out > 0 && ["Left out", `${count(waste.left_out)} older runs`],
                        ]} />
                        <Table label="Waste" rows={[...waste.items, ...waste.free]} id={(line) => `${line.key} ${line.cause}`} columns={[
                            { title: "Who", of: (line) => (by === "run" && line.key?.startsWith("r-") ? runLink(line.key) : <span class="name">{line.key}</span>) },
                            { title: "Cause", grow: true, of: (line) => kWasteWords[line.cause ?? ""] ?? line.cause },
                            { title: "GPUs", figure: true, of: (line) => hours(line.gpu_hours) },
                            { title: "Processors", figure: true, of: (line) => hours(line.cpu_hours) },
                            { title: "Runs", figure: true, wide: true, of: (line) => count(line.runs) },
                            { title: "Cost", figure: true, of: (line) => (line.cost_microusd ? money(line.cost_microusd, waste.currency) : <span class="dim">no price</span>) },
                        ]}><p class="calm">None was seen: what was held did something.</p></Table>
                    </>
                )}</Answer>
            </Section>
            <Section title="Idle just now">
                <Answer of={idle}>{(list) => (
                    <>
                        <Table label="Idle runs" rows={list.items} id={(each) => each.run ?? ""} columns={[
                            { title: "Run", of: (each) => <>{runLink(each.run)} <span class="name">{each.name}</span></> },
                            { title: "Who", wide: true, of: (each) => each.user },
                            { title: "Idle for", figure: true, of: (each) => seconds(Math.round(each.idle_s)) },
                            { title: "What becomes of it", grow: true, of: (each) => <>{each.state} {each.next_at ? <When at={each.next_at} /> : null}<span class="remedy">{each.why}</span></> },
                            { title: "Costs", figure: true, of: (each) => (each.cost_microusd_per_hour ? `${money(each.cost_microusd_per_hour)}/h` : "no price") },
                        ]}><p class="calm">Nothing that is held is idle by the rules.</p></Table>
                        {list.rules.length ? <ul class="small dim">{list.rules.map((each) => <li key={each}>{each}</li>)}</ul> : <p class="dim small">No rule says what becomes of idle runs: <code>idle:</code> of the configuration.</p>}
                    </>
                )}</Answer>
            </Section>
        </>
    );
}

const cell = (value: string): string => {
    // A spreadsheet takes a text that begins so for a formula: names are other people's texts.
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
export function csv(lines: InvoiceLine[], currency: string): string {
    const rows = [["organisation", "project", "user", "resource", "model", "hours", "gpu_hours", "requests", "tokens", `cost_${currency.toLowerCase()}`]];
    for (const each of lines)
        rows.push([each.organisation ?? "", each.project ?? "", each.user ?? "", each.resource, each.model ?? "", String(each.micro_hours / 1e6), String(each.gpu_micro_hours / 1e6),
            String(each.requests), String(each.tokens), each.priced ? String(each.microusd / 1e6) : ""]);
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function InvoiceView({ route }: { route: Route }): VNode {
    const month = route.query.get("month") ?? new Date().toISOString().slice(0, 7);
    const found = useLive<Invoice>(`invoice ${month}`, (signal) => get("/api/v1/invoice", { month }, signal), 60_000);
    return (
        <Section title="Invoice">
            <div class="filters"><Field label="Month" type="month" value={month} set={(value) => /^\d{4}-\d{2}$/.test(value) && go(withQuery(route, { month: value }))} /></div>
            <Answer of={found}>{(invoice) => (
                <>
                    <p class="total">{invoice.priced ? money(invoice.total_microusd, invoice.currency) : "no prices"} <span class="dim">charged up to <When at={invoice.charged_to} /></span>
                        {invoice.items.length ? <button type="button" onClick={() => saveAs(`stoker-${month}.csv`, new Blob([csv(invoice.items, invoice.currency ?? "USD")], { type: "text/csv" }))}>Save as CSV</button> : null}</p>
                    <Table label="Invoice" rows={invoice.items} id={(_, index) => String(index)} columns={[
                        { title: "Project", of: (line) => `${line.organisation ?? ""}/${line.project ?? ""}` },
                        { title: "Who", grow: true, of: (line) => line.user },
                        { title: "What", of: (line) => `${line.resource}${line.model ? ` ${line.model}` : ""}` },
                        { title: "How much", figure: true, of: (line) => (line.resource === "tokens" ? `${count(line.tokens)} tokens` : hours(line.micro_hours / 1e6)) },
                        { title: "Cost", figure: true, of: (line) => (line.priced ? money(line.microusd, invoice.currency) : <span class="dim">no price</span>) },
                    ]}><Empty>Nothing has been charged in this month.</Empty></Table>
                </>
            )}</Answer>
        </Section>
    );
}
