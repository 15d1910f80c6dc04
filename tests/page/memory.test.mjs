import assert from "node:assert/strict";
import test from "node:test";
import { changeOf, dayOf, doesAnything, holdsOf, lineOf, longestPart, marksOf, merged, outcomeOf, outdatedIn, ratingOf } from "../../src/local/page/core/memory.js";

const row = (engram_id, asked_at) => ({ engram_id, asked_at });
const ids = (rows) => rows.map((one) => one.engram_id).join("");

test("a first page that is read again takes in what is new, and loses what is gone from it", () => {
  const rows = [row("d", 4), row("c", 3), row("b", 2), row("a", 1)];
  assert.equal(ids(merged([row("e", 5), row("c", 3)], rows, false)), "ecba");
  assert.equal(ids(merged([row("c", 3), row("b", 2)], rows, true)), "cb");
  assert.equal(ids(merged([], rows, true)), "");
});

test("what is long is cut, a note is its text, and what has no words says so", () => {
  assert.equal(lineOf({ query: "a\n b" }), "a b");
  assert.equal(lineOf({ query: "x".repeat(500) }).length, 161);
  assert.equal(lineOf({ query: "cabin", answer: "Bring nails", note_of: "q" }), "Bring nails");
  assert.equal(lineOf({ query: " " }), "(no words)");
});

test("the longest part is of any sign, and the threshold is none", () => {
  assert.equal(longestPart([{ parts: { fused: 0.4, threshold: 0.9, critic: -0.5 } }, {}]), 0.5);
  assert.equal(longestPart([]), 0.01);
});

test("facts have their days and their doubts in words", () => {
  assert.equal(holdsOf({ holds_from: "", holds_until: "" }), "");
  assert.equal(holdsOf({ holds_from: "2026-11-27", holds_until: "2026-12-01" }), `from ${dayOf("2026-11-27")} until ${dayOf("2026-12-01")}`);
  assert.match(dayOf("2026-11-27"), /27.*2026|2026.*27/);
  assert.equal(dayOf("soon"), "soon");
  assert.deepEqual(marksOf({ certain: false, questioned: true, superseded_at: 3 }), ["not certain", "may have changed since", "no longer holds"]);
  assert.deepEqual(outdatedIn({ outdated: [{ slot: "tea", value: "green", values: ["black"] }, { slot: "a", value: "b" }] }), ["tea: “green” no longer holds; now “black”.", "a: “b” no longer holds."]);
});

test("what was noted about an exchange is a sentence", () => {
  const said = [["pinned", "1"], ["pinned", "0"], ["sentiment", "-1"], ["score", "4.0"], ["score", null], ["winner", "tie"], ["winner", "B"], ["other", "x"]];
  assert.deepEqual(said.map(([what, value]) => changeOf({ what, value })), [
    "You pinned it.", "You unpinned it.", "You rated it bad.", "The critic graded it 4 of 5.", "The critic gave no grade.",
    "Compared with a second answer, it was as good.", "Of two answers, the other one was better.", "other: x",
  ]);
  assert.deepEqual([1, 0, -1, null].map((sentiment) => ratingOf({ sentiment })), ["good", "", "bad", ""]);
});

test("changes of the file are told before and after, and what is not done is told, too", () => {
  const change = { what: "changed", before: "tea: green", text: "tea: black", why: "" };
  assert.deepEqual(outcomeOf(change, false), { word: "Change", text: "tea: green → tea: black", why: "", isBad: false });
  assert.deepEqual(outcomeOf({ ...change, what: "refused", before: "" }, true), { word: "Refused", text: "tea: black", why: "", isBad: true });
  assert.deepEqual([doesAnything([change]), doesAnything([{ ...change, what: "conflict" }])], [true, false]);
});
