import assert from "node:assert/strict";
import { test } from "node:test";

const kept = new Map();
const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value), removeItem: (name) => kept.delete(name) };
Object.assign(globalThis, { sessionStorage: storage, localStorage: storage, location: { hash: "", pathname: "/", search: "" }, history: { replaceState() {} } });
const { request } = await import("../../src/local/page/net/api.js");

/** A server that says nothing until it is given up. */
function silence(path, { signal }) {
  return new Promise((_, refuse) => signal.addEventListener("abort", () => refuse(signal.reason)));
}

test("a request that nobody answers in time passes, and is sent again", async () => {
  globalThis.fetch = silence;
  await assert.rejects(request("POST", "/query", {}, { signal: AbortSignal.timeout(1) }), (failure) => failure.passes && failure.kind === "offline");
});

test("a request that is given up is no failure of anybody", async () => {
  globalThis.fetch = silence;
  const given = new AbortController();
  const asked = request("GET", "/sessions", undefined, { signal: given.signal });
  given.abort();
  await assert.rejects(asked, (error) => error.name === "AbortError" && error.passes === undefined);
});

test("a question beyond the budget of the day is not sent again by itself, one too many is", async () => {
  const passes = async (kind) => {
    globalThis.fetch = async () => new Response(JSON.stringify({ error: { kind, message: "no" } }), { status: 429, headers: { "retry-after": "9" } });
    return request("POST", "/query", {}).catch((failure) => failure.passes);
  };
  assert.deepEqual([await passes("budget_spent"), await passes("too_many_queries")], [false, true]);
});
