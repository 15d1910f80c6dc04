import { test } from "node:test";
import assert from "node:assert/strict";
import { storyOf } from "../../src/local/page/core/story.js";

const turn = {
  query_id: "q", query: "How do I take my coffee?", status: "answered", answer: "Black.", created_at: 100, finished_at: 102.9, model: "gemma4:12b", attempt: 1,
  attachments: [], degraded: [], scores: { critique: { score: 5, status: "graded", feedback: "Complete." }, pairwise: null, rating: 1 },
  usage: { prompt_tokens: 900, completion_tokens: 61, steps: [{ started: 100.1, first_token: 100.5, ended: 101.4, prompt_tokens: 436, completion_tokens: 20 }, { started: 101.5, first_token: 101.6, ended: 102.9 }] },
  tool_calls: [{ call_id: "q:0:0", tool: "search_memory", args: { query: "coffee" }, result: "…", duration_ms: 44, recalled: [{ engram_id: "e", parts: { fused: 1, threshold: 0.5 } }, { engram_id: "f", parts: { fused: 0.1, threshold: 0.5 } }] }],
};
const trace = {
  envelopes: [{ id: "1", subject: "query.received", sent_at: 100 }, { id: "2", subject: "critique.result", sent_at: 104 }, { id: "3", subject: "memory.ingested", sent_at: 103 }],
  spans: [{ id: "l", kind: "line", name: "another query of this conversation", started: 100, ended: 100.1 }, { id: "m1", kind: "model", name: "model", started: 100.1, ended: 101.4 }, { id: "t", kind: "memory", name: "search_memory", started: 101.42, ended: 101.46, detail: { call_id: "q:0:0" } }, { id: "m2", kind: "model", name: "model", started: 101.5, ended: 102.9 }],
};

test("a story tells what happened in the order in which it happened", () => {
  const story = storyOf(turn, trace);
  assert.ok(story[0].at === 0 && story.at(-1).at === null, "what has no moment says none");
  assert.deepEqual(story.map((one) => one.text), [
    "You asked.",
    "The question waited 0.1 s in the queue.",
    "gemma4:12b worked for 1.3 s, call 1 of 2.",
    "search_memory “coffee” returned 1 of 2 remembered exchanges in 44 ms.",
    "gemma4:12b worked for 1.4 s, call 2 of 2.",
    "The answer was complete after 2.9 s.",
    "The exchange was stored in the memory.",
    "The critic graded the answer 5 of 5.",
    "You rated the answer good.",
  ]);
  assert.equal(story[2].more, "read 436 tokens, first word after 0.4 s, wrote 20");
  assert.equal(story[3].callId, "q:0:0");
});

test("the line that told a small model what to do is part of the story", () => {
  const story = storyOf({ ...turn, context: { facts: [], gone: [], recalled: [], hint: "(Answer in words.)" } }, trace);
  assert.equal(story.find((one) => one.more === "(Answer in words.)")?.at, 0);
});

test("a turn alone has a story, too, as long as its trace is not known", () => {
  const texts = storyOf(turn, null).map((one) => one.text);
  assert.equal(texts.indexOf("search_memory “coffee” returned 1 of 2 remembered exchanges in 44 ms."), 2, "between the calls of the model");
  assert.ok(texts.includes("The answer was complete after 2.9 s."));
});

test("a restart, a loss, a failed call and a failure are told, each with its reason", () => {
  const broken = { ...turn, status: "failed", finished_at: null, scores: {}, usage: null, degraded: ["The memory was not there."], error: { kind: "quota", message: "The quota is used up." }, tool_calls: [{ call_id: "q:0:0", tool: "web_fetch", args: { url: "https://a.example" }, error: { kind: "timeout", message: "no answer for 20 s" } }] };
  const told = storyOf(broken, { envelopes: [{ id: "d", subject: "bus.dead", sent_at: 101, sender: "critic" }], spans: [], attempts: [{ attempt: 1, started: 100 }, { attempt: 2, started: 101, reason: "generator was killed by SIGKILL" }] });
  const text = told.map((one) => `${one.kind}: ${one.text} ${one.more ?? ""}`).join("\n");
  assert.match(text, /bad: The answer was started again, attempt 2\. generator was killed by SIGKILL/);
  assert.match(text, /bad: A message could not be handled and is not retried\. critic/);
  assert.match(text, /bad: web_fetch “https:\/\/a\.example” failed: no answer for 20 s/);
  assert.match(text, /bad: There is no answer: The quota is used up\./);
  assert.match(text, /bad: The memory was not there\./);
});

test("an open turn is told as far as it is", () => {
  const open = { ...turn, status: "open", finished_at: null, scores: {}, tool_calls: [{ call_id: "c", tool: "web_search", args: { query: "x".repeat(200) } }] };
  const texts = storyOf(open, null).map((one) => one.text);
  assert.ok(texts.some((text) => /^web_search “x{90}…” is running\.$/.test(text)));
  assert.ok(!texts.some((text) => text.startsWith("The answer was complete")));
});
