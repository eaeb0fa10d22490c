// Where in the console one is: all of it is in the fragment, so that every address can be sent to somebody.
import { useEffect, useState } from "preact/hooks";

export interface Route { path: string[]; query: URLSearchParams; text: string }

export function parseRoute(hash: string): Route {
    const text = hash.replace(/^#\/?/, "");
    const [path = "", query = ""] = text.split("?", 2);
    const segment = (each: string): string => {
        try {
            return decodeURIComponent(each);
        } catch {
            return each;
        }
    };
    return { path: path.split("/").filter(Boolean).map(segment), query: new URLSearchParams(query), text };
}

export function useRoute(): Route {
    const [route, set] = useState(() => parseRoute(window.location.hash));
    useEffect(() => {
        const moved = (): void => set(parseRoute(window.location.hash));
        window.addEventListener("hashchange", moved);
        return () => window.removeEventListener("hashchange", moved);
    }, []);
    return route;
}

export const go = (path: string): void => void (window.location.hash = path);

/** The same page with other filters; what is empty is left out. */
export function withQuery(route: Route, changes: Record<string, string>): string {
    const query = new URLSearchParams(route.query);
    for (const [name, value] of Object.entries(changes))
        if (value) query.set(name, value);
        else query.delete(name);
    const words = query.toString();
    return `#/${route.path.map(encodeURIComponent).join("/")}${words ? `?${words}` : ""}`;
}
