// Who may do what: keys, people and roles, quotas, the rules of what is taken, and who did what.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { at, caller, can, get, post, setToken, forget } from "../api";
import type { AdmissionList, AdmissionTest, AuditPage, Key, KeyGiven, KeyList, ProjectList, Quota, QuotaList, User, UserList } from "../api_types";
import { bytes, count, milli } from "../format";
import { useLive } from "../live";
import { Answer, Bar, Choice, Do, Empty, Facts, Field, Form, Section, State, Table, When } from "../parts";
import { go, type Route, withQuery } from "../route";
import { Tabs } from "./money";

const kRoles = ["viewer", "developer", "operator", "admin", "auditor"];
const kLevels: Array<[string, string]> = [["project", "the project"], ["organisation", "the organisation"], ["provider", "everything"]];
// What each role may that the ones before it may not: nobody gives more than they are.
const kBelow: Record<string, string[]> = { developer: ["viewer", "developer"], operator: ["viewer", "developer", "operator", "auditor"], admin: kRoles };
const roles = (): string[] => kBelow[caller.value?.role ?? ""] ?? [];
const reach = (): Array<[string, string]> => kLevels.slice(0, kLevels.findIndex(([level]) => level === caller.value?.level) + 1);

export function Access({ route }: { route: Route }): VNode {
    const views = ([["", "You"], can("listKeys") && ["keys", "Keys"], can("listUsers") && ["people", "People"], ["quotas", "Quotas"], ["rules", "Rules"], can("listAudit") && ["audit", "Audit trail"]] as Array<[string, string] | false>)
        .filter((each): each is [string, string] => Boolean(each));
    const view = views.some(([name]) => name === route.query.get("view")) ? route.query.get("view")! : "";
    const shown: Record<string, VNode> = { "": <You />, keys: <Keys />, people: <People />, quotas: <Quotas />, rules: <Rules />, audit: <Audit route={route} /> };
    return (
        <>
            <h1>Access</h1>
            <Tabs of={views} at={view} param="view" route={route} label="Views of access" />
            {shown[view]}
        </>
    );
}

function You(): VNode {
    const who = caller.value!;
    const projects = useLive<ProjectList>("projects", (signal) => get("/api/v1/projects", {}, signal), 60_000);
    const [current, setCurrent] = useState("");
    const [next, setNext] = useState("");
    return (
        <>
            <Section title="You">
                <Facts of={[
                    ["Name", who.name], ["Role", `${who.role} of the ${who.level}`],
                    ["Project", `${who.project.organisation_name ?? ""}/${who.project.name ?? ""} (${who.project.id ?? ""})`],
                    ["By", who.login ? `login ${who.login}` : who.key ? `key ${who.key}` : "the installation's token"],
                    who.expires_at && ["Ends", <When at={who.expires_at} />],
                ]} />
                <Answer of={projects}>{(list) => <p class="dim small">You reach {count(list.items.length)} {list.items.length === 1 ? "project" : "projects"}: {list.items.slice(0, 20).map((each) => `${each.organisation_name}/${each.name}`).join(", ")}</p>}</Answer>
            </Section>
            {who.login && can("setOwnPassword") ? (
                <Section title="Your password">
                    <Form label="Change it" does={async () => { await post("/api/v1/password", { current, password: next }); setToken(""); forget("The password is changed: log in with it."); }}>
                        <Field label="Now" type="password" autocomplete="current-password" value={current} set={setCurrent} required />
                        <Field label="From now on" type="password" autocomplete="new-password" value={next} set={setNext} required hint="All your logins end." />
                    </Form>
                </Section>
            ) : null}
        </>
    );
}

/** Shown once: nobody can show it again. */
function Secret({ of, close }: { of: KeyGiven; close: () => void }): VNode {
    const [copied, setCopied] = useState(false);
    return (
        <div class="secret" role="status">
            <p>The secret of {of.key.name}, now and never again:</p>
            <p><code class="wrap">{of.secret}</code></p>
            <p><button type="button" class="main" onClick={() => void navigator.clipboard?.writeText(of.secret ?? "").then(() => setCopied(true))}>{copied ? "Copied" : "Copy"}</button> <button type="button" onClick={close}>I have it</button></p>
        </div>
    );
}

