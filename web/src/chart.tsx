// Lines over time or over steps. The figures that matter are in words below each: a picture alone tells a reader of screens nothing.
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

export interface Line { name: string; points: Array<[number, number | null]> }
export interface Band { low: number; high: number; mid?: number; name: string }

interface Props {
    title: string;
    lines: Line[];
    show: (value: number) => string;
    /** x is a time in seconds since 1970; else a number, of a step. */
    time?: boolean;
    band?: Band | undefined;
    /** The scale begins at 0. */
    zero?: boolean;
    most?: number | undefined;
    /** Bytes: marks at powers of two. */
    binary?: boolean;
}

const kColours = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const kHeight = 150, kMostLines = 8;

/** All lines on one x: what a line does not have there is null. */
export function aligned(lines: Line[]): [number[], ...Array<Array<number | null>>] {
    const xs = [...new Set(lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, index) => [x, index]));
    return [xs, ...lines.map((line) => {
        const ys = new Array<number | null>(xs.length).fill(null);
        for (const [x, y] of line.points) ys[at.get(x)!] = y;
        return ys;
    })];
}

/** Least, middle, greatest and last of all lines together. */
export function summary(lines: Line[]): { least: number; middle: number; greatest: number; last: number } | null {
    const all = lines.flatMap((line) => line.points.map((point) => point[1])).filter((y): y is number => y !== null && Number.isFinite(y));
    if (all.length === 0) return null;
    const sorted = [...all].sort((a, b) => a - b);
    let last: [number, number] = [-Infinity, 0];
    for (const line of lines)
        for (const [x, y] of line.points) if (y !== null && x >= last[0]) last = [x, y];
    return { least: sorted[0]!, middle: sorted[sorted.length >> 1]!, greatest: sorted[sorted.length - 1]!, last: last[1] };
}

const kBinary = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** UTC, as every other time here; of seconds where the marks are closer than a minute, of days where they are a day apart. */
function clockTimes(_: uPlot, values: number[]): string[] {
    const apart = (values[1] ?? 0) - (values[0] ?? 0);
    return values.map((each) => {
        const text = new Date(each * 1000).toISOString();
        return apart >= 86_400 ? text.slice(5, 10) : apart < 60 ? text.slice(11, 19) : text.slice(11, 16);
    });
}

export function useDark(): boolean {
    const query = useRef(window.matchMedia("(prefers-color-scheme: dark)"));
    const [dark, set] = useState(query.current.matches);
    useEffect(() => {
        const changed = (): void => set(query.current.matches);
        query.current.addEventListener("change", changed);
        return () => query.current.removeEventListener("change", changed);
    }, []);
    return dark;
}

export function Chart({ title, lines: all, show, time, band, zero, most, binary }: Props): VNode {
    const place = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const dark = useDark();
    const lines = all.filter((line) => line.points.length > 0).slice(0, kMostLines);
    const names = lines.map((line) => line.name).join("\n");
    const format = useRef(show);
    format.current = show;

    const data = (): uPlot.AlignedData => {
        const own = aligned(lines);
        if (!band) return own as uPlot.AlignedData;
        const flat = (value: number): number[] => own[0].map(() => value);
        return [...own, flat(band.high), flat(band.low), flat(band.mid ?? band.low)] as unknown as uPlot.AlignedData;
    };

    useEffect(() => {
        const element = place.current;
        if (!element || lines.length === 0) return;
        const css = getComputedStyle(document.documentElement);
        const colour = (name: string): string => css.getPropertyValue(name).trim();
        const axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
        const series: uPlot.Series[] = [{}, ...lines.map((line, index) => ({
            label: line.name, stroke: colour(kColours[index % kColours.length]!), width: 1.25, points: { show: false }, spanGaps: true,
        }))];
        const first = series.length;
        if (band) series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } },
            { stroke: colour("--plan"), width: 1, dash: [4, 3], points: { show: false } });
        const made = new uPlot({
            width: element.clientWidth, height: kHeight, series,
            legend: { show: false }, cursor: { y: false, drag: { x: true, y: false } },
            scales: { x: { time: Boolean(time) }, y: { range: (_, low, high) => {
                const bottom = zero ? 0 : low, top = most !== undefined ? Math.max(most, high) : high;
                const room = (top - bottom || Math.abs(top) || 1) * 0.08;
                return [bottom === 0 ? 0 : bottom - room, top + (most !== undefined && top === most ? 0 : room)];
            } } },
            axes: [{ ...axis, size: 24, space: 70, values: time ? clockTimes : (_: uPlot, values: number[]) => values.map((each) => (Number.isInteger(each) ? each.toLocaleString("en-US") : "")) },
                { ...axis, size: 64, ...(binary ? { incrs: kBinary } : {}), values: (_, values) => values.map((each) => (each === null ? "" : format.current(each))) }],
            ...(band ? { bands: [{ series: [first, first + 1] as [number, number], fill: colour("--plan-fill") }] } : {}),
        }, data(), element);
        plot.current = made;
        const follow = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: kHeight }));
        follow.observe(element);
        return () => {
            follow.disconnect();
            made.destroy();
            plot.current = null;
        };
    }, [names, dark, time, zero, most, binary, band?.low, band?.high, band?.mid]);
    useEffect(() => { plot.current?.setData(data()); });

    const said = summary(lines);
    return (
        <figure class="chart">
            <figcaption>{title}</figcaption>
            {said ? <div class="plot" ref={place} aria-hidden="true" /> : <div class="plot none">nothing measured yet</div>}
            <p class="said">
                {said ? <>now <b>{show(said.last)}</b> · median {show(said.middle)} · {show(said.least)} to {show(said.greatest)}</> : "\u00a0"}
                {said && band ? <> · <span class="plan">{band.name} {band.mid !== undefined ? show(band.mid) : ""} ({show(band.low)} to {show(band.high)})</span></> : null}
            </p>
            {lines.length > 1 ? <p class="legend">{lines.map((line, index) => <span key={line.name}><i class={`key-${index % kColours.length}`} />{line.name}</span>)}
                {all.length > kMostLines ? <span>and {all.length - kMostLines} more</span> : null}</p> : null}
        </figure>
    );
}
