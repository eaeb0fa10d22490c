// Reads a list of resources as JSON on stdin; prints, for each, the places that its schema refuses.
"use strict";

const fs = require("fs");
const path = require("path");
const Ajv = require("ajv-draft-04");

const ajv = new Ajv({ strict: false, allErrors: true, logger: false, validateFormats: false });
const types = new Map();
for (const schema of JSON.parse(fs.readFileSync(path.join(__dirname, "schemas.json"), "utf8"))) {
  ajv.addSchema(schema);
  for (const section of ["resourceDefinitions", "extension_resourceDefinitions"])
    for (const [name, definition] of Object.entries(schema[section] || {}))
      types.set(definition.properties.type.enum[0].toLowerCase(), schema.id + "/" + section + "/" + name);
}

const answers = JSON.parse(fs.readFileSync(0, "utf8")).map((resource) => {
  const where = types.get(String(resource.type).toLowerCase());
  if (!where) return ["no schema of " + resource.type];
  const validate = ajv.compile({ $ref: where });
  validate(resource);
  // A property that is refused is refused by each branch of its oneOf: the deepest place is the mistake.
  const places = (validate.errors || []).map((error) => error.instancePath);
  return [...new Set(places)].filter((one) => !places.some((other) => other.startsWith(one + "/"))).sort();
});
process.stdout.write(JSON.stringify(answers));
