// src/api_types.ts, which tsc alone reads: nothing of it is in what is built.
import { writeFileSync } from "node:fs";
import { description, types } from "./openapi.mjs";

writeFileSync(new URL("src/api_types.ts", import.meta.url), types(description()));