function Keys(): VNode {
    const found = useLive<KeyList>("keys", (signal) => get("/api/v1/keys", {}, signal), 15_000);
    const [given, setGiven] = useState<KeyGiven>();
    const [name, setName] = useState("");
    const [role, setRole] = useState("developer");
    const [level, setLevel] = useState("project");
    const [days, setDays] = useState("90");
    const [service, setService] = useState("person");
    const others = can("makeUser");  // not only one's own
    const made = (next: KeyGiven): void => { setGiven(next); found.refresh(); };
    const acts = (key: Key): VNode | null => (key.state !== "valid" ? null : (
        <span class="actions">
            {can("rotateKey") ? <Do label="Rotate" ask="The old one works for another hour." does={async () => made(await post<KeyGiven>(`/api/v1/keys/${at(key.id ?? "")}/rotate`, { old_for_s: 3600 }))} /> : null}
            {can("revokeKey") ? <Do label="Revoke" tone="bad" ask="It is refused from now on." does={() => post(`/api/v1/keys/${at(key.id ?? "")}/revoke`)} after={found.refresh} /> : null}
        </span>
    ));
    return (
        <>
            {given ? <Secret of={given} close={() => setGiven(undefined)} /> : null}
            {can("makeKey") && caller.value?.key && !others ? <p class="dim small">You are here by a key, which makes no further ones: log in with your name for that.</p> : can("makeKey") ? (
                <Section title={others ? "Make a key" : "Make a key of your own"}>
                    <Form label="Make" does={async () => { made(await post<KeyGiven>("/api/v1/keys", { role, level, expires_s: Math.round(Number(days) * 86_400), ...(others ? { name, service: service === "program" } : {}) })); setName(""); }}>
                        {others ? <Field label="Name" value={name} set={setName} required maxLength={63} /> : null}
                        {others ? <Choice label="Of a" value={service} set={setService} options={["person", "program"]} /> : null}
                        <Choice label="Role" value={role} set={setRole} options={roles()} />
                        <Choice label="Reaches" value={level} set={setLevel} options={reach()} />
                        <Field label="Ends after days" type="number" min="0" step="1" value={days} set={setDays} hint={others ? "0: never" : "0: as late as it may"} />
                    </Form>
                </Section>
            ) : null}
            <Section title={others ? "Keys" : "Your keys"}>
                <Answer of={found}>{(list) => (
                    <Table label="Keys" rows={list.items} id={(key) => key.id ?? ""} columns={[
                        { title: "Key", of: (key) => key.id },
                        { title: "Name", grow: true, of: (key) => <span class="name">{key.name}</span> },
                        { title: "State", of: (key) => <State of={key.state ?? ""} /> },
                        { title: "Role", of: (key) => `${key.role}${key.level !== "project" ? ` of the ${key.level}` : ""}` },
                        { title: "Project", wide: true, of: (key) => key.project_name },
                        { title: "Of", wide: true, of: (key) => (key.node ? `node ${key.node}` : key.service ? "a program" : "a person") },
                        { title: "Made", figure: true, wide: true, of: (key) => <When at={key.made_at} /> },
                        { title: "Ends", figure: true, of: (key) => (key.expires_at ? <When at={key.expires_at} /> : "never") },
                        { title: "Do", quiet: true, of: acts },
                    ]}><Empty>No key has been made. Programs and command lines use one: <code>STOKER_TOKEN</code>.</Empty></Table>
                )}</Answer>
            </Section>
        </>
    );
}

