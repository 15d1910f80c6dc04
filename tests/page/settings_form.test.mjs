import { test } from "node:test";
import assert from "node:assert/strict";
import { above, changesOf, fieldsOf, firstSentence, foundSettings, parsed, range, shown, withoutPlace } from "../../src/local/page/core/settings_form.js";

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
  assert.deepEqual(Object.values(fields).map((field) => field.kind), ["number", "number", "choice", "switch", "text", "lines", "json"]);
  assert.ok(fields.api_key.isSecret);
  assert.deepEqual(fields.port.texts, ["Where it listens."]);
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
  assert.deepEqual(parsed(fields.servers, " b \n\nc"), { value: ["b", "c"] });
  assert.match(parsed(fields.odd, "[").trouble, /^This is not JSON/);
});

test("a value is shown as it can be typed again", () => {
  assert.equal(shown(fields.port, 80), "80");
  assert.deepEqual(parsed(fields.servers, shown(fields.servers, ["a", "b"])), { value: ["a", "b"] });
  assert.equal(shown(fields.wait, null), "");
});

test("no schema, no fields", () => {
  assert.deepEqual(fieldsOf({ schema: null }), []);
});

test("what a field takes is said in words", () => {
  const of = (more) => fieldsOf({ schema: { properties: { n: { type: "number", ...more } } } })[0];
  assert.deepEqual([{ minimum: 0 }, { exclusiveMinimum: 0 }, { minimum: 1, maximum: 20 }, {}].map((more) => range(of(more))), ["at least 0", "more than 0", "1 to 20", ""]);
  assert.deepEqual(parsed(of({ exclusiveMinimum: 0 }), "0"), { trouble: "More than 0." });
});

test("a comment and a source come with the key that they are of", () => {
  const [field] = fieldsOf({ schema: { properties: { a: { type: "string", description: "No." } } }, keys: { a: ["Yes."] }, sources: { a: { from: "file", name: "x.yaml" } } });
  assert.deepEqual([field.texts, field.source.from], [["Yes."], "file"]);
});

test("of a mapping only what differs from the default is sent, in the place of what was there", () => {
  const standard = { a: 1, b: { c: 2, d: [3] } };
  assert.deepEqual(above({ a: 1, b: { c: 5, d: [3] }, e: 6 }, standard), { b: { c: 5 }, e: 6 });
  assert.equal(above({ a: 1, b: { c: 2 } }, standard), null);
  const map = fieldsOf({ schema: { properties: { map: { type: "object" } } }, defaults: { map: standard } });
  assert.deepEqual(changesOf(map, { map: { ...standard, a: 7 } }), { values: { map: { a: 7 } }, reset: ["map"] });
  assert.deepEqual(changesOf(map, { map: standard }), { values: {}, reset: ["map"] });
  assert.match(changesOf(map, { map: { a: 1 } }).trouble, /cannot be taken out/);
});

test("settings are found by the words of their name and their text, those with it in the name first", () => {
  const listing = [{ name: "files", about: [], keys: { keep_days: ["How long a change is kept."] } }, { name: "web_search", about: [], keys: { change_after: [""], timeout_seconds: ["How long. At most."] } }];
  assert.deepEqual(foundSettings(listing, "change").map((one) => one.name), ["change_after", "keep_days"]);
  assert.deepEqual(foundSettings(listing, "WEB long").map((one) => one.text), ["How long."]);
  assert.deepEqual(foundSettings(listing, "  "), []);
  assert.equal(firstSentence("Such as a.b, e.g. this. Then."), "Such as a.b, e.g. this.");
});

test("an error beside its field has no file and line", () => {
  assert.equal(withoutPlace("/home/me/critic.yaml:3: a: expected 1: 2"), "a: expected 1: 2");
});

test("one of several names is a choice, however they are put together", () => {
  const schema = { properties: { profile: { anyOf: [{ const: "auto", type: "string" }, { enum: ["selene", "json"], type: "string" }], default: "auto" } } };
  const [field] = fieldsOf({ schema });
  assert.deepEqual([field.kind, field.options, field.value], ["choice", ["auto", "selene", "json"], "auto"]);
});
