// Logging in: by a name and its password, by single sign-on where the server has it, with a token, or as the first administrator.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, caller, farewell, get, noteCookie, post, setCsrf, setToken } from "../api";
import type { Caller, LoginGiven, SignOn } from "../api_types";
import { useStore } from "../live";
import { Field, Form, Trouble } from "../parts";
import { begin, finish, returned } from "../sign_on";

function enter(given: LoginGiven): void {
    setToken("");
    noteCookie(true);
    setCsrf(given.csrf ?? "");
    farewell.value = "";
    caller.value = given.caller;
}

export function Login(): VNode {
    const why = useStore(farewell);
    const [name, setName] = useState("");
    const [password, setPassword] = useState("");
    const [token, setOwnToken] = useState("");
    const [first, setFirst] = useState(false);
    const [provider, setProvider] = useState<SignOn>();
    const [error, setError] = useState<Error>();

    useEffect(() => {
        get<SignOn>("/api/v1/login/oidc").then(setProvider, () => undefined);
        if (returned()) finish().then(enter, (problem: Error) => setError(problem));
    }, []);

    const byPassword = async (): Promise<void> => enter(await post<LoginGiven>("/api/v1/login", { name, password, cookie: true }));
    const byToken = async (): Promise<void> => {
        setToken(token.trim());
        try {
            const who = await get<Caller>("/api/v1/whoami");
            farewell.value = "";
            caller.value = who;
        } catch (problem) {
            setToken("");
            throw problem;
        }
    };
    // The first administrator is logged in by password at once, so that the login is one that no script can read.
    const setUp = async (): Promise<void> => {
        const made = await post<LoginGiven>("/api/v1/setup", { token: token.trim(), name, password });
        await ask("POST", "/api/v1/logout", { quiet: true, headers: { Authorization: `Bearer ${made.secret ?? ""}` } }).catch(() => undefined);
        await byPassword();
    };

    return (
        <main class="login">
            <h1>Stoker</h1>
            {why ? <p class="note" role="status">{why}</p> : null}
            <Trouble error={error} />
            {first ? (
                <section aria-label="First administrator">
                    <h2>First administrator</h2>
                    <p class="dim">stoker up printed a token for this, once, while the server has nobody.</p>
                    <Form label="Make the administrator" does={setUp}>
                        <Field label="Token" value={token} set={setOwnToken} autocomplete="off" required />
                        <Field label="Name" value={name} set={setName} autocomplete="username" required />
                        <Field label="Password" type="password" value={password} set={setPassword} autocomplete="new-password" required />
                    </Form>
                    <p><button type="button" class="link" onClick={() => setFirst(false)}>Log in instead</button></p>
                </section>
            ) : (
                <>
                    <section aria-label="Log in">
                        <Form label="Log in" does={byPassword}>
                            <Field label="Name" value={name} set={setName} autocomplete="username" required />
                            <Field label="Password" type="password" value={password} set={setPassword} autocomplete="current-password" required />
                        </Form>
                    </section>
                    {provider?.issuer ? (
                        <p><button type="button" class="main" onClick={() => begin(provider).catch((problem: Error) => setError(problem))}>Single sign-on</button>
                            <span class="dim small"> {provider.issuer}</span></p>
                    ) : null}
                    <details>
                        <summary>With a token or a key</summary>
                        <Form label="Use it" does={byToken}>
                            <Field label="Token or key" type="password" value={token} set={setOwnToken} autocomplete="off" required
                                hint="stoker console opens this page with the installation's own. It is kept in this tab alone." />
                        </Form>
                    </details>
                    <p class="small"><button type="button" class="link" onClick={() => setFirst(true)}>Nobody is here yet: make the first administrator</button></p>
                </>
            )}
        </main>
    );
}
