// Figures as they are shown: each with its unit, three digits or so, and never a sign of more precision than there is.

const kNone = "–";

/** 12,345 */
export function count(value: number | undefined | null): string {
    if (value === undefined || value === null || !Number.isFinite(value)) return kNone;
    const whole = Math.abs(value) >= 100 || Number.isInteger(value);
    return value.toLocaleString("en-US", { maximumFractionDigits: whole ? 0 : 1 });
}

/** Three significant digits, without an exponent where a reader can do without. */
export function short(value: number | undefined | null): string {
    if (value === undefined || value === null || !Number.isFinite(value)) return kNone;
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(2);
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
}

export function bytes(value: number | undefined | null): string {
    if (value === undefined || value === null || !Number.isFinite(value)) return kNone;
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let size = value, unit = 0;
    while (Math.abs(size) >= 1024 && unit + 1 < units.length) size /= 1024, ++unit;
    return `${unit === 0 ? Math.round(size) : size.toFixed(size < 100 ? 1 : 0)} ${units[unit]}`;
}

/** A span of time: 431 ms, 12.4 s, 3 min 20 s, 4 h 10 min, 3.2 d. */
export function seconds(value: number | undefined | null): string {
    if (value === undefined || value === null || !Number.isFinite(value)) return kNone;
    const size = Math.abs(value);
    if (size === 0) return "0 s";
    if (size < 1e-3) return `${short(value * 1e6)} µs`;
    if (size < 1) return `${short(value * 1e3)} ms`;
    if (size < 60) return `${short(value)} s`;
    const sign = value < 0 ? "-" : "", whole = Math.round(size);
    if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
    if (whole < 86_400) {
        const minutes = Math.round(whole / 60);
        return `${sign}${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
    }
    return `${sign}${(whole / 86_400).toFixed(1)} d`;
}

export function percent(share: number | undefined | null): string {
    if (share === undefined || share === null || !Number.isFinite(share)) return kNone;
    const value = share * 100;
    return `${Math.abs(value) < 10 && value !== 0 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}

/** Dollars from micro-dollars. */
export function money(micro: number | undefined | null, currency = "USD"): string {
    if (micro === undefined || micro === null) return kNone;
    return dollars(micro / 1e6, currency);
}

export function dollars(value: number | undefined | null, currency = "USD"): string {
    if (value === undefined || value === null || !Number.isFinite(value)) return kNone;
    const sign = currency === "USD" || currency === "" ? "$" : `${currency} `;
    const size = Math.abs(value);
    if (size !== 0 && size < 0.01) return `${sign}${Number(value.toPrecision(2))}`;
    const digits = size >= 1000 ? 0 : 2;
    return sign + value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** milli: what the API tells in thousandths of a processor or a GPU. */
export function milli(value: number | undefined | null): string {
    return value === undefined || value === null ? kNone : String(Number((value / 1000).toFixed(3)));
}

export function hours(value: number): string {
    return value === 0 ? "0 h" : value < 0.01 ? "< 0.01 h" : `${count(Number(value.toFixed(value < 10 ? 2 : 1)))} h`;
}

/** A figure with the unit that the API names beside it. */
export function inUnit(value: number | undefined | null, unit: string | undefined): string {
    if (value === undefined || value === null) return kNone;
    switch (unit) {
        case "s": return seconds(value);
        case "bytes":
        case "B": return bytes(value);
        case "usd":
        case "USD": return dollars(value);
        case "microusd": return money(value);
        case "share": return percent(value);
        case undefined:
        case "": return short(value);
        default: return `${short(value)} ${unit}`;
    }
}

export function absolute(at: string | undefined): string {
    if (!at) return "";
    const when = new Date(at);
    return Number.isNaN(when.getTime()) ? at : `${when.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function ago(at: string | undefined, nowMs: number): string {
    if (!at) return kNone;
    const gone = (nowMs - new Date(at).getTime()) / 1000;
    if (!Number.isFinite(gone)) return at;
    if (Math.abs(gone) < 1) return "now";
    return gone > 0 ? `${coarse(gone)} ago` : `in ${coarse(-gone)}`;
}

function coarse(value: number): string {
    if (value < 60) return `${Math.floor(value)} s`;
    if (value < 3600) return `${Math.floor(value / 60)} min`;
    if (value < 2 * 86_400) return `${Math.floor(value / 3600)} h`;
    return `${Math.floor(value / 86_400)} d`;
}

/** What a terminal would not have shown as text: colours and moves of the cursor, and everything else that is no letter. */
export function plain(text: string): string {
    return text
        .replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "")
        .replace(/\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g, "")
        .replace(/\r\n/g, "\n")
        .replace(/[^\n]*\r(?!\n)/g, "")
        .replace(/[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]/g, "\u00b7");
}

const kWords: Record<string, string> = {
    none: "", ok: "done", user_error: "the program failed", oom: "out of memory", node_lost: "its machine was lost",
    device_fault: "a GPU failed", preempted: "preempted by another run", evicted: "evicted", no_capacity: "no capacity",
    timeout: "timed out", lease: "its lease ended", quota: "quota", budget: "budget", cancelled: "cancelled",
    dependency: "what it waited for failed", lost_contact: "no contact", platform: "a fault of the platform",
    order_behind: "others are before it", capacity_none: "fits no machine", capacity_busy: "machines are busy",
    dependency_waiting: "waits for another run", backing_off: "tried again after a pause", held: "held",
    image_pulling: "its image is being fetched", engine_queue: "waits in the cluster's queue", node_unhealthy: "machines are not well",
    begin_later: "begins later", parallel_limit: "as many as allowed run already", engine_away: "the engine does not answer",
    node_lemon: "a machine that fails too often", node_repaired: "repaired", node_override: "by hand",
};
export const cause = (code: string | undefined): string => (code === undefined ? "" : kWords[code] ?? code.replaceAll("_", " "));

export const words = (name: string): string => name.replaceAll("_", " ");

/** 1 rank, 2 ranks. */
export const many = (value: number, one: string): string => `${count(value)} ${one}${value === 1 ? "" : "s"}`;

/** Dollars of a prediction: three digits of them, as the command prints them. */
export const about = (value: number | undefined | null): string =>
    dollars(value !== undefined && value !== null && Math.abs(value) >= 1000 ? Number(value.toPrecision(3)) : value);
