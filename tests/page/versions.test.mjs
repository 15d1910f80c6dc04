import assert from "node:assert/strict";
import test from "node:test";
import { versionsAt } from "../../src/local/page/core/versions.js";

const BRANCHES = [
  { session_id: "b1", branched_from: "s", before: "q2", first: "x1" },
  { session_id: "b2", branched_from: "s", before: "q2", first: "y1" },
  { session_id: "b3", branched_from: "b1", before: "x2", first: null },
];

test("a question has the version of the conversation it was asked in first, and those that branch off before it", () => {
  assert.deepEqual(versionsAt({ query_id: "q2" }, "s", BRANCHES), { sessions: ["s", "b1", "b2"], at: 0 });
  assert.deepEqual(versionsAt({ query_id: "y1" }, "b2", BRANCHES), { sessions: ["s", "b1", "b2"], at: 2 });
});

test("a question that nobody asked otherwise has none", () => {
  assert.deepEqual(versionsAt({ query_id: "q1" }, "s", BRANCHES).sessions, []);
  assert.deepEqual(versionsAt({ query_id: "c1", copy_of: "q1" }, "b1", BRANCHES).sessions, []);
});

test("the first question of a branch counts before the record knows it, and a copy as what it was copied from", () => {
  assert.deepEqual(versionsAt({ query_id: "new" }, "b3", BRANCHES), { sessions: ["b1", "b3"], at: 1 });
  assert.deepEqual(versionsAt({ query_id: "c2", copy_of: "x1" }, "b3", BRANCHES), { sessions: ["s", "b1", "b2"], at: 1 });
});

test("a branch that is a conversation of its own is no version, and its versions begin with itself", () => {
  const branches = [{ session_id: "own", branched_from: "s", before: "q3", version_of: "", first: "o1" }, { session_id: "v", branched_from: "s", before: "q2", version_of: "own", first: "v1" }];
  assert.deepEqual(versionsAt({ query_id: "q3" }, "s", branches, "s").sessions, []);
  assert.deepEqual(versionsAt({ query_id: "q2" }, "s", branches, "s").sessions, []);
  assert.deepEqual(versionsAt({ query_id: "c2", copy_of: "q2" }, "own", branches, "own"), { sessions: ["own", "v"], at: 0 });
});
