import assert from "node:assert/strict";
import test from "node:test";
import { partsOf, stepsOf, upTo } from "../../src/local/page/core/context.js";
import { searchesOf } from "../../src/local/page/core/searches.js";
import { tabFor, tabsOf, wholeOf } from "../../src/local/page/core/selection.js";
import { troubles } from "../../src/local/page/core/system_words.js";

test("what can be seen depends on what is selected, and a tab that it has not becomes its first", () => {
  assert.deepEqual(tabsOf({ kind: "turn" }), ["story", "time", "context", "sources", "raw"]);
  assert.equal(tabFor({ kind: "participant" }, "time"), "story");
  assert.equal(tabFor(null, "time"), null);
});

test("a call and a message lead back to their turn, a participant stands for itself", () => {
  assert.deepEqual(wholeOf({ kind: "call", sessionId: "s", queryId: "q", callId: "c" }), { kind: "turn", sessionId: "s", queryId: "q" });
  assert.equal(wholeOf({ kind: "participant", name: "x" }), null);
  assert.equal(wholeOf({ kind: "envelope", envelope: {} }), null);
});

test("a gauge's parts stand in the order of the prompt, those that nobody knows behind", () => {
  const gauge = { used: 50, limit: 100, parts: { steps: 0, question: 10, system: 20, novel: 5 } };
  assert.deepEqual(partsOf(gauge).map(({ part, share }) => [part, share]), [["system", 0.2], ["question", 0.1], ["novel", 0.05]]);
  assert.deepEqual(partsOf(null), []);
});

test("the messages of a question end with it, the last time that it was asked", () => {
  const messages = [{ role: "user", content: "Hi" }, { role: "assistant", content: "Hi" }, { role: "user", content: "Hi\n\nfile" }, { role: "assistant", content: "x" }];
  const { given, later, isFound } = upTo(messages, { query: "Hi" });
  assert.deepEqual([given.length, later.length, isFound], [3, 1, true]);
  assert.equal(upTo(messages, { query: "never" }).isFound, false);
  assert.deepEqual(stepsOf({ tool_calls: [{ tool: "t", args: { a: 1 }, error: { kind: "k", message: "m" } }] }).map((one) => one.content), ['t({"a":1})', "k: m"]);
});

test("what was recalled and what was compared in vain are told apart, each once", () => {
  const recall = (id, fused) => ({ engram_id: id, parts: { fused, threshold: 0.5 } });
  const turn = { tool_calls: [{ call_id: "1", args: { query: "a" }, recalled: [recall("x", 1), recall("y", 0.1)] }, { call_id: "2", args: { url: "https://a.example/b" }, recalled: [recall("x", 1)] }] };
  const found = searchesOf(turn);
  assert.deepEqual([found.searched.length, found.opened[0].address, found.recalled.length, found.passedOver.length], [1, "https://a.example/b", 1, 1]);
  assert.equal(searchesOf(turn, "2").searched.length, 0);
  assert.deepEqual(searchesOf(null).recalled, []);
});

test("who is not ready, or has a problem, is named with the reason", () => {
  const rows = [{ name: "a", state: "ready", details: {} }, { name: "b", state: "restarting", detail: "killed by SIGKILL" }, { name: "c", state: "ready", details: { store_problem: "disk full" } }, { name: "d", state: "odd" }];
  assert.deepEqual(troubles(rows).map((one) => one.text), ["b is restarting: killed by SIGKILL", "c has a problem: disk full", "d is odd"]);
});
