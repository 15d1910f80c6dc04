import assert from "node:assert/strict";
import { test } from "node:test";

const kept = new Map();
const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value), removeItem: (name) => kept.delete(name) };
Object.assign(globalThis, { sessionStorage: storage, localStorage: storage, location: { hash: "", pathname: "/", search: "" }, history: { replaceState() {} } });
const { conversationOf, hear, load } = await import("../../src/local/page/state/conversation.js");
const { asked } = await import("../../src/local/page/core/turn.js");

/** Loads a conversation; its record comes after `meanwhile`, and was read before it. */
async function loadWhile(id, turns, meanwhile) {
  let arrive;
  const arrival = new Promise((resolve) => (arrive = resolve));
  globalThis.fetch = async (path) => {
    await arrival.promise;
    return new Response(JSON.stringify(path.includes("/turns") ? { turns, before: null } : { branches: [] }));
  };
  const loading = load(conversationOf(id));
  meanwhile();
  arrive();
  await loading;
}

test("an answer that ends while a record is on its way that has not got its question stays", async () => {
  const conversation = conversationOf("s1");
  conversation.turn("gone", () => asked("gone", "s1", "Q", { status: "answered" }));
  conversation.turn("new", () => asked("new", "s1", "Q"));
  const ended = { query_id: "new", session_id: "s1", event: "response", data: { status: "answered", answer: "A" } };
  await loadWhile("s1", [{ query_id: "old", status: "answered", query: "Q" }], () => hear(ended));
  assert.deepEqual(conversation.order.value, ["old", "new"]);
  assert.equal(conversation.turn("new").value.answer, "A");
});

test("a record that was read before an answer ended does not open it again", async () => {
  const conversation = conversationOf("s2");
  conversation.turn("q", () => asked("q", "s2", "Q"));
  const failed = { query_id: "q", session_id: "s2", event: "error", data: { error: { kind: "model", message: "ill" } } };
  await loadWhile("s2", [{ query_id: "q", status: "open", query: "Q" }], () => hear(failed));
  assert.equal(conversation.turn("q").value.status, "failed");
});
