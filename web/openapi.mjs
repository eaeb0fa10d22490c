// What the console takes from docs/reference/openapi.json: the types that it reads, and who may ask for what.
import { readFileSync } from "node:fs";

export const root = new URL("..", import.meta.url);
export const description = () => JSON.parse(readFileSync(new URL("docs/reference/openapi.json", root), "utf8"));

const kLevels = ["project", "organisation", "provider"];

/** {operation: [level, roles...]} of every operation that src names in can("..."), and of no other: a route that is added
 * elsewhere changes no byte of what is built. An operation without roles is anybody's. */
export function rights(api, names) {
    const all = {};
    for (const methods of Object.values(api.paths))
        for (const operation of Object.values(methods)) all[operation.operationId] = operation;
    const found = {};
    for (const name of [...names].sort()) {
        const operation = all[name];
        if (!operation) throw new Error(`src asks can("${name}"), which docs/reference/openapi.json does not have`);
        found[name] = [kLevels.indexOf(operation["x-stoker-level"] ?? "project"), ...(operation["x-stoker-roles"] ?? [])];
    }
    return found;
}

function type(schema, indent) {
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
    const either = schema.anyOf ?? schema.oneOf;
    if (either) return either.map((each) => type(each, indent)).join(" | ");
    const kinds = Array.isArray(schema.type) ? schema.type : [schema.type];
    return kinds.map((kind) => ofKind(kind, schema, indent)).join(" | ");
}

function ofKind(kind, schema, indent) {
    switch (kind) {
        case "array": return `Array<${type(schema.items ?? {}, indent)}>`;
        case "integer":
        case "number": return "number";
        case "string": return "string";
        case "boolean": return "boolean";
        case "null": return "null";
        default: break;
    }
    if (schema.properties) return members(schema, indent);
    if (typeof schema.additionalProperties === "object") return `Record<string, ${type(schema.additionalProperties, indent)}>`;
    return "unknown";
}

function members(schema, indent) {
    const required = new Set(schema.required ?? []);
    const inner = indent + "    ";
    const lines = Object.entries(schema.properties).map(
        ([name, each]) => `${inner}${JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${type(each, inner)};`);
    return `{\n${lines.join("\n")}\n${indent}}`;
}

/** Every schema as a TypeScript type. What is in no answer of the API is an error of tsc where the console reads it. */
export function types(api) {
    const lines = ["// Written by types.mjs from docs/reference/openapi.json."];
    for (const [name, schema] of Object.entries(api.components.schemas))
        lines.push(`export type ${name} = ${name === "Event" ? "JournalEvent" : type(schema, "")};`);
    lines.push(`export type JournalEvent = ${type(api.components.schemas.Event, "")};`);
    return lines.join("\n") + "\n";
}
