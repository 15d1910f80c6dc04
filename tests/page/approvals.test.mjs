import { test } from "node:test";
import assert from "node:assert/strict";
import { choicesFor, effectOf, heading, isAsked, isQuestion, timeLeft, waiting, waitingIn, withDecision, withRequest } from "../../src/local/page/core/approvals.js";

const request = (more = {}) => ({ call_id: "c1", query_id: "q", session_id: "s", tool: "write_file", level: "L1", args: { path: "a.txt", content: "x" }, asked_at: 10, expires_at: 310, ...more });

test("what waits in a conversation is there until the first decision, which stays whatever comes later", () => {
  let known = withRequest(new Map(), request());
  known = withRequest(known, request({ call_id: "c0", asked_at: 5 }));
  assert.deepEqual(waitingIn(known, "s", 20).map((one) => one.call_id), ["c0", "c1"]);
  known = withDecision(known, { call_id: "c1", decision: "deny", by: "terminal" });
  known = withDecision(known, { call_id: "c1", decision: "allow", by: "page" });
  assert.deepEqual([known.get("c1").decision, known.get("c1").by], ["deny", "terminal"]);
  assert.deepEqual(waitingIn(withRequest(known, request()), "s", 20).map((one) => one.call_id), ["c0"], "a request that is heard again asks nothing again");
});

test("another conversation and what has run out ask nothing here", () => {
  const known = withRequest(new Map(), request());
  assert.deepEqual(waitingIn(known, "other", 20), []);
  assert.deepEqual(waitingIn(known, "s", 310), []);
});

test("what a program asks that calls a tool by itself is shown in every conversation, with its name, and for once", () => {
  const asked = request({ session_id: "call-1", client: "editor" });
  const known = withRequest(new Map(), asked);
  assert.deepEqual(waitingIn(known, "other", 20).map((one) => one.call_id), ["c1"]);
  assert.equal(heading(asked), "A program that calls itself “editor”: write_file wants to change a file, which can be undone");
  assert.deepEqual(choicesFor(asked).map(([decision]) => decision), ["allow", "deny"]);
  assert.deepEqual(choicesFor(request()).map(([decision]) => decision), ["allow", "deny", "allow_session"]);
});

test("whether a folder is trusted is a question of its own, not to be answered for one conversation", () => {
  const asked = request({ tool: "trust_folder", level: "L0", args: { folder: "/home/me/notes" } });
  assert.match(heading(asked), /^Do you trust this folder\?/);
  assert.deepEqual(effectOf(asked).map(({ text }) => text), ["folder: /home/me/notes"]);
  assert.deepEqual(choicesFor(asked).map(([decision]) => decision), ["allow", "deny"]);
});

test("a decision on what is not known, and a request without a call, change nothing", () => {
  const known = new Map();
  assert.equal(withDecision(known, { call_id: "x", decision: "allow" }), known);
  assert.equal(withRequest(known, {}), known);
});

test("a query waits for a person until what it asked is decided", () => {
  const known = withRequest(new Map(), request());
  assert.ok(isAsked(known, "q"));
  assert.ok(!isAsked(known, "another"));
  assert.ok(!isAsked(withDecision(known, { call_id: "c1", decision: "deny" }), "q"));
});

test("the time left is minutes and seconds, and nothing where it waits for ever", () => {
  assert.equal(timeLeft(request(), 38), "4:32");
  assert.equal(timeLeft(request(), 9.5), "5:00", "a clock that is a little behind");
  assert.equal(timeLeft(request(), 400), "0:00");
  assert.equal(timeLeft(request({ expires_at: null }), 0), "");
});