function People(): VNode {
    const found = useLive<UserList>("users", (signal) => get("/api/v1/users", {}, signal), 15_000);
    const [name, setName] = useState("");
    const [password, setPassword] = useState("");
    const [role, setRole] = useState("developer");
    const [level, setLevel] = useState("project");
    const [project, setProject] = useState("");
    const projects = useLive<ProjectList>("projects", (signal) => get("/api/v1/projects", {}, signal), 60_000);
    const of = (user: User): string => `/api/v1/users/${at(user.id ?? "")}`;
    return (
        <>
            <Section title="People and accounts of programs">
                <Answer of={found}>{(list) => (
                    <Table label="People" rows={list.items} id={(user) => user.id ?? ""} columns={[
                        { title: "Name", grow: true, of: (user) => <><span class="name">{user.name}</span>{user.service ? <span class="dim"> program</span> : null}</> },
                        { title: "State", of: (user) => <State of={user.state ?? ""} /> },
                        { title: "Roles", of: (user) => user.roles.map((each, index) => (
                            <span key={index} class="holder">{each.role} of {each.level === "project" ? each.project_name : `the ${each.level}`}
                                {can("bindRole") ? <>{" "}<Do label="Take away" ask={`No longer ${each.role}?`} does={() => post(`${of(user)}/roles`, { role: each.role, level: each.level, project: each.project, remove: true })} after={found.refresh} /></> : null}</span>
                        )) },
                        { title: "Logins", figure: true, wide: true, of: (user) => count(user.logins) },
                        { title: "Password", wide: true, of: (user) => (user.has_password ? "set" : "none") },
                        { title: "Made", figure: true, wide: true, of: (user) => <When at={user.made_at} /> },
                        { title: "Do", quiet: true, of: (user) => (can("disableUser") ? (user.state === "disabled"
                            ? <Do label="Let in" does={() => post(`${of(user)}/disable`, { disabled: false })} after={found.refresh} />
                            : <Do label="Shut out" tone="bad" ask="By password, key and certificate, at once." does={() => post(`${of(user)}/disable`, { disabled: true })} after={found.refresh} />) : null) },
                    ]}><Empty command="stoker user make anna --role developer">Nobody yet: who has the installation's token is admin.</Empty></Table>
                )}</Answer>
            </Section>
            {can("makeUser") ? (
                <Section title="Somebody new">
                    <Form label="Make" does={async () => { await post("/api/v1/users", { name, role, level, ...(project ? { project } : {}), ...(password ? { password } : {}) }); setName(""); setPassword(""); found.refresh(); }}>
                        <Field label="Name" value={name} set={setName} required autocomplete="off" />
                        <Field label="First password" type="password" value={password} set={setPassword} autocomplete="new-password" hint="empty: by single sign-on alone" />
                        <Choice label="Role" value={role} set={setRole} options={kRoles} />
                        <Choice label="Of" value={level} set={setLevel} options={reach()} />
                        <Choice label="Project" value={project} set={setProject} options={[["", "yours"], ...(projects.data?.items ?? []).map((each): [string, string] => [each.id ?? "", `${each.organisation_name}/${each.name}`])]} />
                    </Form>
                </Section>
            ) : null}
        </>
    );
}

export function quotaFigure(resource: string | undefined, value: number | undefined): string {
    if (value === undefined) return "–";
    return resource === "memory" ? bytes(value / 1000) : milli(value);
}

function Quotas(): VNode {
    const found = useLive<QuotaList>("quotas", (signal) => get("/api/v1/quotas", {}, signal), 8000);
    const [scope, setScope] = useState("");
    const [resource, setResource] = useState("gpu");
    const [limit, setLimit] = useState("");
    const share = (each: Quota): number => (each.limit_milli ? each.used_milli / each.limit_milli : 0);
    return (
        <>
            <Section title="Quotas">
                <Answer of={found}>{(list) => (
                    <Table label="Quotas" rows={list.items} id={(each) => `${each.scope} ${each.resource}`} columns={[
                        { title: "Of", grow: true, of: (each) => each.scope_name ?? each.scope },
                        { title: "Resource", of: (each) => each.resource },
                        { title: "Held", figure: true, of: (each) => quotaFigure(each.resource, each.used_milli) },
                        { title: "At most", figure: true, of: (each) => quotaFigure(each.resource, each.limit_milli) },
                        { title: "Share", quiet: true, of: (each) => (each.limit_milli ? <Bar share={share(each)} /> : null) },
                        { title: "Guaranteed", figure: true, wide: true, of: (each) => quotaFigure(each.resource, each.guaranteed_milli) },
                        { title: "Deserved", figure: true, wide: true, of: (each) => quotaFigure(each.resource, each.deserved_milli) },
                        { title: "Waits for", figure: true, of: (each) => quotaFigure(each.resource, each.waiting_milli) },
                    ]}><Empty {...(can("setQuota") ? { command: "stoker quota set default/default --resource gpu --limit 8" } : {})}>No quota is set: whoever comes first gets what is free.</Empty></Table>
                )}</Answer>
            </Section>
            {can("setQuota") ? (
                <Section title="Set a limit">
                    <Form label="Set" does={async () => { await post("/api/v1/quotas", { scope, resource, limit_milli: Math.round(Number(limit) * 1000) }); found.refresh(); }}>
                        <Field label="Of" value={scope} set={setScope} required placeholder="o-1, p-1 or p-1/anna" />
                        <Field label="Resource" value={resource} set={setResource} required placeholder="gpu, cpu, gpu:H100" />
                        <Field label="At most" type="number" min="0" step="any" value={limit} set={setLimit} required />
                    </Form>
                </Section>
            ) : null}
        </>
    );
}

