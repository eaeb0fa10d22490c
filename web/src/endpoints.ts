// What the server says of endpoints. A server without them (404) has none.
import { get, Problem } from "./api";

export interface EndpointItem { name: string; state: string; ready: boolean; stopped: boolean; replicas: number; wanted: number; least: number; most: number; waiting: number; model: string }

export async function endpointList(signal: AbortSignal): Promise<EndpointItem[]> {
    try {
        const found = await get<{ items?: Array<Record<string, unknown>> }>("/api/v1/endpoints", {}, signal);
        return (found.items ?? []).map(endpoint);
    } catch (problem) {
        if (problem instanceof Problem && problem.status === 404) return [];
        throw problem;
    }
}

function endpoint(each: Record<string, unknown>): EndpointItem {
    const number = (name: string): number => Number(each[name] ?? 0);
    const state = String(each["state"] ?? "");
    return { name: String(each["name"] ?? ""), state, ready: state === "ready", stopped: state === "stopped", replicas: number("replicas"),
        wanted: number("wanted"), least: number("least"), most: number("most"), waiting: number("waiting"), model: String(each["model"] ?? "") };
}