test("the effect is shown as what would happen: a command as a shell reads it, a change as a diff, an address whole", () => {
  assert.deepEqual(effectOf(request({ args: { argv: ["rm", "-rf", "it's mine"] } })), [{ kind: "command", text: String.raw`rm -rf 'it'\''s mine'` }]);
  assert.deepEqual(effectOf(request({ args: { path: "a", old: "x\ny", new: "z" } })).map((one) => `${one.kind} ${one.text}`), ["text a", "removed x", "removed y", "added z"]);
  assert.deepEqual(effectOf(request({ args: { path: "a", content: "x\n\n" } })).map((one) => one.text), ["a", "x", ""], "the end of the last line begins none");
  assert.deepEqual(effectOf(request({ args: { url: "https://a.example/?q=1" } })), [{ kind: "address", text: "https://a.example/?q=1" }]);
  assert.deepEqual(effectOf(request({ args: { n: [1] } })), [{ kind: "text", text: "n: [1]" }]);
  assert.deepEqual(effectOf({ tool: "x" }), []);
});

test("no argument is left out of what is approved, and none has characters that nobody sees", () => {
  const texts = (args) => effectOf(request({ args })).map((one) => one.text);
  assert.deepEqual(texts({ url: "https://good.example/", body: "the memory", headers: { x: 1 } }), ["https://good.example/", "body: the memory", 'headers: {"x":1}']);
  assert.deepEqual(texts({ argv: ["ls"], command: "rm -rf .", cwd: "/" }), ["ls", "command: rm -rf .", "cwd: /"]);
  assert.deepEqual(texts({ command: "ls", argv: "rm" }), ["ls", "argv: rm"]);
  assert.deepEqual(texts({ path: ["b"], content: "x", old: "y" }), ["x", 'path: ["b"]', "old: y"]);
  assert.deepEqual(texts({ path: "a", old: "x", new: "z", content: "w", url: "u" }), ["a", "x", "z", "content: w", "url: u"]);
  assert.deepEqual(texts({ command: "a\u202eb\u{e0041}\u200b\u2028\r\tc\nd" }), [String.raw`a\u{202e}b\u{e0041}\u{200b}\u{2028}\u{d}` + "\tc\nd"]);
});

test("a question of the model is told from a call that asks for leave", () => {
  const question = request({ tool: "request_clarification", args: { question: "Which one?" } });
  assert.ok(isQuestion(question));
  assert.equal(heading(question), "Which one?");
  assert.equal(heading(request()), "write_file wants to change a file, which can be undone");
  assert.equal(heading(request({ tool: "shell_exec", level: "L2", args: { argv: ["rm", "x"] } })), "shell_exec wants to run a command, which cannot be undone");
  assert.equal(heading(request({ tool: "other", level: undefined, args: null })), "other wants to do this");
});

test("what an agent asks is asked in the conversation from which it came, in its name", () => {
  const asked = { call_id: "a-1:0:0", query_id: "a-1", session_id: "a", tool: "write_file", args: { path: "x", content: "y" }, level: "L1", agent: "scout", root_query_id: "q", root_session_id: "s" };
  const known = withRequest(new Map(), asked);
  assert.deepEqual(waitingIn(known, "s", 0).map((one) => one.call_id), ["a-1:0:0"]);
  assert.deepEqual(waitingIn(known, "a", 0), []);
  assert.ok(isAsked(known, "q") && !isAsked(known, "a-1"));
  assert.equal(heading(asked), "The agent scout: write_file wants to change a file, which can be undone");
});

test("what another user's conversation asks is told with the name, and allowed by the owner alone", () => {
  const asked = request({ user_id: "ann", owner_decides: true });
  assert.equal(heading(asked), "For ann: write_file wants to change a file, which can be undone");
  assert.equal(heading(asked, false), "write_file wants to change a file, which can be undone");
  assert.deepEqual(choicesFor(asked, false).map(([decision]) => decision), ["deny"]);
  assert.deepEqual(choicesFor(asked).map(([decision]) => decision), ["allow", "deny", "allow_session"]);
  const known = [asked, request({ call_id: "own", user_id: "owner" })].reduce(withRequest, new Map());
  const ids = (wanted) => waiting(known, 0, wanted).map((one) => one.call_id);
  assert.deepEqual(ids({ ofOthers: false, isOwner: true }), ["own"]);
  assert.deepEqual(ids({ ofOthers: true, isOwner: true }), [asked.call_id]);
  assert.deepEqual(ids({ ofOthers: true, isOwner: false }), []);
  assert.deepEqual(ids({ ofOthers: false, isOwner: false }), [asked.call_id, "own"]);
});
