// For work on the console: dist as the server gives it, and everything else asked of a server.
//   node serve.mjs http://127.0.0.1:8042 [PORT]
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";

const server = new URL(process.argv[2] ?? "http://127.0.0.1:8042");
const port = Number(process.argv[3] ?? 8050);
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const files = { "/": ["index.html", "text/html; charset=utf-8"], "/console/app.js": ["app.js", "text/javascript; charset=utf-8"],
    "/console/app.css": ["app.css", "text/css; charset=utf-8"] };

createServer((asked, answer) => {
    const file = files[asked.url.split("?")[0]];
    if (file) {
        answer.writeHead(200, { "Content-Type": file[1], "Content-Security-Policy": policy, "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff" });
        return answer.end(readFileSync(new URL("dist/" + file[0], import.meta.url)));
    }
    const headers = { ...asked.headers, host: server.host };
    delete headers.origin;
    const onward = request({ host: server.hostname, port: server.port, path: asked.url, method: asked.method, headers }, (got) => {
        answer.writeHead(got.statusCode, got.headers);
        got.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    asked.pipe(onward);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
