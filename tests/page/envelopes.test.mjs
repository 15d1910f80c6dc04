import { test } from "node:test";
import assert from "node:assert/strict";
import { belonging, isTrouble, keyOf, matches } from "../../src/local/page/core/envelopes.js";

const trace = {
  spans: [{ id: "span", kind: "tool", name: "web_fetch", started: 2, ended: 3, detail: { call_id: "q:0:0" } }],
  envelopes: [
    { id: "a", subject: "query.received", sender: "api", sent_at: 1 },
    { id: "req", subject: "tool.request.web_fetch", sender: "generator", sent_at: 2 },
    { id: "res", subject: "tool.result.web_fetch", sender: "web_fetch", sent_at: 3, in_reply_to: "req" },
  ],
};

test("a call has its request and its result, a turn everything", () => {
  assert.deepEqual(belonging(trace, { kind: "call", callId: "q:0:0" }).map((one) => one.id), ["req", "res"]);
  assert.equal(belonging(trace, { kind: "turn" }).length, 3);
  assert.deepEqual(belonging(null, { kind: "turn" }), []);
});

test("of two calls of one tool each has its own, and a call that is not timed has none", () => {
  const second = [{ id: "req2", subject: "tool.request.web_fetch", sender: "generator", sent_at: 2.5 }, { id: "res2", subject: "tool.result.web_fetch", sent_at: 2.9, in_reply_to: "req2" }];
  const both = { ...trace, envelopes: [...trace.envelopes, ...second] };
  assert.deepEqual(belonging(both, { kind: "call", callId: "q:0:0" }).map((one) => one.id), ["req", "res"]);
  assert.deepEqual(belonging({ ...both, spans: [] }, { kind: "call", callId: "q:0:0" }), []);
});

test("what is not on record has no id, and a key all the same", () => {
  assert.notEqual(keyOf({ id: null, subject: "generation.token", sent_at: 1 }), keyOf({ id: null, subject: "generation.token", sent_at: 2 }));
  assert.equal(keyOf(trace.envelopes[0]), "a");
});

test("every word that is typed has to be in the header", () => {
  assert.ok(matches(trace.envelopes[1], "fetch generator"));
  assert.ok(!matches(trace.envelopes[1], "fetch api"));
  assert.ok(matches(trace.envelopes[1], ""));
});

test("losses, failures and further attempts are trouble", () => {
  assert.ok(isTrouble({ subject: "bus.gap" }) && isTrouble({ subject: "query.accepted", attempt: 2 }));
  assert.ok(!isTrouble(trace.envelopes[0]));
});
