// Endpoints that the caller reaches. A server that keeps none has none.
import { get } from "./api";
import type { EndpointItem, EndpointList } from "./api_types";

export const endpointList = async (signal: AbortSignal): Promise<EndpointItem[]> => (await get<EndpointList>("/api/v1/endpoints", {}, signal)).items;

/** A person has to look: it is neither stopped, nor asleep as it should be, nor ready. */
export const isUnwell = (each: EndpointItem): boolean => !each.stopped && ["failing", "unkept"].includes(each.state ?? "");
