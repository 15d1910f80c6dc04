import assert from "node:assert/strict";
import test from "node:test";
import { dayBefore, daysOf, fixOf, lastAt, limitOf, rolesIn, rolesOf, withLines } from "../../src/local/page/core/system_tables.js";

const people = new Map([
  ["generator", { state: "ready", details: { model: "gemma4:12b" } }],
  ["critic", { state: "failed", details: { model: "gemma4:12b" } }],
  ["memory", { state: "ready", details: { embedding_model: "nomic-embed-text" } }],
]);

test("each model has the roles that participants give it, whatever its tag", () => {
  const roles = rolesIn(people);
  assert.deepEqual(roles.map((one) => one.by), ["generator", "critic", "memory"]);
  assert.deepEqual(rolesOf(roles, { id: "gemma4:12b", name: "gemma4:12b" }), ["answers", "judges answers"]);
  assert.deepEqual(rolesOf(roles, { id: "nomic-embed-text:latest", name: "nomic-embed-text:latest" }), ["embeds memories"]);
  assert.deepEqual(rolesOf(roles, { id: "other", name: "other" }), []);
});

test("only what loses nothing is a button", () => {
  const finding = (more) => ({ name: "x", status: "warn", text: "", fix: "", ...more });
  assert.deepEqual(fixOf(finding({ name: "critic", status: "fail" }), people), { kind: "restart", name: "critic" });
  assert.deepEqual(fixOf(finding({ fix: "get it, as with 'ollama pull gemma4:12b', or name another in critic.yaml" }), people), { kind: "pull", name: "gemma4:12b" });
  assert.deepEqual(fixOf(finding({ fix: "set provider in web_search.yaml" }), people), { kind: "settings", name: "web_search" });
  assert.equal(fixOf(finding({ fix: "stop the system and move /data/engrams away" }), people), null);
  assert.equal(fixOf(finding({ status: "ok", text: "set in system.yaml" }), people), null);
});

test("days without use are days, also over the end of a month", () => {
  assert.equal(dayBefore("2026-03-01", 1), "2026-02-28");
  const days = daysOf([{ day: "2026-03-01", prompt_tokens: 3, completion_tokens: 4 }, { day: "2025-01-01", prompt_tokens: 9 }], "2026-03-02", 3);
  assert.deepEqual(days, [{ day: "2026-02-28", tokens: 0 }, { day: "2026-03-01", tokens: 7 }, { day: "2026-03-02", tokens: 0 }]);
});

test("a line that was read is there once, and two that are alike at other times twice", () => {
  const line = (at, message) => ({ at, level: "info", participant: "memory", message });
  const first = withLines([], [line(1, "a"), line(2, "b")]);
  assert.equal(withLines(first, [line(2, "b")]), first);
  assert.deepEqual(withLines(first, [line(2, "b"), line(2, "c"), line(3, "b")]).map((one) => one.message), ["a", "b", "c", "b"]);
  assert.equal(lastAt([line(1, "a"), line(null, "x")]), 1);
  assert.equal(withLines([], Array.from({ length: 1500 }, (_, at) => line(at, "m"))).length, 1000);
});

test("a limit is a number above nothing, or none", () => {
  assert.deepEqual(limitOf(" 500 000 ", true), { value: 500000, trouble: "" });
  assert.deepEqual(limitOf("", true), { value: null, trouble: "" });
  assert.match(limitOf("2.5", true).trouble, /whole number/);
  assert.equal(limitOf("2.5", false).value, 2.5);
  for (const wrong of ["-1", "0", "many", "NaN"]) assert.match(limitOf(wrong, false).trouble, /above 0/);
});
