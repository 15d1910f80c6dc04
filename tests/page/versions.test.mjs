import assert from "node:assert/strict";
import test from "node:test";
import { versionsAt } from "../../src/local/page/core/versions.js";

const BRANCHES = [
  { session_id: "b1", branched_from: "s", before: "q2", first: "x1" },
  { session_id: "b2", branched_from: "s", before: "q2", first: "y1" },
  { session_id: "b3", branched_from: "b1", before: "x2", first: "z1" },
];

function at(turn, branches, conversation) {
  const { versions, at } = versionsAt(turn, branches, conversation);
  return { sessions: versions.map((one) => one.session_id), at };
}

test("a question has the version of the conversation it was asked in first, and those that branch off before it", () => {
  assert.deepEqual(at({ query_id: "q2" }, BRANCHES, "s"), { sessions: ["s", "b1", "b2"], at: 0 });
  assert.deepEqual(at({ query_id: "y1" }, BRANCHES, "s"), { sessions: ["s", "b1", "b2"], at: 2 });
});

test("a question that nobody asked otherwise has none", () => {
  assert.deepEqual(at({ query_id: "q1" }, BRANCHES, "s").sessions, []);
  assert.deepEqual(at({ query_id: "c1", copy_of: "q1" }, BRANCHES, "s").sessions, []);
});

test("a copy counts as what it was copied from, and a branch without a question not at all", () => {
  assert.deepEqual(at({ query_id: "z1" }, BRANCHES, "s"), { sessions: ["b1", "b3"], at: 1 });
  assert.deepEqual(at({ query_id: "c2", copy_of: "x1" }, BRANCHES, "s"), { sessions: ["s", "b1", "b2"], at: 1 });
  assert.deepEqual(at({ query_id: "q2" }, [{ ...BRANCHES[0], first: null }], "s").sessions, []);
});

test("edits of edits are all versions of the same question, whichever of them was edited", () => {
  const edits = [
    { session_id: "v2", branched_from: "s", before: "q2", version_of: "s", first: "a" },
    { session_id: "v3", branched_from: "v2", before: "a", version_of: "s", first: "b" },
    { session_id: "v4", branched_from: "v3", before: "b", version_of: "s", first: "c" },
    { session_id: "v5", branched_from: "v2", before: "a", version_of: "s", first: "d" },
  ];
  const sessions = ["s", "v2", "v3", "v4", "v5"];
  ["q2", "a", "b", "c", "d"].forEach((query_id, index) => assert.deepEqual(at({ query_id }, edits, "s"), { sessions, at: index }));
});

test("a branch that is a conversation of its own is no version, and its versions begin with itself", () => {
  const branches = [{ session_id: "own", branched_from: "s", before: "q3", version_of: "", first: "o1" }, { session_id: "v", branched_from: "s", before: "q2", version_of: "own", first: "v1" }];
  assert.deepEqual(at({ query_id: "q3" }, branches, "s").sessions, []);
  assert.deepEqual(at({ query_id: "q2" }, branches, "s").sessions, []);
  assert.deepEqual(at({ query_id: "c2", copy_of: "q2" }, branches, "own"), { sessions: ["own", "v"], at: 0 });
});
