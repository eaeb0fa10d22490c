// What the observer measured of a run's ranks, over time, and what the run wrote of itself.
import type { VNode } from "preact";
import { at, get } from "../api";
import type { PredictionSpec, RankSeries, RunMetrics, SeriesPage } from "../api_types";
import { Chart, type Line } from "../chart";
import { bytes, percent, seconds, short } from "../format";
import { useLive } from "../live";
import { Answer, Empty, Section } from "../parts";

interface Kind { metric: string; title: string; show: (value: number) => string; zero?: boolean; most?: number; binary?: boolean }
const perSecond = (value: number): string => `${bytes(value)}/s`;
const kKinds: Kind[] = [
    { metric: "cpu", title: "Processors in use", show: (value) => `${short(value)} CPU`, zero: true },
    { binary: true, metric: "rss", title: "Memory of its processes", show: bytes, zero: true },
    { metric: "gpu_util", title: "GPU: a kernel was resident", show: percent, zero: true, most: 1 },
    { metric: "gpu_sm", title: "GPU: multiprocessors active", show: percent, zero: true, most: 1 },
    { metric: "gpu_tensor", title: "GPU: tensor pipes active", show: percent, zero: true, most: 1 },
    { binary: true, metric: "gpu_memory", title: "GPU memory held", show: bytes, zero: true },
    { metric: "gpu_power", title: "GPU power", show: (value) => `${short(value)} W`, zero: true },
    { metric: "gpu_temperature", title: "GPU temperature", show: (value) => `${short(value)} °C` },
    { metric: "wait_s", title: "Waiting for data, a step", show: seconds, zero: true },
    { metric: "allreduce_s", title: "Collectives, a step", show: seconds, zero: true },
    { metric: "tokens_per_s", title: "Tokens of a rank", show: (value) => `${short(value)}/s`, zero: true },
    { metric: "disk_read", title: "Read from disk", show: perSecond, zero: true, binary: true },
    { metric: "disk_write", title: "Written to disk", show: perSecond, zero: true, binary: true },
];
const kAsked = ["step_s", "loss", ...kKinds.map((kind) => kind.metric)].join(",");

/** A point is time, least, mean, greatest, how many. */
export function lines(series: RankSeries[], metric: string): Line[] {
    return series.filter((each) => each.metric === metric).sort((a, b) => a.rank - b.rank).map((each) => ({
        name: `rank ${each.rank}`, points: each.points.map((point): [number, number] => [point[0] ?? 0, point[2] ?? 0]),
    }));
}

export function Charts({ id, over, plan }: { id: string; over: boolean; plan: PredictionSpec | undefined }): VNode {
    const found = useLive<SeriesPage>(`series ${id} ${over}`, (signal) => get(`/api/v1/runs/${at(id)}/series`, { metric: kAsked, max_points: 300 }, signal), over ? 60_000 : 5000);
    const told = useLive<RunMetrics>(`metrics ${id} ${over}`, (signal) => get(`/api/v1/runs/${at(id)}/metrics`, { max_points: 500 }, signal), over ? 60_000 : 5000);
    const ofRun = (name: string): Line[] => {
        const series = told.data?.series.find((each) => each.name === name);
        return series ? [{ name, points: series.points.map((point): [number, number] => [point[0] ?? 0, point[1] ?? 0]) }] : [];
    };
    const band = plan?.step_s ? { low: plan.step_low_s, high: plan.step_high_s, mid: plan.step_s, name: "plan" } : undefined;
    return (
        <Section title="Figures" id="figures">
            <Answer of={found}>{(page) => {
                const seen = kKinds.filter((kind) => page.series.some((each) => each.metric === kind.metric
                    && (each.metric === "cpu" || each.metric === "rss" || each.points.some((point) => (point[3] ?? 0) > 0))));
                const steps = lines(page.series, "step_s"), loss = ofRun("loss");
                if (seen.length === 0 && steps.length === 0 && loss.length === 0)
                    return <Empty>Nothing was measured: it ran for less than a second, or has only just begun.</Empty>;
                return (
                    <div class="charts">
                        {steps.length ? <Chart title="Time of a step" lines={steps} show={seconds} time band={band} /> : null}
                        {loss.length ? <Chart title="Loss, by step" lines={loss} show={short} /> : null}
                        {seen.map((kind) => (
                            <Chart key={kind.metric} title={kind.title} lines={lines(page.series, kind.metric)} show={kind.show} time zero={kind.zero ?? false} most={kind.most} binary={kind.binary ?? false} />
                        ))}
                    </div>
                );
            }}</Answer>
        </Section>
    );
}
