// What `stoker plan -o json` says, as far as one decides by it.
import type { VNode } from "preact";
import { about, bytes, count, dollars, percent, seconds } from "../format";
import { Empty, Facts, Section, Table } from "../parts";

interface Range { low: number; mid: number; high: number }
interface Candidate {
    size: string; cloud: string; region: string; pricing: string; nodes: number; accelerator: string; devices: number;
    price?: { usd_per_node_hour?: number; estimate?: boolean; provenance?: { source?: string; as_of?: string } };
    orchestrator?: string; framework?: string;
    prediction: {
        hours?: Range; usd?: Range; step_seconds?: Range; memory_bytes?: Range; memory_capacity_bytes?: number; mfu?: number; bottleneck?: string;
        ttft_seconds?: Range; tpot_seconds?: Range;
    };
    why_not_first?: string; doubt?: string; notes?: string[];
}
export interface Plan {
    feasible: boolean; verdict: string; infeasible_because?: string; candidates: Candidate[]; nearest?: Candidate[];
    workload?: { title?: string; name?: string };
    answer?: { task: string; machines: string; hardware: string; time: string; money: string; chance: string; lines: Array<{ label: string; text: string; command: string }> };
    reasons?: string[]; assumptions?: string[];
    advice?: Array<{ id: string; severity: string; text: string; remedy?: string; source?: string }>;
    what_if?: Array<{ change: string; outcome: string; changes_choice: boolean }>;
    rejected?: Array<{ size: string; region: string; reason: string; text: string; candidates: number }>;
    considered?: number; refused?: number;
}

const range = (of: Range | undefined, show: (value: number) => string): string => (of && of.mid ? show(of.mid) : "–");
const spread = (of: Range | undefined, show: (value: number) => string): string => (of && of.high > of.low ? `${show(of.low)} to ${show(of.high)}` : "");
export const machines = (each: Candidate): string => `${count(each.nodes)} x ${each.size}`;

export function Candidates({ of }: { of: Candidate[] }): VNode {
    return (
        <Table label="Choices" rows={of} id={(each, at) => `${each.size}${each.region}${each.pricing}${at}`} columns={[
            { title: "Machines", grow: true, of: (each) => <><b>{machines(each)}</b><span class="remedy">{[each.devices ? `${count(each.devices)} ${each.accelerator}` : "", each.region, each.pricing].filter(Boolean).join(", ")}</span>{each.why_not_first ? <span class="remedy">not first: {each.why_not_first}</span> : null}</> },
            { title: "Time", figure: true, of: (each) => <>{range(each.prediction.hours, (value) => seconds(value * 3600))}<span class="remedy">{spread(each.prediction.hours, (value) => seconds(value * 3600))}</span></> },
            { title: "Cost", figure: true, of: (each) => <><b>{range(each.prediction.usd, about)}</b><span class="remedy">{spread(each.prediction.usd, about)}</span></> },
            { title: "A node-hour", figure: true, wide: true, of: (each) => (each.price?.usd_per_node_hour === undefined ? "no price" : <span title={`${each.price.provenance?.source ?? ""}, ${each.price.provenance?.as_of ?? ""}`}>{dollars(each.price.usd_per_node_hour)}{each.price.estimate ? " (bracket)" : ""}</span>) },
            { title: "Memory", figure: true, wide: true, of: (each) => (each.prediction.memory_bytes?.mid ? `${bytes(each.prediction.memory_bytes.mid)} of ${bytes(each.prediction.memory_capacity_bytes)}` : "–") },
            { title: "Held by", wide: true, of: (each) => each.prediction.bottleneck ?? "" },
        ]} />
    );
}

export function PlanView({ plan }: { plan: Plan }): VNode {
    const first = plan.candidates[0], told = plan.answer;
    if (!plan.feasible || !first)
        return (
            <Section title={plan.workload?.title ?? "The plan"}>
                <p class="first">Nothing does it.</p><p>{plan.infeasible_because || plan.verdict}</p>
                {plan.nearest?.length ? <><h3>Nearest to it</h3><Candidates of={plan.nearest} /></> : null}
                <Rejected plan={plan} />
            </Section>
        );
    return (
        <Section title={told?.task ?? plan.workload?.title ?? "The plan"}>
            <p class="first">{told?.machines ?? machines(first)}</p>
            <p class="dim">{told?.hardware}</p>
            <Facts of={[
                told?.time && ["Time", told.time], told?.money && ["Cost", told.money], told?.chance && ["Chance", told.chance],
                first.prediction.memory_bytes?.mid && ["Memory", `${bytes(first.prediction.memory_bytes.mid)} (${spread(first.prediction.memory_bytes, bytes)})${first.prediction.memory_capacity_bytes ? ` of ${bytes(first.prediction.memory_capacity_bytes)}` : ""}`],
                first.prediction.step_seconds?.mid && ["Step", `${seconds(first.prediction.step_seconds.mid)} (${spread(first.prediction.step_seconds, seconds)})`],
                first.prediction.mfu && ["MFU", percent(first.prediction.mfu)],
                first.prediction.bottleneck && ["Held by", first.prediction.bottleneck],
                first.price?.usd_per_node_hour !== undefined && ["Price", `${dollars(first.price.usd_per_node_hour)} a node-hour${first.price.estimate ? ", a bracket" : ""}; ${first.price.provenance?.source ?? ""}, ${first.price.provenance?.as_of ?? ""}`],
            ]} />
            {told?.lines.filter((each) => each.label !== "next").map((each, at) => <p key={at} class="small"><span class="dim">{each.label} </span>{each.text}{each.command ? <> <code>{each.command}</code></> : null}</p>)}
            {plan.advice?.filter((each) => each.severity !== "info").slice(0, 12).map((each) => (
                <p key={each.id + each.text} class={`advice ${each.severity}`}>{each.text}{each.remedy ? <span class="remedy">{each.remedy}</span> : null}</p>
            ))}
            {plan.candidates.length > 1 ? <><h3>Choices</h3><Candidates of={plan.candidates} /></> : null}
            {plan.what_if?.length ? (
                <details class="fold"><summary>What would change the choice</summary>
                    <ul>{plan.what_if.map((each) => <li key={each.change}><b>{each.change}:</b> {each.outcome}{each.changes_choice ? "" : <span class="dim"> (the same choice)</span>}</li>)}</ul>
                </details>
            ) : null}
            {plan.assumptions?.length ? <details class="fold"><summary>What was taken for granted ({plan.assumptions.length})</summary><ul>{plan.assumptions.map((each) => <li key={each}>{each}</li>)}</ul></details> : null}
            <Rejected plan={plan} />
        </Section>
    );
}

function Rejected({ plan }: { plan: Plan }): VNode | null {
    const all = plan.rejected ?? [];
    if (!all.length) return null;
    return (
        <details class="fold">
            <summary>Why the others lost: {count(plan.refused)} refused of {count(plan.considered)}</summary>
            {all.length ? (
                <Table label="Refused" rows={all.slice(0, 100)} id={(each, at) => `${each.size}${at}`} columns={[
                    { title: "Size", of: (each) => <span class="name">{each.size}</span> },
                    { title: "Why", grow: true, of: (each) => each.text },
                    { title: "Candidates", figure: true, of: (each) => count(each.candidates) },
                ]} />
            ) : <Empty>Nothing was refused.</Empty>}
            {all.length > 100 ? <p class="dim small">The first 100 of {count(all.length)}: <code>stoker plan FILE --show rejected</code></p> : null}
        </details>
    );
}
