// A machine with a GPU for a while, without writing a file: what it would cost is said before anything starts.
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api";
import { dollars } from "../format";
import { Choice, Do, Field, Form, Section } from "../parts";
import { Candidates, type Plan } from "./plan_view";

interface Wish { cloud: string; gpu: string; size: string; region: string; hours: string; spot: string; memory: string }

const kGpus: Array<[string, string]> = [["", "whichever is cheapest"], ["T4", "T4"], ["A10", "A10, or a part of one"], ["L4", "L4"], ["A100", "A100"], ["H100", "H100"]];

const word = (text: string): string => text.trim().replace(/[^\w.-]/g, "");
const listOf = (text: string): string => text.split(/[\s,]+/).map(word).filter(Boolean).join(", ");

/** The file that says so: what one asks for here is what one would have written. */
export function machineFile(wish: Wish): string {
    const where = [`cloud: ${wish.cloud}`];
    if (listOf(wish.region)) where.push(`regions: [${listOf(wish.region)}]`);
    if (listOf(wish.size)) where.push(`sizes: [${listOf(wish.size)}]`);
    // A size says which GPU it has.
    else if (word(wish.gpu)) where.push(`accelerators: [${word(wish.gpu)}]`);
    where.push(`spot: ${wish.spot}`);
    const lines = ["version: 1", "name: gpu-machine", "kind: notebook", `period: ${Number(wish.hours) || 1}h`];
    if (Number(wish.memory) > 0) lines.push(`memory: ${Math.round(Number(wish.memory))}GiB`);
    lines.push("objective: {minimize: cost}", `where: {${where.join(", ")}}`);
    return lines.join("\n") + "\n";
}

export function Configurator({ take }: { take: (text: string) => void }): VNode {
    const [wish, set] = useState<Wish>({ cloud: "azure", gpu: "A100", size: "", region: "", hours: "8", spot: "never", memory: "" });
    const [plan, setPlan] = useState<{ plan: Plan; hours: number }>();
    const change = (name: keyof Wish) => (value: string): void => {
        set((old) => ({ ...old, [name]: value }));
        setPlan(undefined);
    };
    const text = machineFile(wish);
    const price = async (): Promise<void> => {
        const told = await post<{ plan: Plan | Plan[] }>("/api/v1/plan", { text, name: "gpu-machine.yaml" });
        setPlan({ plan: Array.isArray(told.plan) ? told.plan[0]! : told.plan, hours: Number(wish.hours) });
    };
    const first = plan?.plan.candidates[0];
    return (
        <>
            <Section title="What is it for a while?">
                <Form label="What does it cost?" does={price}>
                    <Choice label="Where" value={wish.cloud} set={change("cloud")} options={[["azure", "Azure"], ["aws", "AWS"], ["gcp", "Google Cloud"], ["any", "any cloud"]]} />
                    <Field label="Regions" value={wish.region} set={change("region")} placeholder="well-known ones" hint="westeurope, eastus" />
                    <Choice label="GPU" value={wish.gpu} set={change("gpu")} options={kGpus} />
                    <Field label="Or this size" value={wish.size} set={change("size")} placeholder="any with that GPU" hint="Standard_NC24ads_A100_v4" />
                    <Field label="Memory at least, GiB" type="number" min="0" step="1" value={wish.memory} set={change("memory")} placeholder="16" />
                    <Field label="For hours" type="number" min="0.1" step="0.1" max="8760" value={wish.hours} set={change("hours")} required />
                    <Choice label="Spot" value={wish.spot} set={change("spot")} options={[["never", "no: nobody takes it away"], ["allowed", "if it is cheaper"], ["only", "only"]]} />
                </Form>
            </Section>
            {plan ? (
                <Section title="The price, before anything starts">
                    {plan.plan.feasible && first ? (
                        <>
                            <p class="first">{dollars(first.prediction.usd?.mid)} for {plan.hours} h <span class="dim">on {first.nodes} x {first.size}, {first.region}, {first.pricing}</span></p>
                            <p class="dim">{dollars((first.price?.usd_per_node_hour ?? 0) * first.nodes)} an hour{first.price?.estimate ? ", a bracket" : ""}: {first.price?.provenance?.source}, {first.price?.provenance?.as_of}</p>
                            <Candidates of={plan.plan.candidates} />
                        </>
                    ) : (
                        <>
                            <p class="first">Nothing is like this.</p><p>{plan.plan.infeasible_because || plan.plan.verdict}</p>
                            {plan.plan.nearest?.length ? <><h3>Nearest to it</h3><Candidates of={plan.plan.nearest} /></> : null}
                        </>
                    )}
                    {plan.plan.advice?.filter((each) => each.severity !== "info").slice(0, 6).map((each) => <p key={each.id} class={`advice ${each.severity}`}>{each.text}{each.remedy ? <span class="remedy">{each.remedy}</span> : null}</p>)}
                </Section>
            ) : null}
            <Section title="As a file" side={<Do label="Go on with it" does={async () => take(text)} />}>
                <pre class="log" tabIndex={0} aria-label="The file">{text}</pre>
                <p class="dim small">Nothing is started by asking. <code>stoker deploy --render</code> writes what makes the machine of it; a run of it on this server has the period as its lease.</p>
            </Section>
        </>
    );
}
