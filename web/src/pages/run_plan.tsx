// The run against its plan, term by term: the figures of `stoker explain`, and what explains the difference.
import type { VNode } from "preact";
import { at, get } from "../api";
import type { ExplainedTerm, Explanation, FoundCause } from "../api_types";
import { inUnit, percent, seconds, short, words } from "../format";
import { useLive } from "../live";
import { Answer, Empty, Section, State, Table } from "../parts";

/** Where a measured value lies in and about the interval that was predicted. */
function Interval({ of }: { of: ExplainedTerm }): VNode | null {
    const { low, high, measured, predicted } = of;
    if (low === undefined || high === undefined || !(high > low)) return null;
    const from = Math.min(low, measured ?? low), to = Math.max(high, measured ?? high), room = (to - from) * 0.08;
    const x = (value: number): number => ((value - from + room) / (to - from + 2 * room)) * 100;
    return (
        <svg class="interval" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
            <rect class="span" x={x(low)} y="3" width={x(high) - x(low)} height="6" />
            {predicted !== undefined ? <line class="mid" x1={x(predicted)} x2={x(predicted)} y1="3" y2="9" /> : null}
            {measured !== undefined ? <line class={`mark ${of.verdict === "inside" ? "in" : "out"}`} x1={x(measured)} x2={x(measured)} y1="0" y2="12" /> : null}
        </svg>
    );
}

function Cause({ of }: { of: FoundCause }): VNode {
    const where = [of.rank !== undefined ? `rank ${of.rank}` : "", of.node ?? ""].filter(Boolean).join(" on ");
    return (
        <article class="cause">
            <h3>{of.cause}{where ? <span class="dim"> · {where}</span> : null}{of.stops ? <> <State of="fail" why="it stops the run" /></> : null}</h3>
            {of.what ? <p>{of.what}</p> : null}
            <ul>{of.evidence.map((each) => <li key={each}>{each}</li>)}</ul>
            <p>
                {of.cost_s ? <>costs <b>{seconds(of.cost_s)}</b> a step{of.cost_low_s !== undefined && of.cost_high_s !== undefined ? ` (${seconds(of.cost_low_s)} to ${seconds(of.cost_high_s)})` : ""} · </> : null}
                {of.share_of_gap !== undefined ? <>{percent(of.share_of_gap)} of what is missing · </> : null}
                {of.expected_gain ? <>mended, it is {percent(of.expected_gain)} faster</> : null}
            </p>
            {of.fix ? <p class="fix"><b>Do:</b> {of.fix}</p> : null}
        </article>
    );
}

export function Against({ id, over, version }: { id: string; over: boolean; version: number }): VNode {
    const found = useLive<Explanation>(`explanation ${id} ${over ? version : ""}`, (signal) => get(`/api/v1/runs/${at(id)}/explanation`, {}, signal), over ? 60_000 : 5000);
    const planned = found.data?.terms.some((term) => term.predicted !== undefined) ?? true;
    return (
        <Section title={planned ? "Against the plan" : "What it does"} id="plan" side={planned ? null : <span class="dim">submitted without a plan: a workload file has one</span>}>
            <Answer of={found}>{(told) => (
                <>
                    <Table label="Measured and predicted" rows={told.terms} id={(term) => term.term ?? ""} columns={[
                        { title: "Of a step", of: (term) => <span data-term={term.term}>{words(term.term ?? "")}</span> },
                        { title: "Measured", figure: true, of: (term) => <span data-measured={term.measured ?? ""}>{inUnit(term.measured, term.unit)}</span> },
                        { title: "Predicted", figure: true, of: (term) => <span data-predicted={term.predicted ?? ""}>{inUnit(term.predicted, term.unit)}</span> },
                        { title: "Interval", figure: true, wide: true, of: (term) => (term.low !== undefined && term.high !== undefined ? `${inUnit(term.low, term.unit)} to ${inUnit(term.high, term.unit)}` : "") },
                        { title: "Interval, drawn", quiet: true, wide: true, of: (term) => <Interval of={term} /> },
                        { title: "Verdict", quiet: true, grow: true, of: (term) => <>{term.verdict ? <State of={term.verdict} /> : null} <span class="dim">{term.note}</span></> },
                    ]}><Empty>It was submitted without a plan: a workload file has one.</Empty></Table>
                    {told.causes.map((each, index) => <Cause key={`${each.cause}${index}`} of={each} />)}
                    {told.causes.length === 0 ? <p class="calm">{told.steps ? `Nothing found that slows it down, in ${short(told.steps)} steps.` : "It tells of no steps: stoker_torch does, or observe: in the run section."}</p> : null}
                    {told.unexplained_s !== undefined && told.unexplained_s > 0 ? <p>{seconds(told.unexplained_s)} of a step is not explained.</p> : null}
                    <details class="fold">
                        <summary>{told.ruled_out.length} ruled out, {told.not_known.length} not known</summary>
                        <div class="two">
                            <dl class="notes">{told.ruled_out.map((each) => <div key={each.cause}><dt>{each.cause}</dt><dd>{each.reason}</dd></div>)}</dl>
                            <dl class="notes">{told.not_known.map((each) => <div key={each.cause}><dt>{each.cause} <span class="dim">not known</span></dt><dd>{each.reason}</dd></div>)}</dl>
                        </div>
                    </details>
                </>
            )}</Answer>
        </Section>
    );
}
