// A browser that does what it is told: a JSON line in, a JSON line out. The tests are in ../console_test.py.
const { chromium } = require("playwright-core");
const readline = require("node:readline");

const kLimitMs = 30_000;
const heard = { violations: [], faults: [], errors: [] };

async function main() {
    const browser = await chromium.launch({ executablePath: process.env.STOKER_CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
    let context, page;
    const open = async ({ width = 1280, height = 900, dark = false }) => {
        if (context) await context.close();
        context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", acceptDownloads: true, ignoreHTTPSErrors: true });
        context.setDefaultTimeout(kLimitMs);
        page = await context.newPage();
        page.on("pageerror", (error) => heard.faults.push(String(error.stack || error)));
        page.on("dialog", (dialog) => { heard.faults.push("dialog: " + dialog.message()); void dialog.dismiss(); });
        page.on("console", (said) => {
            const text = said.text();
            if (/Content Security Policy|Refused to|violates/i.test(text)) heard.violations.push(text);
            // What the browser itself notes of an answer that was no, or of a server that is away, is told in the page.
            else if (said.type() === "error" && !/^Failed to load resource/.test(text)) heard.errors.push(text);
        });
        await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) =>
            console.error("Content Security Policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile)));
    };
    const find = ({ role, name, label, css, text, exact = true }) =>
        role ? page.getByRole(role, { name, exact }) : label ? page.getByLabel(label, { exact }) : css ? page.locator(css) : page.getByText(text, { exact: false });
    const acts = {
        open,
        goto: async ({ url }) => { await page.goto(url); },
        hash: async ({ hash }) => { await page.evaluate((to) => { window.location.hash = to; }, hash); },
        reload: async () => { await page.reload(); },
        click: async (what) => { await find(what).first().click(); },
        fill: async (what) => { await find(what).first().fill(what.value); },
        choose: async (what) => { await find(what).first().selectOption(what.value); },
        press: async ({ key }) => { await page.keyboard.press(key); },
        wait: async (what) => { await find(what).first().waitFor({ state: what.state || "visible", timeout: what.limit_ms || kLimitMs }); },
        count: async (what) => find(what).count(),
        text: async (what) => (await find(what).first().innerText()),
        texts: async (what) => find(what).allInnerTexts(),
        attribute: async (what) => find(what).first().getAttribute(what.attribute),
        eval: async ({ code }) => page.evaluate(code),
        shot: async ({ path }) => { await page.screenshot({ path, fullPage: true }); },
        heard: async () => heard,
        axe: async () => {
            // Not through the page's policy, which would refuse it: in a world of its own.
            const source = require("node:fs").readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
            await page.evaluate(source + "; undefined");
            const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
            return found.violations.map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join(" | ")}`);
        },
    };
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const { act, ...what } = JSON.parse(line);
        let answer;
        try {
            answer = { value: (await acts[act](what)) ?? null };
        } catch (error) {
            answer = { error: String(error.message || error), page: page ? (await page.evaluate(() => document.body.innerText).catch(() => "")).slice(0, 2000) : "" };
        }
        process.stdout.write(JSON.stringify(answer) + "\n");
    }
    await browser.close();
}

main().catch((error) => { console.error(error); process.exit(1); });
