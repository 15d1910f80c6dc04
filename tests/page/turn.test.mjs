import assert from "node:assert/strict";
import test from "node:test";
import { after, asked, recorded, stepsTaken, waitedFor } from "../../src/local/page/core/turn.js";
import { contextLine } from "../../src/local/page/core/told.js";

const said = (events, from = asked("q", "s", "Hi?")) => events.reduce((turn, [name, data]) => after(turn, name, data), from);

test("fragments grow into the answer, and the response replaces them", () => {
  const grown = said([["accepted", { attempt: 1 }], ["thinking", { attempt: 1, text: "hm" }], ["token", { attempt: 1, text: "Yo" }], ["token", { attempt: 1, text: "u" }]]);
  assert.deepEqual([grown.phase, grown.thinking, grown.answer], ["answering", "hm", "You"]);
  const ended = after(grown, "response", { status: "answered", answer: "You there.", tool_calls: [] });
  assert.deepEqual([ended.phase, ended.status, ended.answer], ["ended", "answered", "You there."]);
});

test("what is waited for is the journal, then its turn, then the model, and nothing while a call runs", () => {
  const sent = asked("q", "s", "Hi?", { phase: "sending" });
  const accepted = after(asked("q", "s", "Hi?"), "accepted", { attempt: 1 });
  const called = after(accepted, "tool_call", { call_id: "1", tool: "dice", args: {} });
  const away = after(accepted, "waiting", { attempt: 1, reason: "no model server answers" });
  const words = [sent, asked("q", "s", "Hi?"), accepted, called, away].map(waitedFor);
  assert.deepEqual(words, ["waiting for the journal to store the question", "waiting for its turn", "waiting for the model", "", "waits: no model server answers"]);
});

test("what comes after the end changes nothing but the scores", () => {
  const ended = said([["response", { status: "answered", answer: "Done." }]]);
  assert.equal(after(ended, "token", { attempt: 1, text: "more" }), ended);
  assert.equal(after(ended, "snapshot", { answer: "old" }), ended);
  assert.equal(after(ended, "critique", { score: 4 }).scores.critique.score, 4);
  assert.equal(after(ended, "feedback", { rating: -1 }).scores.rating, -1);
});

test("a snapshot replaces what an attempt that was killed had said, and its late fragments are not taken", () => {
  const second = said([
    ["accepted", { attempt: 1 }],
    ["token", { attempt: 1, text: "Half an ans" }],
    ["snapshot", { attempt: 2, thinking: "", answer: "", tool_calls: [] }],
    ["token", { attempt: 1, text: "wer" }],
    ["token", { attempt: 2, text: "Whole." }],
  ]);
  assert.equal(second.answer, "Whole.");
});

test("a tool call is one card from request to result, whatever its order", () => {
  const calls = said([
    ["tool_call", { call_id: "1", tool: "web_search", args: { query: "x" } }],
    ["tool_call", { call_id: "2", tool: "dice", args: {} }],
    ["tool_result", { call_id: "1", result: "found", duration_ms: 3 }],
    ["tool_call", { call_id: "1", tool: "web_search", args: { query: "x" } }],
  ]).tool_calls;
  assert.deepEqual(calls.map((call) => [call.call_id, call.tool, call.result]), [["1", "web_search", "found"], ["2", "dice", undefined]]);
});

test("what the model is told unasked belongs to the turn, from the event, a snapshot and the response", () => {
  const context = { facts: ["allergies: hazelnuts"], gone: [], recalled: [], engram_ids: ["e"], tokens: 9 };
  const told = said([["accepted", { attempt: 1 }], ["context", context], ["token", { attempt: 1, text: "Hm" }]]);
  assert.deepEqual([told.context, told.phase], [context, "answering"]);
  assert.deepEqual(said([["snapshot", { attempt: 1, answer: "", context }]]).context, context);
  assert.deepEqual(after(told, "response", { status: "answered", answer: "Yes.", context: null }).context, context);
  assert.equal(said([["response", { status: "answered", answer: "Yes." }], ["context", context]]).context, null);
});

