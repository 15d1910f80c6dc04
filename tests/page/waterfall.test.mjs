import { test } from "node:test";
import assert from "node:assert/strict";
import { atMoment, besides, panned, placed, shares, ticks, waterfall, zoomed } from "../../src/local/page/core/waterfall.js";

const span = (id, started, ended, more = {}) => ({ id, parent: null, kind: "model", name: id, started, ended, ...more });

test("rows stand under their parent, siblings by their beginning, and what is critical says so", () => {
  const spans = [span("b", 12, 13, { parent: "turn" }), span("turn", 10, 14), span("a", 10.5, 11, { parent: "turn" }), span("later", 20, 21)];
  const { rows, whole } = waterfall({ spans, critical_path: ["b"] }, 99);
  assert.deepEqual(rows.map((row) => [row.span.id, row.depth, row.isCritical]), [["turn", 0, false], ["a", 1, false], ["b", 1, true], ["later", 0, false]]);
  assert.deepEqual(whole, { from: 10, to: 21 });
});

test("calls of the same are numbered, and the whole query is no row beside its parts", () => {
  const spans = [span("query", 0, 9), span("b", 3, 4, { name: "gemma", parent: "query" }), span("a", 1, 2, { name: "gemma", parent: "query" }), span("t", 2, 3, { name: "web_fetch", parent: "query" })];
  const { rows, whole } = waterfall({ spans }, 0);
  assert.deepEqual(rows.map((row) => [row.label, row.depth]), [["gemma 1", 0], ["web_fetch", 0], ["gemma 2", 0]]);
  assert.deepEqual(whole, { from: 0, to: 9 });
  assert.equal(waterfall({ spans: spans.slice(0, 1) }, 0).rows.length, 1);
});

test("no span is left out, whatever its parent is", () => {
  const spans = [span("self", 1, 2, { parent: "self" }), span("orphan", 1, 2, { parent: "gone" }), span("x", 1, 2, { parent: "y" }), span("y", 1, 2, { parent: "x" })];
  assert.deepEqual(waterfall({ spans }, 9).rows.map((row) => row.span.id).sort(), ["orphan", "self", "x", "y"]);
});

test("a chain of ten thousand spans does not exhaust the stack, and is not indented out of sight", () => {
  const spans = Array.from({ length: 10_000 }, (_, index) => span(`s${index}`, index, index + 1, { parent: index ? `s${index - 1}` : null }));
  const { rows } = waterfall({ spans }, 0);
  assert.equal(rows.length, 10_000);
  assert.equal(Math.max(...rows.map((row) => row.depth)), 4);
});

test("what is not over yet goes on until now", () => {
  const { rows, whole } = waterfall({ spans: [span("a", 1, null)] }, 5);
  assert.equal(whole.to, 5);
  assert.deepEqual([rows[0].isOpen, rows[0].to], [true, 5]);
});

test("nothing on record is a waterfall of no rows, with a view that can be divided by", () => {
  const { rows, whole } = waterfall({}, 7);
  assert.equal(rows.length, 0);
  assert.ok(whole.to > whole.from);
});

test("what began after the answer is told apart, and each further attempt is a fence with its reason", () => {
  const trace = {
    spans: [span("model", 1, 2), span("critic", 3, 4, { kind: "critic" })],
    envelopes: [{ id: "r", subject: "response.generation", sent_at: 2.5 }],
    attempts: [{ attempt: 1, started: 1 }, { attempt: 2, started: 1.5, reason: "generator was killed by SIGKILL" }, { attempt: 3, started: 1.8 }],
  };
  const { rows, fences } = waterfall(trace, 9);
  assert.deepEqual(rows.map((row) => row.isAfter), [false, true]);
  assert.deepEqual(fences, [
    { attempt: 2, at: 1.5, reason: "generator was killed by SIGKILL" },
    { attempt: 3, at: 1.8, reason: "The previous attempt did not finish." },
  ]);
});

test("a zoom keeps the moment under the pointer, ends at a millisecond and never leaves the whole", () => {
  const whole = { from: 100, to: 110 };
  const near = zoomed(whole, whole, 0.5, 0.2);
  assert.ok(Math.abs(near.from + (near.to - near.from) * 0.2 - 102) < 1e-9);
  assert.deepEqual(zoomed(near, whole, 100, 0.2), whole);
  let view = whole;
  for (let step = 0; step < 100; step += 1) view = zoomed(view, whole, 0.5, 0);
  assert.ok(view.to - view.from > 0.0009);
  assert.deepEqual(panned({ from: 101, to: 102 }, whole, -5), { from: 100, to: 101 });
  assert.deepEqual(panned({ from: 108, to: 109 }, whole, 5), { from: 109, to: 110 });
});

test("bars far outside of the view stay near it", () => {
  assert.equal(placed(1e9, { from: 0, to: 1 }), 110);
  assert.equal(placed(-1e9, { from: 0, to: 1 }), -10);
  assert.equal(placed(0.25, { from: 0, to: 1 }), 25);
});

test("ticks are round, lie in the view and are few", () => {
  const whole = { from: 1_795_224_403.4714313, to: 1_795_224_406.37 };
  assert.deepEqual(ticks(whole, whole).map((one) => Number(one.after.toFixed(9))), [0, 1, 2]);
  for (const width of [0.001, 0.03, 1, 90, 86_400]) {
    const found = ticks({ from: whole.from, to: whole.from + width }, { from: whole.from, to: whole.from + width });
    assert.ok(found.length >= 2 && found.length <= 11, `${width}: ${found.length}`);
  }
});

test("shares add up and leave out what took nothing", () => {
  const found = shares({ tool: 1, model: 3, line: 0 });
  assert.deepEqual(found.map(({ name, share }) => [name, share]), [["model", 0.75], ["tools", 0.25]]);
  assert.deepEqual(shares(undefined), []);
});

test("a moment has what ran then, and the messages beside it", () => {
  const fall = waterfall({ spans: [span("a", 10, 12), span("b", 11, 14)] }, 0);
  assert.deepEqual([0.5, 1.5, 3].map((after) => atMoment(fall, after)), [["a"], ["a", "b"], ["b"]]);
  const sent = [{ subject: "second", sent_at: 12 }, { subject: "first", sent_at: 10.5 }, { subject: "never" }];
  const found = [0, 0.5, 1, 2].map((after) => besides(sent, 10, after));
  assert.deepEqual(found.map(({ previous, next, message }) => [previous, next, message?.subject ?? null]), [[null, 0.5, null], [null, 2, "first"], [0.5, 2, "first"], [0.5, null, "second"]]);
});
