import { test } from "node:test";
import assert from "node:assert/strict";
import { fieldsOf, parsed, shown } from "../../src/local/page/core/settings_form.js";

const schema = {
  $defs: { Level: { enum: ["low", "high"], type: "string" }, Loop: { $ref: "#/$defs/Loop" } },
  properties: {
    port: { type: "integer", minimum: 1, maximum: 65535, description: "Where it listens." },
    wait: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
    level: { $ref: "#/$defs/Level", default: "low" },
    is_on: { type: "boolean" },
    api_key: { type: "string" },
    servers: { type: "array", items: { type: "string" } },
    odd: { $ref: "#/$defs/Loop" },
  },
};
const fields = Object.fromEntries(fieldsOf({ schema, values: { port: 8765, servers: ["a"], api_key: "k" }, defaults: { port: 8000, is_on: true, api_key: "" } }).map((field) => [field.name, field]));

test("every property has a field of the kind that it needs", () => {
  assert.deepEqual(Object.values(fields).map((field) => field.kind), ["number", "number", "choice", "switch", "text", "json", "json"]);
  assert.ok(fields.api_key.isSecret);
  assert.equal(fields.port.description, "Where it listens.");
});

test("a value is told from the standard one", () => {
  assert.deepEqual([fields.port.value, fields.port.standard, fields.port.isChanged], [8765, 8000, true]);
  assert.deepEqual([fields.level.value, fields.level.isChanged], ["low", false]);
  assert.equal(fields.is_on.value, true);
});

test("what was typed is a value, or what is wrong with it is said", () => {
  assert.deepEqual(parsed(fields.port, " 80 "), { value: 80 });
  assert.deepEqual(parsed(fields.port, "80.5"), { trouble: "A whole number is needed." });
  assert.deepEqual(parsed(fields.port, "0"), { trouble: "At least 1." });
  assert.deepEqual(parsed(fields.port, "70000"), { trouble: "At most 65535." });
  assert.deepEqual(parsed(fields.port, ""), { trouble: "A number is needed." });
  assert.deepEqual(parsed(fields.wait, ""), { value: null });
  assert.deepEqual(parsed(fields.level, "high"), { value: "high" });
  assert.deepEqual(parsed(fields.level, "x"), { trouble: "One of low, high." });
  assert.deepEqual(parsed(fields.servers, '["b"]'), { value: ["b"] });
  assert.match(parsed(fields.servers, "[").trouble, /^This is not JSON/);
});

test("a value is shown as it can be typed again", () => {
  assert.equal(shown(fields.port, 80), "80");
  assert.deepEqual(parsed(fields.servers, shown(fields.servers, ["a", "b"])), { value: ["a", "b"] });
  assert.equal(shown(fields.wait, null), "");
});

test("no schema, no fields", () => {
  assert.deepEqual(fieldsOf({ schema: null }), []);
});