test("what the model is told unasked is one line", () => {
  const one = { engram_id: "e", query: "Which lamp?", asked_at: new Date(2026, 10, 20, 12).getTime() / 1000 };
  assert.equal(contextLine(null), "");
  assert.equal(contextLine({ facts: [], recalled: [] }), "");
  assert.equal(contextLine({ facts: ["a"], recalled: [] }), "Known about you: 1 fact");
  assert.equal(contextLine({ facts: ["a", "b"], recalled: [one, one] }), "Recalled: “Which lamp?”, said on 2026-11-20 and 1 more · Known about you: 2 facts");
});

test("what a running call writes grows in it, bounded, and goes with its result", () => {
  const call = ["tool_call", { call_id: "1", tool: "shell_exec", args: {} }];
  const wrote = (text, call_id = "1") => ["tool_progress", { call_id, text }];
  const running = said([call, wrote("test_a ok\n"), wrote("nobody's", "9"), wrote("test_b ok\n")]);
  assert.equal(running.tool_calls[0].output, "test_a ok\ntest_b ok\n");
  assert.equal(running.tool_calls.length, 1);
  const much = said([wrote("x".repeat(5000)), wrote("end")], running).tool_calls[0].output;
  assert.deepEqual([much.length, much.slice(-4)], [4000, "xend"]);
  const done = said([["tool_result", { call_id: "1", result: "exit code 0", duration_ms: 3 }], wrote("late")], running);
  assert.deepEqual([done.tool_calls[0].output, done.tool_calls[0].result], ["", "exit code 0"]);
});

test("an error ends the query as failed, a cancel as cancelled, and neither undoes an answer", () => {
  assert.equal(said([["error", { error: { kind: "unavailable", message: "gone" } }]]).error.message, "gone");
  assert.equal(said([["error", { error: { kind: "cancelled", message: "" } }]]).status, "cancelled");
  assert.equal(said([["response", { status: "answered", answer: "a" }], ["error", { error: { kind: "x" } }]]).status, "answered");
});

test("a turn of the record has a phase, and null where nothing is known becomes what a turn begins with", () => {
  assert.deepEqual(recorded({ query_id: "q", query: "Hi", status: "answered", answer: "Yes", scores: null }, "s").scores.rating, null);
  assert.equal(recorded({ query_id: "q", query: "Hi", status: "open", answer: null }, "s").phase, "waiting");
  assert.equal(recorded({ query_id: "q", query: "Hi", status: "open", answer: "so f" }, "s").phase, "answering");
});

test("an event of a kind that is not known changes nothing", () => {
  const turn = asked("q", "s", "Hi");
  for (const name of ["provenance", "toString", "__proto__", "constructor"]) assert.equal(after(turn, name, {}), turn);
});

test("a turn of more than one step tells what it has used of its limits", () => {
  const totals = { steps: 3, max_steps: 20, calls: 4, max_calls: 50, output_bytes: 9, max_output_bytes: 2000000 };
  assert.equal(stepsTaken({ usage: { totals } }), "3 of 20 steps, 4 of 50 calls");
  assert.deepEqual([{ usage: { totals: { ...totals, steps: 1 } } }, { usage: {} }, { usage: null }].map(stepsTaken), ["", "", ""]);
});

test("a prompt that is read is seen until the model says something, also in a snapshot", () => {
  const reading = said([["accepted", { attempt: 1 }], ["progress", { attempt: 1, done: 0, total: 4348 }], ["progress", { attempt: 1, done: 1024, total: 4348 }]]);
  assert.equal(waitedFor(reading), "reading your question and its context, 23 % of 4,348 tokens");
  assert.equal(after(reading, "token", { attempt: 1, text: "Hi" }).reading, null);
  assert.equal(after(reading, "progress", { attempt: 0, done: 9, total: 9 }), reading);
  const joined = after(asked("q", "s", "Hi?"), "snapshot", { attempt: 1, thinking: "", answer: "", tool_calls: [], reading: { done: 5, total: 9 } });
  assert.equal(waitedFor(joined), "reading your question and its context, 55 % of 9 tokens");
});