function Rules(): VNode {
    const found = useLive<AdmissionList>("admission", (signal) => get("/api/v1/admission", {}, signal), 60_000);
    const [text, setText] = useState<string>();
    const [tested, setTested] = useState<AdmissionTest>();
    return (
        <>
            <Section title="Which runs are taken">
                <Answer of={found}>{(list) => (
                    <>
                        <Table label="Rules" rows={list.items} id={(rule) => rule.name ?? ""} columns={[
                            { title: "Rule", of: (rule) => rule.name },
                            { title: "Says", grow: true, of: (rule) => <>{rule.in_words}{rule.remedy ? <span class="remedy">{rule.remedy}</span> : null}</> },
                        ]}><Empty>No rule: every run of somebody who may submit is taken. Rules stand under <code>admission:</code> of the configuration.</Empty></Table>
                        {can("testAdmission") ? (
                            <Form label="Try them on past runs" does={async () => setTested(await post<AdmissionTest>("/api/v1/admission/test", { text: text ?? list.text ?? "" }))}>
                                <div class="field wide"><label for="rules">Rules to try; nothing is written</label>
                                    <textarea id="rules" rows={6} spellcheck={false} value={text ?? list.text ?? ""} onInput={(event) => setText(event.currentTarget.value)} /></div>
                            </Form>
                        ) : null}
                    </>
                )}</Answer>
                {tested ? (
                    <div class="answer" role="status">
                        <p><b>{count(tested.refused)} of {count(tested.judged)} runs would have been refused.</b></p>
                        <Table label="Refused runs" rows={tested.items} id={(each) => each.run ?? ""} columns={[
                            { title: "Run", of: (each) => each.run }, { title: "Name", of: (each) => <span class="name">{each.name}</span> },
                            { title: "Who", of: (each) => each.user }, { title: "Why", grow: true, of: (each) => each.reasons.join("; ") },
                        ]} />
                    </div>
                ) : null}
            </Section>
        </>
    );
}

function Audit({ route }: { route: Route }): VNode {
    const refused = route.query.get("refused") === "1", who = route.query.get("who") ?? "", skip = Number(route.query.get("skip") ?? 0) || 0;
    const [typed, setTyped] = useState(who);
    const found = useLive<AuditPage>(`audit ${refused} ${who} ${skip}`, (signal) => get("/api/v1/audit", { refused: refused || undefined, who, skip: skip || undefined, limit: 100 }, signal), 10_000);
    return (
        <Section title="Who asked for what">
            <form class="filters" role="search" aria-label="Audit trail" onSubmit={(event) => { event.preventDefault(); go(withQuery(route, { who: typed.trim(), skip: "" })); }}>
                <Choice label="Which" value={refused ? "1" : ""} set={(value) => go(withQuery(route, { refused: value, skip: "" }))} options={[["", "all that changes"], ["1", "what was refused"]]} />
                <Field label="Who, from its beginning" value={typed} set={setTyped} placeholder="user/anna" />
                <button type="submit">Filter</button>
            </form>
            <Answer of={found}>{(page) => (
                <>
                    <Table label="Audit trail" rows={page.items} id={(line) => line.request ?? ""} columns={[
                        { title: "When", figure: true, of: (line) => <When at={line.at} /> },
                        { title: "Who", of: (line) => <span class="name">{line.who}</span> },
                        { title: "Did", of: (line) => <b>{line.operation}</b> },
                        { title: "On", grow: true, wide: true, of: (line) => <span class="name">{line.method} {line.path}</span> },
                        { title: "Answer", figure: true, of: (line) => <State of={line.status < 400 ? "ok" : "fail"} why={String(line.status)} /> },
                        { title: "Status", figure: true, of: (line) => line.status },
                        { title: "From", wide: true, of: (line) => line.peer },
                    ]}><Empty>Nothing of this kind.</Empty></Table>
                    <p class="pages">{skip ? <a href={withQuery(route, { skip: "" })}>Newest</a> : null}{page.items.length === 100 ? <a href={withQuery(route, { skip: String(skip + 100) })}>Older</a> : null}</p>
                    {page.lost ? <p class="warn small">{count(page.lost)} lines could not be written.</p> : null}
                </>
            )}</Answer>
        </Section>
    );
}
