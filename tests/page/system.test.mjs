import assert from "node:assert/strict";
import test from "node:test";
import { troubles, withParticipant } from "../../src/local/page/core/system_words.js";

const row = (name, more = {}) => ({ name, pid: 7, state: "ready", details: {}, ...more });
const told = (...rows) => rows.reduce(withParticipant, new Map());

test("who takes part no longer is not named as a trouble", () => {
  const stopped = told(row("critic"), row("coin"), row("coin", { state: "stopping" }));
  assert.deepEqual(troubles(stopped.values()).map((one) => one.text), ["coin is stopping"]);
  const gone = withParticipant(stopped, row("coin", { state: "gone" }));
  assert.deepEqual([[...gone.keys()], troubles(gone.values())], [["critic"], []]);
});

test("one of that name that has taken its place stays", () => {
  const both = told(row("coin", { pid: 8 }), row("coin", { state: "gone" }));
  assert.equal(both.get("coin").pid, 8);
});
