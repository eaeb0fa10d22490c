// The console as three files, the same bytes from the same sources: web/dist, or the folder of --out.
//   node build.mjs [--out FOLDER] [--tests]      --tests: what web/test runs, in build/test
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { description, rights } from "./openapi.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const src = join(here, "src");

function sources(folder) {
    return readdirSync(folder, { withFileTypes: true }).flatMap((each) =>
        each.isDirectory() ? sources(join(folder, each.name)) : /\.tsx?$/.test(each.name) ? [join(folder, each.name)] : []);
}

/** The operations that the sources ask about. */
function asked() {
    const names = new Set();
    for (const file of sources(src))
        for (const found of readFileSync(file, "utf8").matchAll(/\bcan\("(\w+)"\)/g)) names.add(found[1]);
    return names;
}

const common = {
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { RIGHTS: JSON.stringify(rights(description(), asked())) },
    legalComments: "none",
    target: "es2022",
    logLevel: "warning",
};

const versions = JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies, bundled = Object.keys(versions).sort();
const words = process.argv.slice(2);
if (words.includes("--tests")) {
    const folder = join(here, "test");
    await build({
        ...common,
        entryPoints: readdirSync(folder).filter((each) => each.endsWith(".test.ts")).map((each) => join(folder, each)),
        outdir: join(here, "build/test"),
        outExtension: { ".js": ".mjs" },
        platform: "node",
        format: "esm",
    });
} else {
    const out = words.includes("--out") ? words[words.indexOf("--out") + 1] : join(here, "dist");
    mkdirSync(out, { recursive: true });
    const banner = { js: `/*! with ${bundled.join(" and ")}: licenses.txt beside this file */` };
    await build({ ...common, banner, entryPoints: [join(src, "main.tsx")], outfile: join(out, "app.js"), format: "iife", minify: true });
    const style = await build({ ...common, entryPoints: [join(src, "app.css")], minify: true, write: false });
    writeFileSync(join(out, "app.css"), style.outputFiles[0].text);
    copyFileSync(join(src, "index.html"), join(out, "index.html"));
    // What is passed on has its notice with it.
    writeFileSync(join(out, "licenses.txt"), bundled.map((name) =>
        `${name} ${versions[name]}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim()}\n`).join("\n\n"));
}
