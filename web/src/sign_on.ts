// Single sign-on: the code flow with PKCE. The provider sends the browser back to this page with a code in the query.
import { post } from "./api";
import type { LoginGiven, SignOn } from "./api_types";

const kKept = "stoker.sign_on";
interface Begun { verifier: string; state: string; nonce: string; issuer: string; client: string; token: string; back: string }
interface Endpoints { authorization_endpoint: string; token_endpoint: string }

const base64url = (data: Uint8Array): string =>
    btoa(String.fromCharCode(...data)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

export async function challenge(verifier: string): Promise<string> {
    return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

async function discover(issuer: string): Promise<Endpoints> {
    const answer = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit" });
    if (!answer.ok) throw new Error(`${issuer} answered ${answer.status}`);
    return (await answer.json()) as Endpoints;
}

export async function begin(provider: SignOn): Promise<void> {
    if (!window.crypto?.subtle) throw new Error("single sign-on needs https, or localhost: the browser gives no SHA-256 otherwise");
    const issuer = provider.issuer ?? "", client = provider.client_id ?? "";
    const found = await discover(issuer).catch((error: Error) => {
        throw new Error(`the provider ${issuer} cannot be asked from this page: ${error.message}`);
    });
    const begun: Begun = { verifier: random(), state: random(), nonce: random(), issuer, client, token: found.token_endpoint,
        back: window.location.origin + window.location.pathname };
    window.sessionStorage.setItem(kKept, JSON.stringify(begun));
    const to = new URL(found.authorization_endpoint);
    for (const [name, value] of Object.entries({
        response_type: "code", client_id: client, redirect_uri: begun.back, scope: provider.scope || "openid", state: begun.state,
        nonce: begun.nonce, code_challenge: await challenge(begun.verifier), code_challenge_method: "S256",
    })) to.searchParams.set(name, value);
    window.location.assign(to.href);
}

const query = (): URLSearchParams => new URLSearchParams(window.location.search);
export const returned = (): boolean => query().has("state") && (query().has("code") || query().has("error"));

export async function finish(): Promise<LoginGiven> {
    const words = query();
    const begun = JSON.parse(window.sessionStorage.getItem(kKept) ?? "null") as Begun | null;
    window.sessionStorage.removeItem(kKept);
    window.history.replaceState(null, "", window.location.pathname + window.location.hash);
    if (words.has("error")) throw new Error(`the provider refused: ${words.get("error_description") ?? words.get("error") ?? ""}`);
    if (!begun || begun.state !== words.get("state")) throw new Error("this answer of the provider is not of a login that this tab began");
    const answer = await fetch(begun.token, {
        method: "POST", credentials: "omit", headers: { "Content-Type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ grant_type: "authorization_code", code: words.get("code") ?? "", redirect_uri: begun.back,
            client_id: begun.client, code_verifier: begun.verifier }),
    });
    const given = (await answer.json()) as { id_token?: string; error_description?: string; error?: string };
    if (!given.id_token) throw new Error(`the provider gave no ID token: ${given.error_description ?? given.error ?? answer.status}`);
    return post<LoginGiven>("/api/v1/login/oidc", { token: given.id_token, nonce: begun.nonce, cookie: true });
}
